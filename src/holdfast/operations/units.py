"""The units of the projects: written by external systems, read by everybody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from holdfast.domain import decision
from holdfast.domain.audit import COMMAND, Author
from holdfast.domain.booking import Booking
from holdfast.domain.delivery import Delivery
from holdfast.domain.endpoint import EndpointLabel
from holdfast.domain.errors import DomainError, UnknownUnit
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import Unit, UnitFields, as_seen
from holdfast.operations.write_path import NO_NEEDS, Command, Outcome, WritePath, WriteResult, write
from holdfast.storage import audit, bookings, delivery_log, projects, unit_lists
from holdfast.storage.audit import StoredEntry
from holdfast.storage.database import Database
from holdfast.storage.units import ProjectGone, UnitKey, load_for_update

BULK_TRANSACTION_SIZE = 1000
TRANSACTIONS_IN_FLIGHT = 2
OUTCOMES = ("created", "replaced", "unchanged", "refused")


class ReplaceUnit(NamedTuple):
    key: UnitKey
    fields: UnitFields
    status: Status | None = None
    precondition: decision.Precondition = decision.UNCONDITIONAL
    author: Author = COMMAND
    needs: decision.Needs = NO_NEEDS

    def decide(self, snapshot: decision.UnitSnapshot, now: datetime) -> decision.Decision:
        return decision.replace(snapshot, self.key[1], self.fields, self.status, self.precondition, now)


class PatchUnit(NamedTuple):
    key: UnitKey
    changes: Mapping[str, Any]
    status: Status | None = None
    precondition: decision.Precondition = decision.UNCONDITIONAL
    author: Author = COMMAND
    needs: decision.Needs = NO_NEEDS

    def decide(self, snapshot: decision.UnitSnapshot, now: datetime) -> decision.Decision:
        return decision.patch(snapshot, self.key[1], self.changes, self.status, self.precondition, now)


class Item(Protocol):
    """One unit as it was sent, or the error of one that was rejected before it was looked for."""

    @property
    def command(self) -> Command | DomainError: ...


AnyItem = TypeVar("AnyItem", bound=Item)
Record = Callable[[Sequence[AnyItem], list[Outcome]], Awaitable[None]]


class UnitWithBooking(NamedTuple):
    unit: Unit
    project: Project
    booking: Booking | None
    """The one that claims the unit, if one does."""


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
            (project_id,) = await self._database.read(projects.require_ids, [slug])
            self._project_ids[slug] = project_id
        return project_id

    async def write(self, command: Command) -> WriteResult:
        try:
            return await self._write_path.submit(command)
        except ProjectGone:
            self._forget_projects()
            raise

    async def write_many(self, commands: Sequence[Command], *, store: bool) -> list[Outcome]:
        """Write at most ``BULK_TRANSACTION_SIZE`` commands together."""
        outcomes = await write(self._database, commands, store=store)
        if any(isinstance(outcome, ProjectGone) for outcome in outcomes):
            self._forget_projects()
        return outcomes

    async def write_all(
        self, batches: AsyncIterator[list[AnyItem]], record: Record[AnyItem], *, store: bool
    ) -> None:
        """Write batches of at most ``BULK_TRANSACTION_SIZE``, and record their outcomes in order. The next
        batch is read while the database works on one. A failure is raised itself, not in a group."""
        try:
            async with asyncio.TaskGroup() as group:
                running: deque[tuple[list[AnyItem], asyncio.Task[list[Outcome]]]] = deque()
                async for items in batches:
                    if len(running) == TRANSACTIONS_IN_FLIGHT:
                        written, task = running.popleft()
                        await record(written, await task)
                    running.append((items, group.create_task(self._write_batch(items, store))))
                for written, task in running:
                    await record(written, await task)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _write_batch(self, items: Sequence[Item], store: bool) -> list[Outcome]:
        commands = [item.command for item in items if not isinstance(item.command, DomainError)]
        outcomes = iter(await self.write_many(commands, store=store) if commands else ())
        return [item.command if isinstance(item.command, DomainError) else next(outcomes) for item in items]

    async def find(self, slug: str, code: str) -> tuple[Unit, Project]:
        project_id = await self.project_id(slug)
        try:
            async with self._database.reading() as connection:
                now, (snapshot,), _ = await load_for_update(
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
        updated_since: datetime | None = None,
        *,
        floor: int | None = None,
        on_sale: bool = False,
    ) -> tuple[list[Unit], Project]:
        """Return one unit more than ``limit``, if there is one, so that the caller knows of a next page."""
        project_id = await self.project_id(slug)
        async with self._database.reading() as connection:
            project = await projects.get(connection, project_id)
            page = await unit_lists.page(
                connection,
                project_id,
                after_code,
                limit + 1,
                status,
                updated_since,
                floor=floor,
                on_sale=on_sale,
            )
        return page, project

    async def projects_page(
        self, slugs: tuple[str, ...] | None, after_slug: str, limit: int
    ) -> list[Project]:
        return await self._database.read(projects.list_page, slugs, after_slug, limit + 1)

    async def missing_codes(self, slug: str, present: Collection[str]) -> list[str]:
        return await self._database.read(unit_lists.missing_codes, await self.project_id(slug), present)

    async def find_for_staff(self, slug: str, code: str) -> UnitWithBooking:
        unit, project = await self.find(slug, code)
        (found,) = await self._with_bookings([unit], project)
        return found

    async def page_for_staff(
        self, slug: str, after_code: str, limit: int, status: Status | None
    ) -> tuple[list[UnitWithBooking], bool]:
        """Return the units in the order of their codes, and whether there are more."""
        page, project = await self.page(slug, after_code, limit, status)
        return await self._with_bookings(page[:limit], project), len(page) > limit

    async def history(self, unit: Unit, before_id: int, limit: int) -> list[StoredEntry]:
        """Return one more than ``limit``, if there is one; the latest first."""
        return await self._database.read(audit.history, unit.id, before_id, limit + 1)

    async def latest_deliveries(self, unit: Unit, limit: int) -> list[tuple[Delivery, EndpointLabel]]:
        async with self._database.reading_snapshot() as connection:
            return await delivery_log.list_latest_of_unit(connection, unit, limit)

    async def _with_bookings(self, units: Sequence[Unit], project: Project) -> list[UnitWithBooking]:
        locked = [unit.id for unit in units if unit.status in LOCKED]
        claims = await self._database.read(bookings.claims_on, locked) if locked else {}
        return [UnitWithBooking(unit, project, claims.get(unit.id)) for unit in units]

    def _forget_projects(self) -> None:
        self._project_ids.clear()
        self._database.project_cache.clear()

    async def close(self) -> None:
        await self._write_path.close()


def outcome_name(outcome: Outcome) -> str:
    if not isinstance(outcome, WriteResult):
        return "refused"
    if outcome.created:
        return "created"
    return "replaced" if outcome.changed else "unchanged"
