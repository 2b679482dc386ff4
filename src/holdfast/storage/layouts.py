"""Positions of the units of a project."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import asyncpg

from holdfast.domain.layout import LayoutUnit, Placement
from holdfast.storage.database import Connection

# The units of a project with the places that staff chose.
_SELECT = """
    select code, unit.floor, unit_id is not null, building, unit_place.floor, position
    from unit left join unit_place on unit_id = unit.id and unit_place.project_id = $1
    where unit.project_id = $1
"""
_UNITS = f"{_SELECT} order by code"
# Those of the named ones that the project has.
_NAMED_UNITS = f"{_SELECT} and code = any($2::text[]) order by code"
# A page in the order of codes, perhaps only of those whose code contains a text.
_UNITS_PAGE = f"""
    {_SELECT} and code > $2 and ($4::text is null or strpos(lower(code), lower($4)) > 0)
    order by code limit $3
"""
_DELETE_BY_CODES = """
    delete from unit_place using unit
    where unit.id = unit_id and unit.project_id = $1 and unit.code = any($2::text[])
"""
_STORE = """
    insert into unit_place (unit_id, project_id, building, floor, position)
    select unit.id, $1, building, written.floor, position
    from unnest($2::text[], $3::text[], $4::smallint[], $5::smallint[])
        as written (code, building, floor, position)
    join unit on unit.project_id = $1 and unit.code = written.code
    order by written.code
"""


async def list_units(connection: Connection, project_id: UUID) -> list[LayoutUnit]:
    return [_unit(row) for row in await connection.fetch(_UNITS, project_id)]


async def find_units(connection: Connection, project_id: UUID, codes: Collection[str]) -> list[LayoutUnit]:
    return [_unit(row) for row in await connection.fetch(_NAMED_UNITS, project_id, list(codes))]


async def list_page(
    connection: Connection, project_id: UUID, after_code: str, limit: int, containing: str | None
) -> list[LayoutUnit]:
    rows = await connection.fetch(_UNITS_PAGE, project_id, after_code, limit, containing)
    return [_unit(row) for row in rows]


async def replace(connection: Connection, project_id: UUID, chosen: Mapping[str, Placement]) -> None:
    await connection.execute("delete from unit_place where project_id = $1", project_id)
    await _store(connection, project_id, chosen)


async def change(
    connection: Connection, project_id: UUID, chosen: Mapping[str, Placement], guessed: Sequence[str]
) -> None:
    """Of these units and no others; ``guessed`` are those that stand where their code says again."""
    await connection.execute(_DELETE_BY_CODES, project_id, [*chosen, *guessed])
    await _store(connection, project_id, chosen)


async def _store(connection: Connection, project_id: UUID, chosen: Mapping[str, Placement]) -> None:
    columns = [list(column) for column in zip(*chosen.values(), strict=True)] or [[], [], []]
    await connection.execute(_STORE, project_id, list(chosen), *columns)
    await connection.execute("update project set layout_turn = layout_turn + 1 where id = $1", project_id)


def _unit(row: asyncpg.Record) -> LayoutUnit:
    code, floor, is_chosen, *place = row
    return LayoutUnit(code, Placement(*place) if is_chosen else None, floor)
