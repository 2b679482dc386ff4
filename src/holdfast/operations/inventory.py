"""The units of the projects: written by external systems, read by everybody."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.audit import COMMAND, Author
from holdfast.domain.decision import Decision, Standing, Wanted
from holdfast.domain.errors import UnknownProject, UnknownUnit
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields, as_seen
from holdfast.domain.unit_writes import UNCONDITIONAL, Precondition, patch, replace
from holdfast.operations.command import NOTHING, Command
from holdfast.operations.write_path import Outcome, WritePath, Written, write
from holdfast.storage import projects, unit_lists
from holdfast.storage.database import Database
from holdfast.storage.units import ProjectGone, UnitKey, load_for_update

BULK_TRANSACTION_SIZE = 1000


class ReplaceUnit(NamedTuple):
    """PUT."""

    key: UnitKey
    fields: UnitFields
    status: Status | None = None
    precondition: Precondition = UNCONDITIONAL
    author: Author = COMMAND

    @property
    def wanted(self) -> Wanted:
        return NOTHING

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return replace(standing, self.key[1], self.fields, self.status, self.precondition, now)


class PatchUnit(NamedTuple):
    """PATCH."""

    key: UnitKey
    changes: Mapping[str, Any]
    status: Status | None = None
    precondition: Precondition = UNCONDITIONAL
    author: Author = COMMAND

    @property
    def wanted(self) -> Wanted:
        return NOTHING

    def decide(self, standing: Standing, now: datetime) -> Decision:
        return patch(standing, self.key[1], self.changes, self.status, self.precondition, now)


class Inventory:
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
                now, (standing,) = await load_for_update(
                    connection, self._database.known_projects, [(project_id, code)], locked=False
                )
        except ProjectGone:
            self._forget_projects()
            raise
        if standing.unit is None:
            raise UnknownUnit(slug, code)
        return as_seen(standing.unit, now), standing.project

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
        self._database.known_projects.clear()

    async def close(self) -> None:
        await self._write_path.close()
