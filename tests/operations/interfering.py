"""A database in which something happens at the worst moment."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import asyncpg

from holdfast.storage.database import CommitUnknown, Connection, Database, failures_named

Hook = Callable[[], Awaitable[object]]


class InterferingDatabase(Database):
    """Runs ``after_look`` once, after the first look at units without a lock."""

    def __init__(self, database: Database, after_look: Hook) -> None:
        self._database = database
        self.known_projects = database.known_projects
        self._after_look: list[Hook] = [after_look]

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        async with self._database.reading() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        async with self._database.writing() as connection:
            yield connection

    @asynccontextmanager
    async def writing_at_once(self) -> AsyncIterator[Connection]:
        async with self._database.writing_at_once() as connection:
            yield cast(Connection, _Interfering(connection, self._after_look))


class _Interfering:
    def __init__(self, connection: Connection, after_look: list[Hook]) -> None:
        self._connection = connection
        self._after_look = after_look

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        rows = await self._connection.fetch(statement, *arguments)
        if "wanted.place" in statement and self._after_look:
            await self._after_look.pop()()
        return rows

    async def execute(self, statement: str, *arguments: object) -> str:
        return str(await self._connection.execute(statement, *arguments))


class LosingDatabase(InterferingDatabase):
    """Loses the connection at the statement that stores, or at the commit, when it is done already."""

    def __init__(self, database: Database, *, at_once: bool, done: bool = True) -> None:
        super().__init__(database, _nothing)
        self._at_once = at_once
        self._done = done

    @asynccontextmanager
    async def writing_at_once(self) -> AsyncIterator[Connection]:
        with failures_named():
            async with self._database.writing_at_once() as connection:
                yield cast(Connection, _Losing(connection, self._at_once, self._done))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        async with self._database.writing() as connection:
            yield connection
        raise CommitUnknown


class _Losing:
    """``at_once`` off: the first statement that stores is undone for the sake of another transaction."""

    def __init__(self, connection: Connection, at_once: bool, done: bool) -> None:
        self._connection = connection
        self._at_once = at_once
        self._done = done

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        if "with stored as" not in statement:
            return await self._connection.fetch(statement, *arguments)
        if not self._at_once:
            raise asyncpg.SerializationError("for the sake of another")
        if self._done:
            await self._connection.fetch(statement, *arguments)
        raise ConnectionResetError


async def _nothing() -> None:
    return None
