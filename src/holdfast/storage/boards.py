"""Units of boards, many at a time. Expired holds are shown as the expiry will write them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from holdfast.domain.layout import BoardFilter, BoardUnit, Counts
from holdfast.domain.status import MID_BOOKING, Status
from holdfast.storage.database import Connection, fetch_one

# The same rule as domain.unit.as_seen; a test compares the two.
_ENDS_AT = "coalesce(hold_expires_at, reserved_until)"
IS_OVER = f"{_ENDS_AT} <= statement_timestamp()"
_SEEN_STATUS = f"case when {IS_OVER} then 'available' else status end"

COLUMNS = f"""
    id, code, type, trim_scale(area_sqm)::text, trim_scale(price_sar)::text, bedrooms,
    {_SEEN_STATUS}, archived,
    case when {IS_OVER} then null else {_ENDS_AT} end,
    case when {IS_OVER} then version + 1 else version end
"""

_ALL = f"select {COLUMNS} from unit where project_id = $1 order by code limit $2"
_NAMED = f"select {COLUMNS} from unit where project_id = $1 and code = any($2::text[])"

# One index scan for each status that is stored, merged in the order of codes.
_BRANCH = """(
    select * from unit
    where project_id = $1 and code > $2 and {stored}
        and ($4::text[] is null or {seen} = any($4))
        and ($5::text is null or type = $5)
        and ($6::numeric is null or price_sar >= $6) and ($7::numeric is null or price_sar <= $7)
        and ($8::smallint is null or bedrooms = $8)
        and ($9::numeric is null or price_sar >= $9 * area_sqm)
        and ($10::numeric is null or price_sar <= $10 * area_sqm)
    order by code limit $3
)"""
_PAGE = "select {columns} from ({branches}) as unit order by code limit $3"

# Index-only, in the order of the index. What is over is few: the sweeper is prompt.
_COUNTS = f"""
    select project_id, status, status, count(*) from unit
    where project_id = any($1::uuid[]) and status = any($2::text[])
    group by project_id, status
    union all
    select project_id, status, 'available', count(*) from unit
    where {IS_OVER} and project_id = any($1::uuid[])
    group by project_id, status
"""

# What has changed since, and what has come to its end since. Of the latter there is little, whatever the
# project; OFFSET 0 keeps the planner from reading the whole project to find it. Where not all are wanted, the
# latest are: what has changed since the last look is among them, however much has changed before.
_CHANGES = f"""
    select watched.id, changed.*
    from unnest($1::uuid[]) as watched (id)
    cross join lateral (
        (
            select {COLUMNS} from unit
            where project_id = watched.id and updated_at >= $2
                and updated_hour >= date_trunc('hour', $2::timestamptz at time zone 'UTC')
            order by updated_at desc, id limit $3
        ) union all (
            select {COLUMNS}
            from (select * from unit where {IS_OVER} and {_ENDS_AT} >= $2 offset 0) as unit
            where project_id = watched.id
            order by {_ENDS_AT} desc, id limit $3
        )
    ) as changed
"""

_SALES = """
    select project_id, count(*), sum(price_sar) from booking
    where project_id = any($1::uuid[]) and status = 'sold'
    group by project_id
"""
_TYPES = "select distinct type from unit where project_id = $1 order by type limit $2"
_LAYOUT_TURN = "select layout_turn from project where id = $1"
_LAYOUT_TURNS = "select id, layout_turn from project where id = any($1::uuid[])"
_NOW = "select statement_timestamp()::timestamptz(3)"


class Sales(NamedTuple):
    units: int
    value_sar: Decimal


NO_SALES = Sales(0, Decimal(0))


async def now(connection: Connection) -> datetime:
    moment: datetime = await connection.fetchval(_NOW)
    return moment


async def all_units(connection: Connection, project_id: UUID, limit: int) -> list[BoardUnit]:
    """The first of them by code, one more than ``limit`` if there are more."""
    return [board_unit(row) for row in await connection.fetch(_ALL, project_id, limit + 1)]


async def named_units(connection: Connection, project_id: UUID, codes: Sequence[str]) -> list[BoardUnit]:
    return [board_unit(row) for row in await connection.fetch(_NAMED, project_id, codes)]


async def page(
    connection: Connection, project_id: UUID, filters: BoardFilter, after_code: str, limit: int
) -> list[BoardUnit]:
    statuses = sorted(filters.statuses) or None
    rows = await connection.fetch(
        _page_statement(filters.statuses), project_id, after_code, limit, statuses, filters.type,
        filters.price_from, filters.price_to, filters.bedrooms, filters.sqm_price_from, filters.sqm_price_to,
    )  # fmt: skip
    return [board_unit(row) for row in rows]


def _page_statement(statuses: Collection[Status]) -> str:
    stored = set(statuses) | (MID_BOOKING if Status.AVAILABLE in statuses else set())
    conditions = [f"status = '{status}'" for status in sorted(stored)] or ["true"]
    branches = " union all ".join(_BRANCH.format(stored=one, seen=_SEEN_STATUS) for one in conditions)
    return _PAGE.format(columns=COLUMNS, branches=branches)


async def counts(connection: Connection, project_ids: Sequence[UUID]) -> dict[UUID, Counts]:
    """Of every project that is named, also of those without units."""
    found: dict[UUID, dict[Status, int]] = {one: dict.fromkeys(Status, 0) for one in project_ids}
    for project_id, stored, seen, number in await connection.fetch(_COUNTS, project_ids, list(Status)):
        found[project_id][Status(seen)] += number
        if stored != seen:
            found[project_id][Status(stored)] -= number
    return {project_id: Counts(by_status) for project_id, by_status in found.items()}


async def changes(
    connection: Connection, project_ids: Sequence[UUID], since: datetime, limit: int
) -> dict[UUID, list[BoardUnit]]:
    """Of each project the latest, up to about twice ``limit``; one more than that many if there are more."""
    found: dict[UUID, list[BoardUnit]] = {}
    for row in await connection.fetch(_CHANGES, project_ids, since, limit + 1):
        found.setdefault(row[0], []).append(board_unit(row[1:]))
    return found


async def sales(connection: Connection, project_ids: Sequence[UUID]) -> dict[UUID, Sales]:
    """What was sold, at the prices that were agreed."""
    return {row[0]: Sales(*row[1:]) for row in await connection.fetch(_SALES, project_ids)}


async def types(connection: Connection, project_id: UUID, limit: int) -> list[str]:
    return [row[0] for row in await connection.fetch(_TYPES, project_id, limit)]


async def layout_turn(connection: Connection, project_id: UUID) -> int:
    (turn,) = await fetch_one(connection, _LAYOUT_TURN, project_id)
    return int(turn)


async def layout_turns(connection: Connection, project_ids: Sequence[UUID]) -> dict[UUID, int]:
    return {row[0]: row[1] for row in await connection.fetch(_LAYOUT_TURNS, project_ids)}


_STATUS = {str(status): status for status in Status}


def board_unit(columns: asyncpg.Record | tuple[Any, ...]) -> BoardUnit:
    unit_id, code, type_name, area, price, bedrooms, status, archived, ends_at, version = columns
    return BoardUnit(
        unit_id, code, type_name, Decimal(area), Decimal(price), bedrooms, _STATUS[status], archived,
        ends_at, version,
    )  # fmt: skip
