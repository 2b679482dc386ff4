"""A database in which something happens at the worst moment."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import asyncpg

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage.database import CommitUnknown, Connection, Database, translate_errors

Hook = Callable[[], Awaitable[object]]


class InterferingDatabase(Database):
    """Runs ``after_look`` once, after the first look at units without a lock."""

    def __init__(self, database: Database, after_look: Hook) -> None:
        self._database = database
        self.project_cache = database.project_cache
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
    async def writing_autocommit(self) -> AsyncIterator[Connection]:
        async with self._database.writing_autocommit() as connection:
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
    """Loses the connection once: at a statement that stores (``at_once``), or at the commit.

    ``done``: the database has done what it was asked to, though it cannot say so any more.
    ``then_away``: and takes no writes from then on.
    """

    def __init__(
        self,
        database: Database,
        *,
        at_once: bool,
        done: bool = True,
        at_statement: str = "with stored as",
        then_away: bool = False,
    ) -> None:
        super().__init__(database, _nothing)
        self._at_once = at_once
        self._done = done
        self._at_statement = at_statement
        self._then_away = then_away
        self._is_lost = False

    @asynccontextmanager
    async def writing_autocommit(self) -> AsyncIterator[Connection]:
        with translate_errors():
            async with self._database.writing_autocommit() as connection:
                yield cast(Connection, _Losing(connection, self._fetch))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        if self._is_lost and self._then_away:
            raise DatabaseUnavailable
        is_to_be_lost = not self._at_once and not self._is_lost
        async with self._database.writing() as connection:
            yield connection
            self._is_lost = True
            if is_to_be_lost and not self._done:
                raise CommitUnknown
        if is_to_be_lost:
            raise CommitUnknown

    async def _fetch(
        self, connection: Connection, statement: str, arguments: tuple[object, ...]
    ) -> list[asyncpg.Record]:
        if self._at_statement not in statement:
            return await connection.fetch(statement, *arguments)
        if not self._at_once:
            raise asyncpg.SerializationError("for the sake of another")
        if self._done:
            await connection.fetch(statement, *arguments)
        self._is_lost = True
        raise ConnectionResetError


Fetch = Callable[[Connection, str, tuple[object, ...]], Awaitable[list[asyncpg.Record]]]


class _Losing:
    def __init__(self, connection: Connection, fetch: Fetch) -> None:
        self._connection = connection
        self._fetch = fetch

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._fetch(self._connection, statement, arguments)

    async def execute(self, statement: str, *arguments: object) -> str:
        return str(await self._connection.execute(statement, *arguments))


async def _nothing() -> None:
    return None
