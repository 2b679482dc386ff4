"""What an operator does at the console: projects and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.audit import COMMAND, AuditEntry, Author, Change
from holdfast.domain.errors import Fault, InvalidInput, raise_faults
from holdfast.domain.layout import PlacedUnit, Position, arrange, guess_position
from holdfast.domain.message import Message
from holdfast.domain.project import Project, name_fault, slug_fault
from holdfast.operations.layouts import run_in_thread
from holdfast.operations.units import Units
from holdfast.storage import audit, layouts, projects
from holdfast.storage.audit import HistoryEntry
from holdfast.storage.database import Database

__all__ = ["HistoryEntry", "Move", "PlacedUnit", "Projects"]


_PROJECTS_A_PAGE = 1000


async def add_project(database: Database, slug: str, name: str, author: Author = COMMAND) -> Project:
    raise_faults([slug_fault(slug, "/slug"), name_fault(name)])
    async with database.writing() as connection:
        project = await projects.insert(connection, slug, name)
        change = Change(None, {"slug": slug, "name": name})
        at = project.created_at
        await audit.insert(connection, AuditEntry(project.id, project.id, at, author, "create", None, change))
    return project


async def list_projects(database: Database) -> list[Project]:
    found: list[Project] = []
    async with database.reading() as connection:
        while page := await projects.list_page(
            connection, None, found[-1].slug if found else "", _PROJECTS_A_PAGE
        ):
            found += page
    return found


# What staff settle for a project: its name, its periods, its layout; and what was done to its units.

Move = Mapping[str, Any]
"""The parts of a place that change: building, floor, position."""


class Projects:
    def __init__(self, database: Database, inventory: Units) -> None:
        self._database = database
        self._inventory = inventory

    async def find(self, slug: str) -> Project:
        project_id = await self._inventory.project_id(slug)
        async with self._database.reading() as connection:
            return await projects.get(connection, project_id)

    async def add(self, slug: str, name: str, author: Author) -> Project:
        return await add_project(self._database, slug, name, author)

    async def settle(self, slug: str, changes: Mapping[str, Any], author: Author) -> Project:
        """Change what is named; the same values again change nothing."""
        project_id = await self._inventory.project_id(slug)
        async with self._database.writing() as connection:
            before = await projects.get_locked(connection, project_id)
            if before._replace(**changes) == before:
                return before
            after = await projects.update(connection, before._replace(**changes))
            await audit.insert(
                connection, _entry(before, after, author, await audit.current_time(connection))
            )
        return after

    async def layout(self, slug: str) -> list[PlacedUnit]:
        project_id = await self._inventory.project_id(slug)
        async with self._database.reading() as connection:
            codes = await layouts.codes(connection, project_id)
            chosen = await layouts.places(connection, project_id)
        return await run_in_thread(len(codes), arrange, codes, chosen)

    async def arrange(
        self,
        slug: str,
        places: Sequence[tuple[str | None, Position | None]],
        author: Author,
        faults: Sequence[Fault] = (),
    ) -> list[PlacedUnit]:
        """The whole layout: units that it does not name, or names without a place, stand where their code
        says. ``faults``: what is wrong with it already, to be told with the codes that are unknown; places
        that are wrong themselves may have no code."""
        chosen = {code: place for code, place in places if code is not None and place is not None}
        project_id = await self._inventory.project_id(slug)
        async with self._database.writing() as connection:
            await projects.get_locked(connection, project_id)
            codes = await layouts.codes(connection, project_id)
            _refuse_unknown([code for code, _ in places], set(codes), faults)
            before = await layouts.places(connection, project_id)
            if before != chosen:
                await layouts.replace(connection, project_id, chosen)
                at = await audit.current_time(connection)
                change = Change(*await run_in_thread(len(codes), _differences, before, chosen))
                entry = AuditEntry(project_id, project_id, at, author, "arrange", None, change)
                await audit.insert(connection, entry)
        return await run_in_thread(len(codes), arrange, codes, chosen)

    async def layout_page(
        self, slug: str, after_code: str, limit: int, containing: str | None = None
    ) -> list[PlacedUnit]:
        """In the order of codes; one more than ``limit``, if there is one."""
        project_id = await self._inventory.project_id(slug)
        async with self._database.reading() as connection:
            codes = await layouts.codes_page(connection, project_id, after_code, limit + 1, containing)
            chosen = await layouts.places_among(connection, project_id, codes)
        return sorted(arrange(codes, chosen), key=lambda placed: placed.code)

    async def place(self, slug: str, moves: Mapping[str, Move | None], author: Author) -> int:
        """Move these units, each in the parts of its place that are named; the rest of the layout, and of
        each place, stays as it stands by then. None puts a unit back where its code says. Gives the number
        of units that have moved."""
        project_id = await self._inventory.project_id(slug)
        async with self._database.writing() as connection:
            await projects.get_locked(connection, project_id)
            codes = await layouts.codes_among(connection, project_id, moves)
            _refuse_unknown(list(moves), set(codes), ())
            before = await layouts.places_among(connection, project_id, moves)
            after = _moved(before, moves)
            change = Change(*_differences(before, after))
            moved = change.after["places"]
            if moved:
                chosen = {code: after[code] for code in moved if code in after}
                await layouts.change(
                    connection, project_id, chosen, [code for code in moved if code not in after]
                )
                at = await audit.current_time(connection)
                await audit.insert(
                    connection, AuditEntry(project_id, project_id, at, author, "arrange", None, change)
                )
        return len(moved)

    async def history(self, slug: str, code: str, before_id: int, limit: int) -> list[HistoryEntry]:
        """One more than ``limit``, if there is one."""
        unit, _ = await self._inventory.find(slug, code)
        async with self._database.reading() as connection:
            return await audit.history(connection, unit.id, before_id, limit + 1)


def _moved(before: Mapping[str, Position], moves: Mapping[str, Move | None]) -> dict[str, Position]:
    """The chosen places of the moved units, then. A move to where a unit stands chooses nothing."""
    after = dict(before)
    for code, move in moves.items():
        stands = before.get(code) or guess_position(code)
        if move is None:
            after.pop(code, None)
        elif stands._replace(**move) != stands:
            after[code] = stands._replace(**move)
    return after


def _refuse_unknown(named: Sequence[str | None], codes: set[str], faults: Sequence[Fault]) -> None:
    unknown = [
        Fault(f"/units/{at}/code", Message("The project has no unit `%(code)s`.", {"code": code}))
        for at, code in enumerate(named)
        if code is not None and code not in codes
    ]
    if faults or unknown:
        raise InvalidInput([*faults, *unknown])


def _entry(before: Project, after: Project, author: Author, at: Any) -> AuditEntry:
    names = ("name", "hold_seconds", "reservation_days")
    differing = [name for name in names if getattr(before, name) != getattr(after, name)]
    change = Change(
        {name: _written_as(getattr(before, name)) for name in differing},
        {name: _written_as(getattr(after, name)) for name in differing},
    )
    return AuditEntry(after.id, after.id, at, author, "settle", None, change)


def _written_as(value: Any) -> Any:
    """A whole number without a point, as it was sent."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _differences(
    before: Mapping[str, Position], after: Mapping[str, Position]
) -> tuple[dict[str, Any], dict[str, Any]]:
    codes = [code for code in {**before, **after} if before.get(code) != after.get(code)]
    return (
        {"places": {code: _shown(before.get(code)) for code in codes}},
        {"places": {code: _shown(after.get(code)) for code in codes}},
    )


def _shown(place: Position | None) -> dict[str, Any] | None:
    return None if place is None else place._asdict()
