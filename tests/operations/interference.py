"""Databases that are counted, held up, or in which something happens at the worst moment."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar, cast

import asyncpg

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage.database import CommitUnknown, Connection, Database, translate_errors

T = TypeVar("T")
Hook = Callable[[], Awaitable[object]]
Arguments = tuple[object, ...]
Rows = list[asyncpg.Record]
Fetch = Callable[[Connection, str, Arguments], Awaitable[Rows]]

STORES = "with stored as"
"""How the statement begins that stores units."""


class _Intercepted:
    """A connection whose ``fetch`` is another one."""

    def __init__(self, connection: Connection, fetch: Fetch) -> None:
        self._connection = connection
        self._fetch = fetch

    async def fetch(self, statement: str, *arguments: object) -> Rows:
        return await self._fetch(self._connection, statement, arguments)

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


class WrappedDatabase(Database):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._readers, self.project_cache = database._readers, database.project_cache

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        async with self._database.writing() as connection:
            yield cast(Connection, _Intercepted(connection, self._fetch))

    @asynccontextmanager
    async def writing_autocommit(self) -> AsyncIterator[Connection]:
        with translate_errors():
            async with self._database.writing_autocommit() as connection:
                yield cast(Connection, _Intercepted(connection, self._fetch))

    async def _fetch(self, connection: Connection, statement: str, arguments: Arguments) -> Rows:
        return await connection.fetch(statement, *arguments)


class CountingDatabase(WrappedDatabase):
    """Counts the batches and their statements, and can hold them up."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.transactions = 0
        self.statements: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Semaphore(0)

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
        await self.gate.wait()
        async with opened as connection:
            with connection.query_logger(self._note):
                yield connection

    def _note(self, logged: asyncpg.connection.LoggedQuery) -> None:
        # The driver looks types up, without JIT, when a connection first meets them.
        if "pg_catalog.pg_type" not in logged.query and "set_config('jit'" not in logged.query:
            self.statements.append(logged.query)


class InterferingDatabase(WrappedDatabase):
    """Runs ``after_looks`` in turn, each after a look at units, with a lock or without, and ``before_store``
    before the first statement that stores."""

    def __init__(self, database: Database, *after_looks: Hook, before_store: Hook | None = None) -> None:
        super().__init__(database)
        self._after_looks = iter(after_looks)
        self._before_store = before_store

    async def _fetch(self, connection: Connection, statement: str, arguments: Arguments) -> Rows:
        if STORES in statement and self._before_store is not None:
            before_store, self._before_store = self._before_store, None
            await before_store()
        rows = await connection.fetch(statement, *arguments)
        if "wanted.place" in statement and (hook := next(self._after_looks, None)) is not None:
            await hook()
        return rows


class LosingDatabase(WrappedDatabase):
    """Loses the connection once: at a statement that stores (``at_once``), or at the commit.

    ``done``: the database has done what it was asked to, though it cannot say so any more.
    ``away``: and takes no writes from then on.
    """

    def __init__(
        self,
        database: Database,
        *,
        at_once: bool,
        done: bool = True,
        at: str = STORES,
        away: bool = False,
    ) -> None:
        super().__init__(database)
        self._at_once, self._at_statement = at_once, at
        self._done, self._away = done, away
        self._is_lost = False

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        if self._is_lost and self._away:
            raise DatabaseUnavailable
        async with self._losing(self._database.writing()) as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self, connection: Connection, **options: Any) -> AsyncIterator[None]:
        async with self._losing(self._database.transaction(connection, **options)):
            yield

    @asynccontextmanager
    async def _losing(self, transaction: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        is_to_be_lost = not self._at_once and not self._is_lost
        async with transaction as within:
            yield within
            self._is_lost = True
            if is_to_be_lost and not self._done:
                raise CommitUnknown
        if is_to_be_lost:
            raise CommitUnknown

    async def _fetch(self, connection: Connection, statement: str, arguments: Arguments) -> Rows:
        if self._at_statement not in statement:
            return await connection.fetch(statement, *arguments)
        if not self._at_once:
            raise asyncpg.SerializationError("for the sake of another")
        if self._done:
            await connection.fetch(statement, *arguments)
        self._is_lost = True
        raise ConnectionResetError
