"""A large back office, by SQL: many projects, years of sales, and somebody who is signed in."""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

import asyncpg

from benchmarks import database, workload
from holdfast.domain.api_key import token_hash
from holdfast.domain.unit import unit_id
from holdfast.storage.bookings import next_references

TOWER, CITY = "tower-01", "city"
TOWERS = 24
FLAT_FLOORS, FLATS_A_FLOOR = 50, 20
UNITS_OF_A_TOWER = 2 * FLAT_FLOORS * FLATS_A_FLOOR
SOLD_EVERY, OFF_SALE_EVERY = 5, 17

_PROJECT = "insert into project (id, slug, name) values (gen_random_uuid(), $1, $2) returning id"
_UNIT_COLUMNS = (
    "id", "project_id", "code", "type", "area_sqm", "price_sar", "vat_included", "vat_rate",
    "deposit_percent", "bedrooms", "bathrooms", "delivery_year", "description", "images", "files",
    "status", "version", "created_at", "updated_at",
)  # fmt: skip
# What the product would have written with each sale, a unit a time over two years.
_EVENTS = """
    insert into event (
        id, project_id, unit_id, unit_version, type, previous_status, status, booking_reference, created_at,
        position
    )
    select gen_random_uuid(), unit.project_id, unit.id, 2, 'unit.sold', 'available', 'sold',
        booking.reference, booking.closed_at, row_number() over (order by booking.closed_at, unit.id)
    from unit join booking on booking.unit_id = unit.id
"""
_FEED = "update event_feed set last_position = (select coalesce(max(position), 0) from event)"
_AUDIT = """
    insert into audit_entry (
        subject_id, project_id, at, actor_kind, actor_id, request_id, action, before, after
    )
    select unit.id, unit.project_id, now() - n * interval '1 day', 'clock', null, 'bench', 'replace',
        '{"priceSar": 1}', '{"priceSar": 2}'
    from unit, generate_series(1, 5) as n
"""
_BOOKINGS = """
    insert into booking (
        number, reference, project_id, unit_id, token_hash, status, price_sar, created_at, closed_at
    )
    select number, reference, unit.project_id, unit.id, '\\x00', 'sold', unit.price_sar, at, at
    from unnest($1::bigint[], $2::text[], $3::uuid[]) as made (number, reference, unit_id)
    join unit on unit.id = made.unit_id
    cross join lateral (select now() - number * interval '1 second' * 63072000 / $4::float8 as at) as moment
"""
_STAFF = """
    insert into staff (id, email, email_key, name, role)
    values ($1, 'bench@example.com', 'bench@example.com', 'Bench', 'admin')
"""
_SESSION = """
    insert into staff_session (id, token_hash, staff_id, address, agent)
    values (gen_random_uuid(), $1, $2, '127.0.0.1', 'bench')
"""


class Office(NamedTuple):
    token: str
    """Of the session."""
    reference: str
    """Of one of the bookings."""


def fill(url: str, units: int, progress: Callable[[str], None]) -> Office:
    """``units`` in towers of 2 000 and one city for the rest, a fifth of them sold."""

    async def act(connection: asyncpg.Connection) -> Office:
        for slug, count in _projects(units).items():
            await _add_project(connection, slug, count)
            progress(f"{slug}: {count:,} units")
        reference = await _sell(connection)
        progress("events and history")
        for statement in (_EVENTS, _FEED, _AUDIT, "vacuum (analyze)"):
            await connection.execute(statement)
        return Office(await _sign_in(connection), reference)

    return database.run(url, act)


def _projects(units: int) -> dict[str, int]:
    towers = min(TOWERS, units // (2 * UNITS_OF_A_TOWER))
    slugs = {f"tower-{number:02}": UNITS_OF_A_TOWER for number in range(1, towers + 1)}
    return {**slugs, CITY: units - towers * UNITS_OF_A_TOWER}


async def _add_project(connection: asyncpg.Connection, slug: str, count: int) -> None:
    project_id = await connection.fetchval(_PROJECT, slug, slug.replace("-", " ").title())
    now = await connection.fetchval("select now()")
    records = [_unit(project_id, number, now) for number in range(count)]
    await connection.copy_records_to_table("unit", records=records, columns=_UNIT_COLUMNS)


def _unit(project_id: Any, number: int, now: datetime) -> tuple[Any, ...]:
    floor, position = divmod(number, FLATS_A_FLOOR)
    building, floor = divmod(floor, FLAT_FLOORS)
    code = f"{chr(65 + building % 26)}{building // 26 or ''}-{floor + 1:02}{position + 1:02}"
    status = (
        "sold" if number % SOLD_EVERY == 0 else "unavailable" if number % OFF_SALE_EVERY == 0 else "available"
    )
    return (
        unit_id(project_id, code), project_id, code, f"{number % 4 + 1}-bedroom apartment", 80 + number % 90,
        600_000 + number % 977 * 1000, False, 15, 10, number % 4 + 1, 2, 2028, workload.DESCRIPTION, "[]",
        "[]", status, 1, now, now,
    )  # fmt: skip


async def _sell(connection: asyncpg.Connection) -> str:
    sold = [row[0] for row in await connection.fetch("select id from unit where status = 'sold' order by id")]
    numbers, references = zip(*await next_references(connection, len(sold)), strict=True)
    await connection.execute(_BOOKINGS, numbers, references, sold, len(sold))
    return str(references[-1])


async def _sign_in(connection: asyncpg.Connection) -> str:
    token, staff_id = secrets.token_urlsafe(32), uuid4()
    await connection.execute(_STAFF, staff_id)
    await connection.execute(_SESSION, token_hash(token), staff_id)
    return token
