"""Expiry of holds and reservations: find the units that are due, and store them expired."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from holdfast.domain.booking import BookingStatus
from holdfast.domain.holds import DueUnit, ExpiredUnit, LiveBooking
from holdfast.domain.status import Status
from holdfast.storage import audit, bookings, events
from holdfast.storage.database import FOREGROUND, Connection

# Whether a session of the foreground runs a statement or transaction, or has just done so. Sessions whose
# statistics are hidden count as idle.
_FOREGROUND_BUSY = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()
            and (state not in ('idle', 'disabled') or state_change > clock_timestamp() - interval '0.1 s')
    )
"""


async def is_foreground_busy(connection: Connection) -> bool:
    return bool(await connection.fetchval(_FOREGROUND_BUSY, FOREGROUND))


_ENDS_AT = "coalesce(hold_expires_at, reserved_until)"

# Units whose hold or reservation is over. A locked one is skipped: its writer expires it first.
_LOCK_DUE = f"""
    select id, project_id, status, {_ENDS_AT}, version, updated_at, code,
        (select slug from project where project.id = unit.project_id)
    from unit
    where {_ENDS_AT} <= statement_timestamp() and id <> all($2::uuid[])
    order by {_ENDS_AT} limit $1
    for no key update skip locked
"""
# The bookings that claim these units; a separate statement sees all that was committed before the lock.
_CLAIMS = """
    select unit_id, number, reference, status from booking
    where unit_id = any($1::uuid[]) and status in ('open', 'signed', 'reserved', 'sold')
"""
# Store expired units ($3) with their bookings, audit entries ($1) and events ($2).
_EXPIRE = f"""
    with stored as (
        update unit
        set status = 'available', hold_expires_at = null, reserved_until = null,
            version = written.version, updated_at = written.at, turn = unit.turn + 1
        from unnest($3::release_write[]) as written
        where unit.id = written.unit_id
        returning unit.id
    ),
    ended as (
        update booking
        set status = written.booking_status, ended_at = written.ended_at, {bookings.CLEAR_SLOTS}
        from unnest($3::release_write[]) as written
        where booking.number = written.booking_number
    ),
    inserted_entries as ({audit.INSERT_ENTRIES}),
    new_event as (select * from unnest($2::event_write[])),
    {events.INSERT_EVENTS_AND_DELIVERIES}
    select count(*) from inserted_delivery
"""
# The seconds until the next hold or reservation ends.
_NEXT_END = f"""
    select extract(epoch from {_ENDS_AT} - clock_timestamp())::float8
    from unit where {_ENDS_AT} is not null and id <> all($1::uuid[])
    order by {_ENDS_AT} limit 1
"""


async def lock_due_units(connection: Connection, limit: int, left_out: Sequence[UUID]) -> list[DueUnit]:
    """Lock units whose hold or reservation is over, the longest over first, without those left out."""
    rows = await connection.fetch(_LOCK_DUE, limit, left_out)
    return [DueUnit(row[0], row[1], Status(row[2]), *row[3:]) for row in rows]


async def load_claims(connection: Connection, unit_ids: Sequence[UUID]) -> dict[UUID, LiveBooking]:
    rows = await connection.fetch(_CLAIMS, unit_ids)
    return {row[0]: LiveBooking(row[1], row[2], BookingStatus(row[3])) for row in rows}


async def store_expired(connection: Connection, expired: Sequence[ExpiredUnit]) -> int:
    """Return how many deliveries were inserted."""
    entries = [audit.row_for(unit.entry) for unit in expired]
    rows = [unit[:6] for unit in expired]
    return int(await connection.fetchval(_EXPIRE, entries, [unit.event for unit in expired], rows))


async def seconds_until_next_end(connection: Connection, left_out: Sequence[UUID]) -> float | None:
    seconds: float | None = await connection.fetchval(_NEXT_END, left_out)
    return seconds
