"""Units of boards, many at a time. Expired holds are shown as the expiry will write them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.board import BoardFilter, BoardUnit, Counts
from holdfast.domain.status import MID_BOOKING, Status
from holdfast.storage.database import Connection, Row

# The same rule as domain.unit.as_seen; a test compares the two.
ENDS_AT = "coalesce(hold_expires_at, reserved_until)"
IS_OVER = f"{ENDS_AT} <= statement_timestamp()"
_SEEN_STATUS = f"case when {IS_OVER} then 'available' else status end"

COLUMNS = f"""
    id, code, type, trim_scale(area_sqm)::text, trim_scale(price_sar)::text, bedrooms,
    {_SEEN_STATUS}, archived,
    case when {IS_OVER} then null else {ENDS_AT} end,
    case when {IS_OVER} then version + 1 else version end
"""

_ALL = f"select {COLUMNS} from unit where project_id = $1 order by code limit $2"
_NAMED = f"select {COLUMNS} from unit where project_id = $1 and code = any($2::text[])"

# Units in the order of codes that match the filters; a filter that is null matches all.
_MATCHES = """
    project_id = $1 and code > $2
    and ($4::text is null or type = $4)
    and ($5::numeric is null or price_sar >= $5) and ($6::numeric is null or price_sar <= $6)
    and ($7::smallint is null or bedrooms = $7)
    and ($8::numeric is null or price_sar >= $8 * area_sqm)
    and ($9::numeric is null or price_sar <= $9 * area_sqm)
"""
_PAGE = f"select {COLUMNS} from unit where {_MATCHES} order by code limit $3"
# Those that are seen with one of some statuses: one index scan for each way ($10, $11) to store them.
_PAGE_WITH_STATUS = f"""
    select {COLUMNS}
    from unnest($10::text[], $11::boolean[]) as stored (stored_status, is_over)
    cross join lateral (
        select * from unit
        where {_MATCHES} and status = stored_status and coalesce({IS_OVER}, false) = is_over
        order by code limit $3
    ) as unit
    order by code limit $3
"""

# Index-only, in the order of the index. Few holds are over and not expired yet.
_COUNTS = f"""
    select project_id, status, status, count(*) from unit
    where project_id = any($1::uuid[]) and status = any($2::text[])
    group by project_id, status
    union all
    select project_id, status, 'available', count(*) from unit
    where {IS_OVER} and project_id = any($1::uuid[])
    group by project_id, status
"""

# Units that changed since a time ($2), and those whose hold ended since. Of the latter there are few in any
# project; OFFSET 0 keeps the planner from reading the whole project to find them. The latest come first:
# with a limit, they include what changed since the last poll, however much changed before.
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
            from (select * from unit where {IS_OVER} and {ENDS_AT} >= $2 offset 0) as unit
            where project_id = watched.id
            order by {ENDS_AT} desc, id limit $3
        )
    ) as changed
"""

_SALES = """
    select project_id, count(*), sum(price_sar) from booking
    where project_id = any($1::uuid[]) and status = 'sold'
    group by project_id
"""
_TYPES = "select distinct type from unit where project_id = $1 order by type limit $2"
_LAYOUT_TURNS = "select id, layout_turn from project where id = any($1::uuid[])"


class Sales(NamedTuple):
    units: int
    value_sar: Decimal


NO_SALES = Sales(0, Decimal(0))


async def all_units(connection: Connection, project_id: UUID, limit: int) -> list[BoardUnit]:
    """Return the first by code, one more than ``limit`` if there are more."""
    return [board_unit(row) for row in await connection.fetch(_ALL, project_id, limit + 1)]


async def named_units(connection: Connection, project_id: UUID, codes: Sequence[str]) -> list[BoardUnit]:
    return [board_unit(row) for row in await connection.fetch(_NAMED, project_id, codes)]


async def page(
    connection: Connection, project_id: UUID, filters: BoardFilter, after_code: str, limit: int
) -> list[BoardUnit]:
    statuses, *conditions = filters
    arguments = (project_id, after_code, limit, *conditions)
    if statuses:
        rows = await connection.fetch(_PAGE_WITH_STATUS, *arguments, *stored_states(statuses))
    else:
        rows = await connection.fetch(_PAGE, *arguments)
    return [board_unit(row) for row in rows]


def stored_states(seen: Collection[Status]) -> tuple[list[Status], list[bool]]:
    """Return how units seen with one of these statuses may be stored: with which status, and whether the hold
    or reservation is over."""
    expired = sorted(MID_BOOKING) if Status.AVAILABLE in seen else []
    return [*seen, *expired], [False] * len(seen) + [True] * len(expired)


async def counts(connection: Connection, project_ids: Sequence[UUID]) -> dict[UUID, Counts]:
    """Count the units of these projects by the status that readers see."""
    found: dict[UUID, dict[Status, int]] = {one: dict.fromkeys(Status, 0) for one in project_ids}
    for project_id, stored, seen, number in await connection.fetch(_COUNTS, project_ids, list(Status)):
        found[project_id][Status(seen)] += number
        if stored != seen:
            found[project_id][Status(stored)] -= number
    return {project_id: Counts(by_status) for project_id, by_status in found.items()}


async def changes(
    connection: Connection, project_ids: Sequence[UUID], since: datetime, limit: int
) -> dict[UUID, list[BoardUnit]]:
    """Return the latest of each project. More than ``limit`` of one mean that there may be others."""
    found: dict[UUID, list[BoardUnit]] = {}
    for row in await connection.fetch(_CHANGES, project_ids, since, limit + 1):
        found.setdefault(row[0], []).append(board_unit(row[1:]))
    return found


async def sales(connection: Connection, project_ids: Sequence[UUID]) -> dict[UUID, Sales]:
    """Return what was sold of each project, at the prices that were agreed."""
    return {row[0]: Sales(*row[1:]) for row in await connection.fetch(_SALES, project_ids)}


async def types(connection: Connection, project_id: UUID, limit: int) -> list[str]:
    return [row[0] for row in await connection.fetch(_TYPES, project_id, limit)]


async def layout_turns(connection: Connection, project_ids: Sequence[UUID]) -> dict[UUID, int]:
    return {row[0]: row[1] for row in await connection.fetch(_LAYOUT_TURNS, project_ids)}


def board_unit(columns: Row) -> BoardUnit:
    unit_id, code, type_name, area, price, bedrooms, status, archived, ends_at, version = columns
    return BoardUnit(
        unit_id, code, type_name, Decimal(area), Decimal(price), bedrooms, Status(status), archived,
        ends_at, version,
    )  # fmt: skip
