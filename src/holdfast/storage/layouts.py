"""Where the units of a project stand."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from holdfast.domain.layout import Place
from holdfast.storage.database import Connection

_CODES = "select code from unit where project_id = $1 order by code"
_PLACES = """
    select unit.code, building, floor, position
    from unit_place join unit on unit.id = unit_id where unit_place.project_id = $1
"""
_FORGET = "delete from unit_place where project_id = $1"
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


async def places(connection: Connection, project_id: UUID) -> dict[str, Place]:
    """Those that staff have chosen."""
    return {row[0]: Place(*row[1:]) for row in await connection.fetch(_PLACES, project_id)}


async def replace(connection: Connection, project_id: UUID, chosen: Mapping[str, Place]) -> None:
    await connection.execute(_FORGET, project_id)
    columns = [list(column) for column in zip(*chosen.values(), strict=True)] or [[], [], []]
    await connection.execute(_STORE, project_id, list(chosen), *columns)
