"""Who is at work in the database."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from holdfast.domain.booking import BookingStatus
from holdfast.domain.holds import DueUnit, ExpiredUnit, LiveBooking
from holdfast.domain.status import Status
from holdfast.storage import audit, events
from holdfast.storage.database import FOREGROUND, Connection

# As the database's own statistics have it at this moment; what they do not tell us counts as rest.
_FOREGROUND_BUSY = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()
            and (state not in ('idle', 'disabled') or state_change > clock_timestamp() - interval '0.1 s')
    )
"""


async def is_foreground_busy(connection: Connection) -> bool:
    """Whether a statement or a transaction of the foreground is on its way, or was a moment ago."""
    return bool(await connection.fetchval(_FOREGROUND_BUSY, FOREGROUND))


# Lapsed units: locked, and released many at a time.

_STATUS = {str(status): status for status in Status}
_BOOKING_STATUS = {str(status): status for status in BookingStatus}
_ENDS_AT = "coalesce(hold_expires_at, reserved_until)"

# A lapsed unit that somebody has locked is in good hands: whoever writes to it releases it first.
_LOCK_LAPSED = f"""
    select id, project_id, status, {_ENDS_AT}, version, updated_at, code from unit
    where {_ENDS_AT} <= statement_timestamp()
    order by {_ENDS_AT} limit $1
    for no key update skip locked
"""
# A statement of its own: it sees what was committed before the units were locked.
_CLAIMS = """
    select unit_id, number, reference, status from booking
    where unit_id = any($1::uuid[]) and status in ('open', 'signed', 'reserved', 'sold')
"""
_RELEASE = f"""
    with released as (
        update unit
        set status = 'available', hold_expires_at = null, reserved_until = null,
            version = written.version, updated_at = written.at, turn = unit.turn + 1
        from unnest($1::release_write[]) as written
        where unit.id = written.unit_id
        returning unit.id
    ),
    ended as (
        update booking
        set status = written.booking_status, ended_at = written.ended_at,
            address_slot = null, visitor_slot = null
        from unnest($1::release_write[]) as written
        where booking.number = written.booking_number
    ),
    noted as ({audit.insert_statement(2, "select id from released")}),
    {events.insert_events_and_deliveries(3, "select id from released")}
    select count(*) from fanned_out
"""
_NEXT_END = f"""
    select extract(epoch from {_ENDS_AT} - clock_timestamp())::float8
    from unit where {_ENDS_AT} is not null
    order by {_ENDS_AT} limit 1
"""


async def lock_due_units(connection: Connection, limit: int) -> list[DueUnit]:
    """Units whose hold or reservation is over, the longest first, kept for the transaction."""
    rows = await connection.fetch(_LOCK_LAPSED, limit)
    return [DueUnit(row[0], row[1], _STATUS[row[2]], *row[3:]) for row in rows]


async def claims(connection: Connection, unit_ids: Sequence[UUID]) -> dict[UUID, LiveBooking]:
    rows = await connection.fetch(_CLAIMS, unit_ids)
    return {row[0]: LiveBooking(row[1], row[2], _BOOKING_STATUS[row[3]]) for row in rows}


async def store(connection: Connection, releases: Sequence[ExpiredUnit]) -> int:
    """How many deliveries were made of it."""
    count: int = await connection.fetchval(
        _RELEASE,
        [release[:6] for release in releases],
        [audit.row_for(release.entry) for release in releases],
        [release.event for release in releases],
    )
    return count


async def seconds_until_next_end(connection: Connection) -> float | None:
    seconds: float | None = await connection.fetchval(_NEXT_END)
    return seconds
