"""Bookings: found by number, by unit, by what their buyers send."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.booking import CLAIMING, Booking, as_seen
from holdfast.storage.booking_rows import READ_COLUMNS, booking_from
from holdfast.storage.database import Connection, fetch_one

_CLAIMING = "booking.status in ('open', 'signed', 'reserved', 'sold')"

# With each booking the turn of its unit, so that a reader without locks sees whether the two belong together.
_CONCERNING = f"""
    select unit.turn, {READ_COLUMNS} from booking join unit on unit.id = booking.unit_id
    where booking.unit_id = any($1::uuid[]) and {_CLAIMING}
    union all
    select unit.turn, {READ_COLUMNS} from booking join unit on unit.id = booking.unit_id
    where booking.number = any($2::bigint[]) and not (booking.unit_id = any($1::uuid[]) and {_CLAIMING})
"""

# A unit is held by one buyer at a time, so there are few, however many holds others cancel meanwhile.
_LATELY = f"""
    select {READ_COLUMNS} from booking
    where unit_id = any($1::uuid[]) and status = 'lapsed' and ended_at > $2
        and (visitor_id = any($3::uuid[]) or token_hash = any($4::bytea[]))
"""

_CLAIMS = f"""
    select clock_timestamp(), {READ_COLUMNS} from booking where unit_id = any($1::uuid[]) and {_CLAIMING}
"""

_NEXT_NUMBERS = "select nextval('booking_number') from generate_series(1, $1)"
_INSTALLATION = "select secret from installation"

_FOUND = f"select clock_timestamp(), unit.code, project.slug, {READ_COLUMNS}"
_WITH_UNIT = """
    from booking
    join unit on unit.id = booking.unit_id
    join project on project.id = booking.project_id
"""
_FIND = f"{_FOUND} {_WITH_UNIT} where booking.number = $1"
_HELD_BY = f"{_FOUND} {_WITH_UNIT} where booking.visitor_id = $1 and booking.visitor_slot is not null"
_KEYED = f"""
    select unit.turn, {READ_COLUMNS} from booking join unit on unit.id = booking.unit_id
    where booking.unit_id = any($1::uuid[]) and booking.idempotency_id = any($2::uuid[])
"""


class Found(NamedTuple):
    """A booking as it is seen now, with what names its unit."""

    booking: Booking
    unit_code: str
    project_slug: str
    now: datetime


class Concerned(NamedTuple):
    unit_turn: int
    booking: Booking


async def concerning(
    connection: Connection, unit_ids: Sequence[UUID], numbers: Sequence[int]
) -> list[Concerned]:
    """The bookings that claim these units, and those of these numbers."""
    rows = await connection.fetch(_CONCERNING, unit_ids, numbers)
    return [Concerned(row[0], booking_from(row[1:])) for row in rows]


async def claims_on(connection: Connection, unit_ids: Sequence[UUID]) -> dict[UUID, Booking]:
    """The bookings that these units are claimed by, as they are seen now."""
    rows = await connection.fetch(_CLAIMS, unit_ids)
    found = [as_seen(booking_from(row[1:]), row[0]) for row in rows]
    return {booking.unit_id: booking for booking in found if booking.status in CLAIMING}


async def lately_lapsed(
    connection: Connection,
    unit_ids: Sequence[UUID],
    since: datetime,
    visitors: Sequence[UUID],
    token_hashes: Sequence[bytes],
) -> list[Booking]:
    """Those of these units that lapsed later than ``since``, and are of these visitors or tokens."""
    rows = await connection.fetch(_LATELY, unit_ids, since, visitors, token_hashes)
    return [booking_from(tuple(row)) for row in rows]


async def next_numbers(connection: Connection, count: int) -> list[int]:
    return [row[0] for row in await connection.fetch(_NEXT_NUMBERS, count)]


async def installation_secret(connection: Connection) -> bytes:
    (secret,) = await fetch_one(connection, _INSTALLATION)
    return bytes(secret)


async def now(connection: Connection) -> datetime:
    moment: datetime = await connection.fetchval("select clock_timestamp()")
    return moment


async def find(connection: Connection, number: int) -> Found | None:
    return found_in(await connection.fetchrow(_FIND, number))


async def held_by(connection: Connection, visitor_id: UUID) -> list[Found]:
    """What a visitor holds; a hold that is over may be among it, as it is seen now."""
    rows = await connection.fetch(_HELD_BY, visitor_id)
    return [found for row in rows if (found := found_in(row)) is not None]


async def keyed(
    connection: Connection, unit_ids: Sequence[UUID], idempotency_ids: Sequence[UUID]
) -> list[Concerned]:
    """What requests with these Idempotency-Keys have made."""
    rows = await connection.fetch(_KEYED, unit_ids, idempotency_ids)
    return [Concerned(row[0], booking_from(row[1:])) for row in rows]


def found_in(row: asyncpg.Record | None) -> Found | None:
    if row is None:
        return None
    now, code, slug, *columns = row
    return Found(as_seen(booking_from(tuple(columns)), now), code, slug, now)
