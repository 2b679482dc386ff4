"""Files of units: kept for a day, for the person who brought them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

from holdfast.domain.imports import Choice, Contents, rows_to_read
from holdfast.operations.importing.findings import Finding
from holdfast.operations.importing.packing import Reply, pack, unpack
from holdfast.operations.inventory import Inventory
from holdfast.storage import imports
from holdfast.storage.database import Database
from holdfast.storage.imports import ImportFile

KEPT_FOR = timedelta(days=1)
KEPT_A_PERSON = 5
_PARTS_A_STATEMENT = 20

CHECKING, IMPORTING = "checking", "importing"


class Import(NamedTuple):
    """A file, and how far it has come."""

    id: UUID
    project_id: UUID
    file_name: str
    created_at: datetime
    contents: Contents
    choice: Choice | None
    stage: str
    """``uploaded``, ``checking``, ``checked``, ``importing`` or ``imported``."""
    run_id: UUID | None
    """Of the last run."""
    is_alive: bool

    @property
    def is_running(self) -> bool:
        return self.stage in (CHECKING, IMPORTING) and self.is_alive

    @property
    def is_interrupted(self) -> bool:
        """The process that was at work on it is no more."""
        return self.stage in (CHECKING, IMPORTING) and not self.is_alive

    @property
    def rows(self) -> int:
        if self.choice is None:
            return 0
        return rows_to_read(self.contents.sheets[self.choice.sheet], self.choice.heading_row)


class ImportFiles:
    def __init__(self, database: Database, inventory: Inventory) -> None:
        self._database = database
        self._inventory = inventory

    async def keep(self, slug: str, staff_id: UUID, file_name: str, read: Reply) -> UUID:
        assert read.contents is not None
        project_id = await self._inventory.project_id(slug)
        import_id = uuid4()
        async with self._database.writing() as connection:
            await imports.drop_old(connection, KEPT_FOR, staff_id, KEPT_A_PERSON - 1)
            contents = pack(read.contents)
            await imports.insert(connection, import_id, project_id, staff_id, file_name, contents)
            for sheet, parts in enumerate(read.parts):
                for first in range(0, len(parts), _PARTS_A_STATEMENT):
                    some = parts[first : first + _PARTS_A_STATEMENT]
                    await imports.insert_parts(connection, import_id, sheet, first, some)
        return import_id

    async def find(self, slug: str, import_id: UUID, staff_id: UUID) -> Import | None:
        """None also for a file of somebody else."""
        project_id = await self._inventory.project_id(slug)
        async with self._database.reading() as connection:
            found = await imports.find(connection, import_id, project_id, staff_id)
        return None if found is None else _import(found)

    async def latest(self, slug: str, staff_id: UUID) -> list[Import]:
        project_id = await self._inventory.project_id(slug)
        async with self._database.reading() as connection:
            found = await imports.latest(connection, staff_id, project_id, KEPT_A_PERSON)
        return [_import(file) for file in found]

    async def counts(self, import_id: UUID, *, stored: bool) -> dict[str, int]:
        async with self._database.reading() as connection:
            return await imports.counts(connection, import_id, stored)

    async def findings(
        self, import_id: UUID, outcome: str, offset: int, limit: int, *, stored: bool
    ) -> list[Finding]:
        """In the order of the rows. What was found stays as it is, so places in it can be counted."""
        async with self._database.reading() as connection:
            parts = await imports.findings(connection, import_id, stored, outcome, offset, limit)
        if not parts:
            return []
        found = [finding for _, packed in parts for finding in unpack(list[Finding], packed)]
        start = offset - parts[0][0]
        return found[max(start, 0) : start + limit]


def _import(file: ImportFile) -> Import:
    return Import(
        file.id,
        file.project_id,
        file.file_name,
        file.created_at,
        unpack(Contents, file.contents),
        None if file.choice is None else unpack(Choice, file.choice),
        file.stage,
        file.run_id,
        file.is_alive,
    )
