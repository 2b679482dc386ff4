"""The units of the projects: written by external systems, read by everybody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from holdfast.domain.audit import COMMAND, Author
from holdfast.domain.booking import Booking
from holdfast.domain.decision import (
    UNCONDITIONAL,
    Decision,
    Needs,
    Precondition,
    UnitSnapshot,
    patch,
    replace,
)
from holdfast.domain.errors import DomainError, UnknownProject, UnknownUnit
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import Unit, UnitFields, as_seen
from holdfast.operations.write_path import NO_NEEDS, Command, Outcome, WritePath, Written, write
from holdfast.storage import audit, bookings, delivery_log, projects, unit_lists
from holdfast.storage.audit import HistoryEntry
from holdfast.storage.database import Database
from holdfast.storage.delivery_log import UnitDelivery
from holdfast.storage.units import ProjectGone, UnitKey, load_for_update

__all__ = ["HistoryEntry", "StaffUnit", "StaffUnits", "UnitDelivery"]


BULK_TRANSACTION_SIZE = 1000


class ReplaceUnit(NamedTuple):
    """PUT."""

    key: UnitKey
    fields: UnitFields
    status: Status | None = None
    precondition: Precondition = UNCONDITIONAL
    author: Author = COMMAND

    @property
    def needs(self) -> Needs:
        return NO_NEEDS

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        return replace(snapshot, self.key[1], self.fields, self.status, self.precondition, now)


class PatchUnit(NamedTuple):
    """PATCH."""

    key: UnitKey
    changes: Mapping[str, Any]
    status: Status | None = None
    precondition: Precondition = UNCONDITIONAL
    author: Author = COMMAND

    @property
    def needs(self) -> Needs:
        return NO_NEEDS

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        return patch(snapshot, self.key[1], self.changes, self.status, self.precondition, now)


class Units:
    """One for each process: every write of the process goes through its one write path."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._write_path = WritePath(database)
        self._project_ids: dict[str, UUID] = {}

    async def project_id(self, slug: str) -> UUID:
        """Slugs never move to another project, so a known one is known for good."""
        project_id = self._project_ids.get(slug)
        if project_id is None:
            async with self._database.reading() as connection:
                project_id = await projects.find_id(connection, slug)
            if project_id is None:
                raise UnknownProject(slug)
            self._project_ids[slug] = project_id
        return project_id

    async def write(self, command: Command) -> Written:
        try:
            return await self._write_path.submit(command)
        except ProjectGone:
            self._forget_projects()
            raise

    async def write_many(self, commands: Sequence[Command], *, store: bool) -> list[Outcome]:
        """At most ``BULK_TRANSACTION_SIZE`` commands, stored together."""
        outcomes = await write(self._database, commands, store=store)
        if any(isinstance(outcome, ProjectGone) for outcome in outcomes):
            self._forget_projects()
        return outcomes

    async def find(self, slug: str, code: str) -> tuple[Unit, Project]:
        project_id = await self.project_id(slug)
        try:
            async with self._database.reading() as connection:
                now, (snapshot,) = await load_for_update(
                    connection, self._database.project_cache, [(project_id, code)], locked=False
                )
        except ProjectGone:
            self._forget_projects()
            raise
        if snapshot.unit is None:
            raise UnknownUnit(slug, code)
        return as_seen(snapshot.unit, now), snapshot.project

    async def page(
        self,
        slug: str,
        after_code: str,
        limit: int,
        status: Status | None,
        updated_since: datetime | None,
    ) -> tuple[list[Unit], Project]:
        """One unit more than ``limit``, if there is one, so that the caller knows of a next page."""
        project_id = await self.project_id(slug)
        async with self._database.reading() as connection:
            project = await projects.get(connection, project_id)
            page = await unit_lists.page(connection, project_id, after_code, limit + 1, status, updated_since)
        return page, project

    async def offers_page(
        self, slug: str, after_code: str, limit: int, status: Status | None
    ) -> tuple[list[Unit], Project]:
        """As ``page``, without the units that are not on sale."""
        project_id = await self.project_id(slug)
        async with self._database.reading() as connection:
            project = await projects.get(connection, project_id)
            page = await unit_lists.offers(connection, project_id, after_code, limit + 1, status)
        return page, project

    async def projects_page(
        self, slugs: tuple[str, ...] | None, after_slug: str, limit: int
    ) -> list[Project]:
        async with self._database.reading() as connection:
            return await projects.list_page(connection, slugs, after_slug, limit + 1)

    async def missing_codes(self, slug: str, named: Collection[str]) -> list[str]:
        project_id = await self.project_id(slug)
        async with self._database.reading() as connection:
            return await unit_lists.missing_codes(connection, project_id, named)

    def _forget_projects(self) -> None:
        self._project_ids.clear()
        self._database.project_cache.clear()

    async def close(self) -> None:
        await self._write_path.close()


# Many units at once, each snapshot on its own: the bulk route and the import of a file.

TRANSACTIONS_IN_FLIGHT = 2

OUTCOMES = ("created", "replaced", "unchanged", "refused")


class Item(Protocol):
    """One unit as it was sent, or why it was refused before anybody looked for it."""

    @property
    def command(self) -> Command | DomainError: ...


Sent = TypeVar("Sent", bound=Item)
Note = Callable[[Sequence[Sent], list[Outcome]], Awaitable[None]]


async def write_all(
    inventory: Units, batches: AsyncIterator[list[Sent]], note: Note[Sent], *, store: bool
) -> None:
    """While the database works on one transaction, the next is being read. Outcomes are noted in order."""
    async with asyncio.TaskGroup() as group:
        running: deque[tuple[list[Sent], asyncio.Task[list[Outcome]]]] = deque()
        async for items in batches:
            if len(running) == TRANSACTIONS_IN_FLIGHT:
                earlier, task = running.popleft()
                await note(earlier, await task)
            running.append((items, group.create_task(_write(inventory, items, store))))
        for earlier, task in running:
            await note(earlier, await task)


async def _write(inventory: Units, items: Sequence[Item], store: bool) -> list[Outcome]:
    commands = [item.command for item in items if not isinstance(item.command, DomainError)]
    written: Iterator[Outcome] = iter(())
    if commands:
        written = iter(await inventory.write_many(commands, store=store))
    return [item.command if isinstance(item.command, DomainError) else next(written) for item in items]


def outcome_name(outcome: Outcome) -> str:
    if not isinstance(outcome, Written):
        return "refused"
    if outcome.created:
        return "created"
    return "replaced" if outcome.changed else "unchanged"


# Units as staff see them: with the booking that has them.


class StaffUnit(NamedTuple):
    unit: Unit
    project: Project
    booking: Booking | None
    """The one that has the unit; None if none does."""


class StaffUnits:
    def __init__(self, database: Database, inventory: Units) -> None:
        self._database = database
        self._inventory = inventory

    async def find(self, slug: str, code: str) -> StaffUnit:
        unit, project = await self._inventory.find(slug, code)
        (found,) = await self._with_bookings([unit], project)
        return found

    async def page(
        self, slug: str, after_code: str, limit: int, status: Status | None
    ) -> tuple[list[StaffUnit], bool]:
        """In the order of their codes, and whether there are more."""
        page, project = await self._inventory.page(slug, after_code, limit, status, None)
        return await self._with_bookings(page[:limit], project), len(page) > limit

    async def history(self, unit: Unit, before_id: int, limit: int) -> list[HistoryEntry]:
        """One more than ``limit``, if there is one; the latest first."""
        async with self._database.reading() as connection:
            return await audit.history(connection, unit.id, before_id, limit + 1)

    async def latest_deliveries(self, unit: Unit, limit: int) -> list[UnitDelivery]:
        """The latest first."""
        async with self._database.reading_snapshot() as connection:
            return await delivery_log.latest_of_unit(connection, unit, limit)

    async def _with_bookings(self, units: Sequence[Unit], project: Project) -> list[StaffUnit]:
        locked = [unit.id for unit in units if unit.status in LOCKED]
        claims = {}
        if locked:
            async with self._database.reading() as connection:
                claims = await bookings.claims_on(connection, locked)
        return [StaffUnit(unit, project, claims.get(unit.id)) for unit in units]
