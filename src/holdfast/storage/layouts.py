"""Positions of the units of a project."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from holdfast.domain.layout import Position
from holdfast.storage.database import Connection

_CODES = "select code from unit where project_id = $1 order by code"
_PLACES = """
    select unit.code, building, floor, position
    from unit_place join unit on unit.id = unit_id where unit_place.project_id = $1
"""
_CODES_AMONG = "select code from unit where project_id = $1 and code = any($2::text[])"
_PLACES_AMONG = _PLACES + " and unit.code = any($2::text[])"
_CODES_PAGE = """
    select code from unit
    where project_id = $1 and code > $2 and ($4::text is null or strpos(lower(code), lower($4)) > 0)
    order by code limit $3
"""
_DELETE_ALL = "delete from unit_place where project_id = $1"
_DELETE_BY_CODES = """
    delete from unit_place using unit
    where unit.id = unit_id and unit.project_id = $1 and unit.code = any($2::text[])
"""
_NEXT_TURN = "update project set layout_turn = layout_turn + 1 where id = $1"
_STORE = """
    insert into unit_place (unit_id, project_id, building, floor, position)
    select unit.id, $1, building, floor, position
    from unnest($2::text[], $3::text[], $4::smallint[], $5::smallint[])
        as written (code, building, floor, position)
    join unit on unit.project_id = $1 and unit.code = written.code
    order by written.code
"""


async def codes(connection: Connection, project_id: UUID) -> list[str]:
    return [row[0] for row in await connection.fetch(_CODES, project_id)]


async def places(connection: Connection, project_id: UUID) -> dict[str, Position]:
    """Those that staff have chosen."""
    return {row[0]: Position(*row[1:]) for row in await connection.fetch(_PLACES, project_id)}


async def codes_among(connection: Connection, project_id: UUID, named: Collection[str]) -> list[str]:
    """Those of the named ones that the project has."""
    return [row[0] for row in await connection.fetch(_CODES_AMONG, project_id, list(named))]


async def places_among(
    connection: Connection, project_id: UUID, named: Collection[str]
) -> dict[str, Position]:
    """Those that staff have chosen for the named ones."""
    rows = await connection.fetch(_PLACES_AMONG, project_id, list(named))
    return {row[0]: Position(*row[1:]) for row in rows}


async def codes_page(
    connection: Connection, project_id: UUID, after_code: str, limit: int, containing: str | None
) -> list[str]:
    rows = await connection.fetch(_CODES_PAGE, project_id, after_code, limit, containing)
    return [row[0] for row in rows]


async def replace(connection: Connection, project_id: UUID, chosen: Mapping[str, Position]) -> None:
    await connection.execute(_DELETE_ALL, project_id)
    await _store(connection, project_id, chosen)


async def change(
    connection: Connection, project_id: UUID, chosen: Mapping[str, Position], guessed: Sequence[str]
) -> None:
    """Of these units and no others; ``guessed`` are those that stand where their code says again."""
    await connection.execute(_DELETE_BY_CODES, project_id, [*chosen, *guessed])
    await _store(connection, project_id, chosen)


async def _store(connection: Connection, project_id: UUID, chosen: Mapping[str, Position]) -> None:
    columns = [list(column) for column in zip(*chosen.values(), strict=True)] or [[], [], []]
    await connection.execute(_STORE, project_id, list(chosen), *columns)
    await connection.execute(_NEXT_TURN, project_id)
