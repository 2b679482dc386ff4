"""Boards: projects with their counts, and a project as buildings or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.layout import BoardFilter, BoardUnit, Building, Counts, arrange, picture
from holdfast.domain.project import Project
from holdfast.operations.layouts import KnownLayouts, Layout, Section
from holdfast.operations.units import Units
from holdfast.storage import boards, layouts, projects
from holdfast.storage.boards import NO_SALES, Sales
from holdfast.storage.database import Connection, Database

__all__ = ["Board", "Boards", "ProjectCard", "Sales", "SectionName", "Table"]

WHOLE_UP_TO = 5000
"""A project with more units is shown one building at a time."""
TYPES_AT_MOST = 200
TYPES_KEPT_SECONDS = 60.0


class ProjectCard(NamedTuple):
    project: Project
    counts: Counts
    sales: Sales


class SectionName(NamedTuple):
    """A building to choose, and how many units it has."""

    name: str | None
    units: int


class Board(NamedTuple):
    project: Project
    seen_at: datetime
    """The database's time; what changed later is not in it."""
    layout_turn: int
    counts: Counts
    types: Sequence[str]
    buildings: Sequence[Building]
    sections: Sequence[SectionName]
    """To choose from, where not all is shown; empty where it is."""
    section: int
    """Which of them is shown."""
    left_out: int
    """Units of what is shown that are too many to be drawn."""


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
        self.layouts = KnownLayouts()
        self._types: dict[UUID, tuple[float, list[str]]] = {}

    async def projects(self, after_slug: str, limit: int) -> list[ProjectCard]:
        """One more than ``limit``, if there is one."""
        async with self._database.reading() as connection:
            page = await projects.list_page(connection, None, after_slug, limit + 1)
            ids = [project.id for project in page]
            counts = await boards.counts(connection, ids)
            sales = await boards.sales(connection, ids)
        return [ProjectCard(one, counts[one.id], sales.get(one.id, NO_SALES)) for one in page]

    async def counts(self, project_ids: Sequence[UUID]) -> dict[UUID, Counts]:
        async with self._database.reading() as connection:
            return await boards.counts(connection, project_ids)

    async def board(self, slug: str, section: int = 0) -> Board:
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            seen_at = await boards.now(connection)
            project = await projects.get(connection, project_id)
            counts = (await boards.counts(connection, [project_id]))[project_id]
            layout = await self.layouts.find(connection, project_id, counts.total)
            if counts.total > WHOLE_UP_TO:
                return await self._one_building(connection, project, seen_at, counts, layout, section)
            units = await boards.all_units(connection, project_id, WHOLE_UP_TO)
        placed = [one for building in layout.sections for one in building.placed]
        types = sorted({unit.type for unit in units})
        buildings = picture(units, placed)
        return Board(project, seen_at, layout.turn, counts, types, buildings, (), 0, 0)

    async def _one_building(
        self,
        connection: Connection,
        project: Project,
        seen_at: datetime,
        counts: Counts,
        layout: Layout,
        section: int,
    ) -> Board:
        sections = layout.sections
        section = section if 0 <= section < len(sections) else 0
        placed = sections[section].placed
        shown = placed[:WHOLE_UP_TO]
        units = await boards.named_units(connection, project.id, [one.code for one in shown])
        types = await self._types_of(connection, project.id)
        buildings = picture(units, shown)
        left_out = len(placed) - len(shown)
        names = _names(sections)
        return Board(project, seen_at, layout.turn, counts, types, buildings, names, section, left_out)

    async def table(self, slug: str, filters: BoardFilter, after_code: str, limit: int) -> Table:
        project_id = await self._units.project_id(slug)
        async with self._database.reading_snapshot() as connection:
            seen_at = await boards.now(connection)
            project = await projects.get(connection, project_id)
            counts = (await boards.counts(connection, [project_id]))[project_id]
            page = await boards.page(connection, project_id, filters, after_code, limit + 1)
            units = page[:limit]
            codes = [unit.code for unit in units]
            chosen = await layouts.places_among(connection, project_id, codes)
            types = await self._types_of(connection, project_id)
            turn = await boards.layout_turn(connection, project_id)
        by_code = {one.code: one.place for one in arrange(codes, chosen)}
        floors = [by_code[code][:2] for code in codes]
        next_code = codes[-1] if len(page) > limit else None
        return Table(project, seen_at, turn, counts, types, units, floors, next_code)

    async def _types_of(self, connection: Connection, project_id: UUID) -> list[str]:
        """They hardly ever change, and to find them takes a look at every unit."""
        known = self._types.get(project_id)
        if known is None or known[0] < monotonic():
            found = await boards.types(connection, project_id, TYPES_AT_MOST)
            known = self._types[project_id] = (monotonic() + TYPES_KEPT_SECONDS, found)
        return known[1]


def _names(sections: Sequence[Section]) -> list[SectionName]:
    return [SectionName(one.name, len(one.placed)) for one in sections]
