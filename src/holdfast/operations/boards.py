"""Boards: projects with their counts, and a project as buildings or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.board import BoardFilter, BoardUnit, Building, Counts, arrange_buildings
from holdfast.domain.project import Project
from holdfast.operations.layouts import LayoutCache, Section
from holdfast.operations.units import Units
from holdfast.storage import boards, layouts, projects
from holdfast.storage.boards import NO_SALES, Sales
from holdfast.storage.database import Connection, Database, current_time

WHOLE_UP_TO = 5000
"""A project with more units is shown one building at a time."""
MAX_TYPES = 200
TYPES_KEPT_SECONDS = 60.0


class ProjectCard(NamedTuple):
    project: Project
    counts: Counts
    sales: Sales


class Board(NamedTuple):
    project: Project
    seen_at: datetime
    """The database's time; what changed later is not in it."""
    layout_turn: int
    counts: Counts
    types: Sequence[str]
    buildings: Sequence[Building]
    sections: Sequence[Section]
    """The buildings to choose from; none where all are shown."""
    section: int
    """The number of the one that is shown."""
    left_out: int
    """How many of its units are too many to be drawn."""


class Table(NamedTuple):
    project: Project
    seen_at: datetime
    layout_turn: int
    counts: Counts
    types: Sequence[str]
    units: Sequence[BoardUnit]
    floors: Sequence[tuple[str | None, int | None]]
    """Building and floor of each unit."""
    next_code: str | None


class Boards:
    """One for each process."""

    def __init__(self, database: Database, units: Units) -> None:
        self._database = database
        self._units = units
        self.layouts = LayoutCache()
        self._types: dict[UUID, tuple[float, list[str]]] = {}

    async def projects(self, after_slug: str, limit: int) -> list[ProjectCard]:
        """Return one more than ``limit``, if there is one."""
        async with self._database.reading() as connection:
            page = await projects.list_page(connection, None, after_slug, limit + 1)
            ids = [project.id for project in page]
            counts = await boards.counts(connection, ids)
            sales = await boards.sales(connection, ids)
        return [ProjectCard(one, counts[one.id], sales.get(one.id, NO_SALES)) for one in page]

    async def board(self, slug: str, section: int = 0) -> Board:
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            seen_at = await current_time(connection)
            project = await projects.get(connection, project_id)
            counts = (await boards.counts(connection, [project_id]))[project_id]
            layout = await self.layouts.find(connection, project_id, counts.total)
            sections, section, placed = layout.choose(section, WHOLE_UP_TO)
            drawn = placed[:WHOLE_UP_TO]
            if sections:
                units = await boards.named_units(connection, project_id, [one.code for one in drawn])
                types = await self._list_types(connection, project_id)
            else:
                units = await boards.all_units(connection, project_id, WHOLE_UP_TO)
                types = sorted({unit.type for unit in units})
        left_out = len(placed) - len(drawn)
        buildings = arrange_buildings(units, drawn)
        return Board(project, seen_at, layout.turn, counts, types, buildings, sections, section, left_out)

    async def table(self, slug: str, filters: BoardFilter, after_code: str, limit: int) -> Table:
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            seen_at = await current_time(connection)
            project = await projects.get(connection, project_id)
            counts = (await boards.counts(connection, [project_id]))[project_id]
            page = await boards.page(connection, project_id, filters, after_code, limit + 1)
            units = page[:limit]
            codes = [unit.code for unit in units]
            placed = await layouts.find_units(connection, project_id, codes)
            types = await self._list_types(connection, project_id)
            turn = (await boards.layout_turns(connection, [project_id]))[project_id]
        places = {unit.code: unit.placement for unit in placed}
        floors = [places[code][:2] for code in codes]
        next_code = codes[-1] if len(page) > limit else None
        return Table(project, seen_at, turn, counts, types, units, floors, next_code)

    async def _list_types(self, connection: Connection, project_id: UUID) -> list[str]:
        """Types hardly ever change, and to list them takes a look at every unit."""
        known = self._types.get(project_id)
        if known is None or known[0] < monotonic():
            found = await boards.types(connection, project_id, MAX_TYPES)
            known = self._types[project_id] = (monotonic() + TYPES_KEPT_SECONDS, found)
        return known[1]
