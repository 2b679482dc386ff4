"""SQL beside the code: on a synchronous connection of its own, or on those of a database."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg

from holdfast.storage.database import Database

Result = TypeVar("Result")

MAY_IDLE = {"idle_in_transaction_session_timeout": "5min"}
"""Settings of a database: on a busy machine a test may stand still in a transaction."""
REFUSE = """
    create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'not today' using errcode = '{state}'; end
    $$;
    create trigger refuse before insert or update on {table}
        for each row when ({condition}) execute function refuse()
"""


def with_database(url: str, name: str) -> str:
    """The same cluster, another database."""
    parts = urlsplit(url)
    # Not urlunsplit: it drops the empty authority of a socket URL.
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{name}{query}"


_owners: dict[str, str] = {}


def remember_owner(url: str, owner_url: str) -> None:
    """The application uses ``url``; `Sql` and `connected` look in from beside, and may do everything."""
    _owners[urlsplit(url).netloc] = urlsplit(owner_url).netloc


def as_owner(url: str) -> str:
    login = urlsplit(url).netloc
    return url.replace(login, _owners.get(login, login), 1) if login else url


class Sql:
    def __init__(self, url: str) -> None:
        self.url = url
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(asyncpg.connect(as_owner(url)))

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return self._runner.run(coroutine)

    def execute(self, statement: str, *arguments: object) -> None:
        self.run(self._connection.execute(statement, *arguments))

    def rows(self, statement: str, *arguments: object) -> list[dict[str, Any]]:
        return [dict(row) for row in self.run(self._connection.fetch(statement, *arguments))]

    def row(self, statement: str, *arguments: object) -> dict[str, Any]:
        (only,) = self.rows(statement, *arguments)
        return only

    def value(self, statement: str, *arguments: object) -> Any:
        return self.run(self._connection.fetchval(statement, *arguments))

    def close(self) -> None:
        try:
            self.run(self._connection.close())
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):  # The database has crashed.
            self._connection.terminate()
        finally:
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def blank_database(cluster_url: str, options: str = "", *, has_one_role: bool = False) -> Iterator[str]:
    """A database without even a schema. With one role it is as that of a service, or of an older release."""
    name = f"blank_{uuid4().hex}"
    with Sql(with_database(cluster_url, "postgres")) as sql:
        sql.execute(f"create database {name} {options}")
        if has_one_role:
            sql.execute(f"alter database {name} set holdfast.application_role = ''")
        yield with_database(cluster_url, name)
        sql.execute(f"drop database {name} with (force)")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection for what no part of ours does."""
    connection = await asyncpg.connect(as_owner(url))
    try:
        yield connection
    finally:
        await connection.close()


async def rows(database: Database, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.fetch(statement, *arguments)]


async def value(database: Database, statement: str, *arguments: object) -> Any:
    ((only,),) = await rows(database, statement, *arguments)
    return only


async def execute(database: Database, *statements: str) -> None:
    """In one transaction, as the owner, so that a test may change the schema too."""
    async with owning(database) as connection, connection.transaction():
        for statement in statements:
            await connection.execute(statement)


def owning(database: Database) -> AbstractAsyncContextManager[asyncpg.Connection]:
    """A connection of the owner to the same database."""
    return connected(database._writers._options["dsn"])
