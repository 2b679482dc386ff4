"""Files of units, brought in inside the test's process."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.imports import ColumnMapping, Import, guess
from holdfast.operations.imports import Finding, Imports
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from holdfast.web.spreadsheets.file_parser import parse_file
from holdfast.web.spreadsheets.unit_rows import RowParser
from tests.support.inventory import SLUG

AUTHOR = Author(ActorKind.STAFF, "sales@example.com", "request-1")
HEADING = "Code,Type,Area (m²),Price (SAR)"


def csv_of(*lines: str, heading: str = HEADING) -> bytes:
    return "\r\n".join([heading, *lines]).encode()


class Importer:
    """A member of staff with a file."""

    def __init__(self, database: Database) -> None:
        self.inventory = Units(database)
        self.imports = Imports(database, self.inventory, RowParser)
        self.staff_id = uuid4()

    async def upload(self, content: bytes, name: str = "units.csv") -> Import:
        reply = parse_file(content)
        assert reply.fault == ""
        return await self.find(await self.imports.add_file(SLUG, self.staff_id, name, reply))

    async def find(self, import_id: UUID) -> Import:
        found = await self.imports.find(SLUG, import_id, self.staff_id)
        assert found is not None
        return found

    async def check(self, content: bytes, **chosen: Any) -> Import:
        file = await self.upload(content)
        choice: ColumnMapping = guess(file.contents)._replace(**chosen)
        assert await self.imports.start(SLUG, file, AUTHOR, choice)
        return await self.settled(file.id)

    async def bring_in(self, content: bytes, **chosen: Any) -> Import:
        file = await self.check(content, **chosen)
        assert await self.imports.start(SLUG, file, AUTHOR)
        return await self.settled(file.id)

    async def settled(self, import_id: UUID) -> Import:
        async with asyncio.timeout(60):
            await self.imports.wait(import_id, 60)
        return await self.find(import_id)

    async def counts(self, file: Import, *, stored: bool = False) -> dict[str, int]:
        return await self.imports.counts(file.id, stored=stored)

    async def refused(self, file: Import, *, stored: bool = False) -> Sequence[Finding]:
        return await self.imports.findings(file.id, "refused", 0, 1000, stored=stored)

    async def changed(self, file: Import) -> Sequence[Finding]:
        return await self.imports.findings(file.id, "replaced", 0, 1000, stored=False)

    async def reasons(self, file: Import) -> list[tuple[int, str | None, str, str]]:
        return [
            (finding.row, reason.field, reason.text, str(reason.message))
            for finding in await self.refused(file)
            for reason in finding.reasons
        ]

    async def close(self) -> None:
        await self.imports.close()
        await self.inventory.close()
