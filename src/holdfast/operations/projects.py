"""Projects: their names, their periods and their layouts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from holdfast.domain.audit import COMMAND, Author, Change
from holdfast.domain.errors import Fault, InvalidInput, Message, ProjectExists, raise_faults
from holdfast.domain.layout import LayoutUnit, PlacedUnit, Placement, arrange
from holdfast.domain.project import Project, name_fault, slug_fault
from holdfast.operations.layouts import run_in_thread
from holdfast.operations.units import Units
from holdfast.storage import audit, layouts, projects
from holdfast.storage.database import Database

_PROJECTS_A_PAGE = 1000


async def add_project(database: Database, slug: str, name: str, author: Author = COMMAND) -> Project:
    raise_faults([slug_fault(slug, "/slug"), name_fault(name)])
    async with database.acknowledging(ProjectExists), database.writing() as connection:
        project = await projects.insert(connection, slug, name)
        change, at = Change(None, {"slug": slug, "name": name}), project.created_at
        await audit.record(connection, project.id, author, "create", change, project_id=project.id, at=at)
    return project


async def list_projects(database: Database) -> list[Project]:
    found: list[Project] = []
    async with database.reading() as connection:
        while page := await projects.list_page(
            connection, None, found[-1].slug if found else "", _PROJECTS_A_PAGE
        ):
            found += page
    return found


Move = Mapping[str, Any]
"""The parts of a place that change: building, floor, position."""


class Projects:
    def __init__(self, database: Database, units: Units) -> None:
        self._database = database
        self._units = units

    async def find(self, slug: str) -> Project:
        return await self._database.read(projects.get, await self._units.project_id(slug))

    async def add(self, slug: str, name: str, author: Author) -> Project:
        return await add_project(self._database, slug, name, author)

    async def settle(self, slug: str, changes: Mapping[str, Any], author: Author) -> Project:
        """Change what is named; the same values again change nothing."""
        project_id = await self._units.project_id(slug)
        async with self._database.writing() as connection:
            before = await projects.get(connection, project_id, lock=True)
            if before._replace(**changes) == before:
                return before
            after = await projects.update(connection, before._replace(**changes))
            change = Change.between(before, after, ("name", "hold_seconds", "reservation_days", "listed"))
            await audit.record(connection, project_id, author, "settle", change, project_id=project_id)
        return after

    async def layout(self, slug: str) -> list[PlacedUnit]:
        project_id = await self._units.project_id(slug)
        units = await self._database.read(layouts.list_units, project_id)
        return await run_in_thread(len(units), arrange, units)

    async def arrange(
        self,
        slug: str,
        places: Sequence[tuple[str | None, Placement | None]],
        author: Author,
        faults: Sequence[Fault] = (),
        guessed: Collection[str] = (),
    ) -> list[PlacedUnit]:
        """Store the whole layout: units that it does not name, or names without a place, are placed by guess.

        ``faults`` are raised together with those of unknown codes; an invalid place may have no code.
        ``guessed`` are the units that are sent as guessed: a place that differs from the guess is a choice.
        """
        project_id = await self._units.project_id(slug)
        async with self._database.writing() as connection:
            await projects.get(connection, project_id, lock=True)
            units = await layouts.list_units(connection, project_id)
            _check_codes([code for code, _ in places], {unit.code for unit in units}, faults)
            before = {unit.code: unit.chosen for unit in units if unit.chosen}
            chosen = await run_in_thread(len(units), _chosen, units, places, guessed)
            if before != chosen:
                await layouts.replace(connection, project_id, chosen)
                change = await run_in_thread(len(units), _difference, before, chosen)
                await audit.record(connection, project_id, author, "arrange", change, project_id=project_id)
        units = [unit._replace(chosen=chosen.get(unit.code)) for unit in units]
        return await run_in_thread(len(units), arrange, units)

    async def layout_page(
        self, slug: str, after_code: str, limit: int, containing: str | None = None
    ) -> list[PlacedUnit]:
        """Return units in the order of codes; one more than ``limit``, if there is one."""
        project_id = await self._units.project_id(slug)
        units = await self._database.read(layouts.list_page, project_id, after_code, limit + 1, containing)
        return sorted(arrange(units), key=lambda placed: placed.code)

    async def move_units(self, slug: str, moves: Mapping[str, Move | None], author: Author) -> int:
        """Return how many units have moved. None puts a unit back where its code says."""
        project_id = await self._units.project_id(slug)
        async with self._database.writing() as connection:
            await projects.get(connection, project_id, lock=True)
            units = await layouts.find_units(connection, project_id, moves)
            _check_codes(list(moves), {unit.code for unit in units}, ())
            before = {unit.code: unit.chosen for unit in units if unit.chosen}
            after = _moved(units, moves)
            change = _difference(before, after)
            moved = change.after["places"]
            if moved:
                chosen = {code: after[code] for code in moved if code in after}
                guessed = [code for code in moved if code not in after]
                await layouts.change(connection, project_id, chosen, guessed)
                await audit.record(connection, project_id, author, "arrange", change, project_id=project_id)
        return len(moved)


def _chosen(
    units: Sequence[LayoutUnit],
    places: Sequence[tuple[str | None, Placement | None]],
    guessed: Collection[str],
) -> dict[str, Placement]:
    guesses = {unit.code: unit._replace(chosen=None).placement for unit in units if unit.code in guessed}
    return {code: place for code, place in places if code and place and guesses.get(code) != place}


def _moved(units: Sequence[LayoutUnit], moves: Mapping[str, Move | None]) -> dict[str, Placement]:
    """Return the places that are chosen after the moves. A move to where a unit stands chooses nothing."""
    after = {}
    for unit in units:
        move = moves[unit.code]
        moved = None if move is None else unit.placement._replace(**move)
        chosen = unit.chosen if moved == unit.placement else moved
        if chosen is not None:
            after[unit.code] = chosen
    return after


def _check_codes(named: Sequence[str | None], codes: set[str], faults: Sequence[Fault]) -> None:
    unknown = [
        Fault(f"/units/{at}/code", Message("The project has no unit `%(code)s`.", {"code": code}))
        for at, code in enumerate(named)
        if code is not None and code not in codes
    ]
    if faults or unknown:
        raise InvalidInput([*faults, *unknown])


def _difference(before: Mapping[str, Placement], after: Mapping[str, Placement]) -> Change:
    codes = [code for code in {**before, **after} if before.get(code) != after.get(code)]
    old, new = (
        {"places": {code: places[code]._asdict() if code in places else None for code in codes}}
        for places in (before, after)
    )
    return Change(old, new)
