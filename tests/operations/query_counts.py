"""A database that tells how often it was asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from holdfast.storage.database import Connection, Database


class CountingDatabase(Database):
    """Counts the batches, and can hold them up."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.project_cache = database.project_cache
        self.transactions = 0
        self.gate: asyncio.Event | None = None
        self.begun = asyncio.Semaphore(0)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        async with self._database.reading() as connection:
            yield connection

    @asynccontextmanager
    async def writing_autocommit(self) -> AsyncIterator[Connection]:
        async with self._counted(self._database.writing_autocommit()) as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        async with self._counted(self._database.writing()) as connection:
            yield connection

    @asynccontextmanager
    async def _counted(self, opened: AbstractAsyncContextManager[Connection]) -> AsyncIterator[Connection]:
        self.transactions += 1
        self.begun.release()
        if self.gate is not None:
            await self.gate.wait()
        async with opened as connection:
            yield connection
