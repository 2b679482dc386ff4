"""Database URLs: one that names several hosts becomes one URL for each of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from uuid import UUID

import asyncpg

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.project import Project
from holdfast.storage.notifications import NOTIFY, Hint


def split_hosts(database_url: str) -> list[str]:
    """URLs with one host each, in the order in which they were written.

    Hosts stand in the authority (``h1:5432,[::1]:5433``) or in ``?host=h1,/socket/dir&port=5432,5433``,
    as libpq reads them. A URL that names no host stays as it is.
    """
    parts = urlsplit(database_url)
    credentials, at, authority = parts.netloc.rpartition("@")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = _from_authority(authority) if authority else _from_query(query)
    if not hosts:
        return [database_url]
    kept = {name: value for name, value in query.items() if name not in ("host", "port")}
    ports = query.get("port", "").split(",")
    return [
        _with_one_host(parts.scheme, credentials + at, host, port or default, parts.path, kept)
        for (host, port), default in zip(hosts, _one_for_each(ports, len(hosts)), strict=True)
    ]


def _from_authority(authority: str) -> list[tuple[str, str]]:
    return [_host_and_port(spec) for spec in authority.split(",")]


def _from_query(query: dict[str, str]) -> list[tuple[str, str]]:
    return [_host_and_port(spec) for spec in query.get("host", "").split(",") if spec]


def _host_and_port(spec: str) -> tuple[str, str]:
    if spec.startswith("["):
        host, _, port = spec.partition("]")
        return host[1:], port.removeprefix(":")
    if spec.startswith("/"):
        return spec, ""
    host, _, port = spec.partition(":")
    return unquote(host), port


def _one_for_each(ports: list[str], count: int) -> list[str]:
    """A single port is meant for every host."""
    if len(ports) == 1:
        return ports * count
    return [port or "" for _, port in zip_longest(range(count), ports[:count])]


def _with_one_host(scheme: str, userinfo: str, host: str, port: str, path: str, query: dict[str, str]) -> str:
    if host.startswith("/"):
        asked = {**query, "host": host} | ({"port": port} if port else {})
        return _url(scheme, userinfo, path or "/", asked)
    shown = f"[{host}]" if ":" in host else host
    return _url(scheme, userinfo + shown + (f":{port}" if port else ""), path, query)


def _url(scheme: str, authority: str, path: str, query: dict[str, str]) -> str:
    """Not ``urlunsplit``: it drops the empty authority of a socket URL."""
    asked = "?" + urlencode(query, quote_via=quote, safe="/") if query else ""
    return f"{scheme}://{authority}{path}{asked}"


# A pool of connections: asyncpg's, with limits on waiting, which replaces all when one is lost.

WAIT_SECONDS = 5.0
CLOSE_SECONDS = 1.0

_LOST_CONNECTION = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# The server answers, and then closes the connection, though the driver does not know it yet.
_ENDED_BY_SERVER = ("08", "57P", "25P03")


class _Connection(asyncpg.Connection):
    async def close(self, *, timeout: float | None = None) -> None:
        """Close, also when the server has gone: the pool closes expired ones in a task that nobody awaits."""
        with suppress(OSError):
            await super().close(timeout=timeout)


class Connections:
    """Opened when first needed, kept for good, replaced when lost."""

    def __init__(
        self,
        connect: Callable[..., Coroutine[Any, Any, asyncpg.Connection]],
        database_url: str,
        size: int,
        *,
        command_timeout: float | None = None,
        server_settings: dict[str, str] | None = None,
    ) -> None:
        """``connect`` is called with the URL and the options."""
        self._options: dict[str, Any] = {
            "dsn": database_url,
            "connect": connect,
            "connection_class": _Connection,
            "max_size": size,
            "command_timeout": command_timeout,
            "server_settings": server_settings,
        }
        self._opened: asyncpg.Pool | None = None
        self._turns = asyncio.Semaphore(size)

    async def open(self) -> None:
        """Open the pool in the running loop, without a connection."""
        self._opened = await asyncpg.create_pool(
            min_size=0,
            max_queries=sys.maxsize,
            max_inactive_connection_lifetime=0,
            # No statement in between: the session has no state that the next user must not see.
            reset=_leave_session_as_it_is,
            **self._options,
        )

    @property
    def _pool(self) -> asyncpg.Pool:
        assert self._opened is not None, "The database is not open."
        return self._opened

    @asynccontextmanager
    async def one(self) -> AsyncIterator[asyncpg.Connection]:
        await self._take_turn()
        try:
            acquired = await self._pool.acquire()
            connection = cast(asyncpg.Connection, acquired)
            try:
                yield connection
            except asyncio.CancelledError:
                # Do not wait until the server has cancelled the statement.
                terminate(connection)
                raise
            except _LOST_CONNECTION:
                await self._give_up(connection)
                raise
            except asyncpg.PostgresError as failure:
                if (failure.sqlstate or "").startswith(_ENDED_BY_SERVER):
                    await self._give_up(connection)
                raise
            finally:
                await self._pool.release(acquired)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Wait a while for those who use a connection; then asyncpg terminates it."""
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()

    async def expire(self) -> None:
        """Replace each connection when it is next used."""
        await self._pool.expire_connections()

    async def _take_turn(self) -> None:
        """Limit the wait for a connection, and not the time that it takes to connect."""
        if self._turns.locked():
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turns.acquire()
        else:
            await self._turns.acquire()

    async def _give_up(self, connection: asyncpg.Connection) -> None:
        """Replace the idle connections too: they are probably lost as well, which a statement on each of them
        would find out only by waiting."""
        terminate(connection)
        await self._pool.expire_connections()


def terminate(connection: asyncpg.Connection) -> None:
    """Close at once; a connection that was lost has left the pool already, and refuses every call."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def _leave_session_as_it_is(connection: asyncpg.Connection) -> None:
    pass


# The door to PostgreSQL: connections, transactions, and what it means when they fail.

Connection = asyncpg.Connection

ProjectCache = dict[UUID, Project]
"""Projects as this process last saw them, so that not every unit brings its project along."""

FOREGROUND, BACKGROUND = "holdfast", "holdfast background"
"""Whom somebody waits for, and who can wait."""

CONNECT_TIMEOUT_SECONDS = 3.0
COMMAND_TIMEOUT_SECONDS = 20.0

# SQLSTATE classes in which the database, not the statement, is at fault: connection, authorisation,
# catalogue, resources, state, operator intervention, system, internal. 25006 is a server that has
# become a standby, 25P03 one that lost its patience.
_AWAY_CLASSES = ("08", "28", "3D", "53", "55", "57", "58", "XX")
_AWAY_STATES = ("25006", "25P03")
# What the driver raises when there is no answer. A standby where a primary was wanted is among it.
_LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# The server is gone, or on its way: whether it has stored what it was asked to, it does not say.
_GONE_STATES = ("08", "57P")
# A conflict, a deadlock, a lock that was not to be had in the time allowed.
_TRY_AGAIN_STATES = ("40001", "40P01", "55P03")
# Two that were decided at the same time wanted the same place; on what is stored now the loser decides anew.
_TRY_AGAIN_CONSTRAINTS = (
    "booking_pkey",
    "one_booking_claims_a_unit",
    "one_booking_per_idempotency_key",
    "one_hold_per_address_slot",
    "one_hold_per_visitor_slot",
)

# Whatever the operator has set for the database: our statements count on seeing what was committed
# before each of them.
_SESSION = {
    "default_transaction_isolation": "read committed",
    "jit": "off",
    # The server gives up before we do. A statement that we alone had given up could be stored after
    # its caller was told that it was not.
    "statement_timeout": "18s",
    # A process that stands still in the middle of a transaction must not keep its locks from the others.
    "idle_in_transaction_session_timeout": "10s",
}

# Writers look rows up by key and nothing else. Planning anew for each batch would cost more than
# the batch, and a plan made while the tables were empty must not read them whole for ever after: neither
# row by row, nor along an index from its start to where the batch begins.
_PLAN_ONCE = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_mergejoin": "off",
}
# The dispatcher's tables are small one minute and huge the next, and its statements take a few rows from the
# head of an index. A plan that hashes or sorts what is due would be kept for as long as the connection is.
# Nor does it wait for whoever has an endpoint locked: others would wait with it.
DISPATCHER_SETTINGS = {"enable_hashjoin": "off", "enable_bitmapscan": "off", "lock_timeout": "250ms"}


class CommitUnknown(DatabaseUnavailable):
    """The connection was lost during COMMIT: the change is stored, or it is not."""


class TransactionConflict(DatabaseUnavailable):
    """The database undid the transaction for the sake of another one; the same again may succeed."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class ConstraintViolated(Exception):
    """A constraint said no to what the domain had let through."""

    def __init__(self, constraint: str) -> None:
        super().__init__(f"The database refused the change ({constraint}).")
        self.constraint = constraint


class Database:
    """Two sets of connections: writers plan once and for all, readers plan for what they are asked."""

    def __init__(self, writers: Connections, readers: Connections) -> None:
        self._writers = writers
        self._readers = readers
        self._hint = Hint(self._tell_workers)
        self.project_cache: ProjectCache = {}

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        with translate_errors():
            async with self._readers.one() as connection:
                yield connection

    @asynccontextmanager
    async def reading_snapshot(self) -> AsyncIterator[Connection]:
        """All statements see the database as it was at the first."""
        async with (
            self.reading() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    @asynccontextmanager
    async def writing_autocommit(self) -> AsyncIterator[Connection]:
        """No transaction around it: each statement is one, and is stored when it is answered."""
        with translate_errors():
            async with self._writers.one() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """One transaction, committed at the end of the block."""
        with translate_errors():
            async with self._writers.one() as connection:
                transaction = connection.transaction()
                await transaction.start()
                try:
                    yield connection
                except asyncio.CancelledError:
                    # Whoever is in a hurry does not wait for an answer: the database undoes it by itself.
                    terminate(connection)
                    raise
                except BaseException:
                    await _roll_back(connection, transaction)
                    raise
                await _commit(connection, transaction)

    async def replace_connections(self) -> None:
        """Replace the connections when the tables are no longer what they were when the plans were made."""
        await self._writers.expire()
        await self._readers.expire()

    def notify_workers(self) -> None:
        """Workers look at once. They would soon anyway: that a hint is lost does not matter."""
        self._hint.give()

    async def _tell_workers(self) -> None:
        async with self._writers.one() as connection:
            await connection.execute(NOTIFY)

    async def open(self) -> None:
        """Open the pools, without a connection yet: a process starts while the database is away."""
        await asyncio.gather(self._writers.open(), self._readers.open())

    async def close(self) -> None:
        await self._hint.close()
        await asyncio.gather(self._writers.close(), self._readers.close())


def build_database(
    database_url: str,
    *,
    writers: int = 3,
    readers: int = 5,
    name: str = FOREGROUND,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Database:
    """Build a database that is yet to be opened.

    ``name`` is what the database calls its connections; ``more`` are settings besides.
    """

    def connections(size: int, of_kind: Mapping[str, str]) -> Connections:
        settings = {**_SESSION, **of_kind, **more, "application_name": name}
        return Connections(
            connect, database_url, size, command_timeout=COMMAND_TIMEOUT_SECONDS, server_settings=settings
        )

    return Database(connections(writers, _PLAN_ONCE), connections(readers, {}))


@asynccontextmanager
async def open_database(
    database_url: str,
    *,
    writers: int = 3,
    readers: int = 5,
    name: str = FOREGROUND,
    more: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Database]:
    """Build and open a database, and close it at the end of the block."""
    database = build_database(database_url, writers=writers, readers=readers, name=name, more=more)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def connect_to_listen(database_url: str) -> asyncpg.Connection:
    """A connection for one listener, which asks next to nothing of it."""
    settings = {"application_name": BACKGROUND}
    return await connect(database_url, command_timeout=CONNECT_TIMEOUT_SECONDS, server_settings=settings)


async def connect(
    database_url: str, *, timeout: float = CONNECT_TIMEOUT_SECONDS, **options: Any
) -> asyncpg.Connection:
    """Connect to the first host that takes writes.

    asyncpg's own list of hosts shares one timeout and ends at a host that is starting up.
    """
    last_failure: Exception = OSError("The database URL names no host.")
    options.setdefault("target_session_attrs", "read-write")
    for host_url in split_hosts(database_url):
        try:
            return await asyncpg.connect(host_url, timeout=timeout, **options)
        except (asyncpg.PostgresError, *_LOST) as failure:
            last_failure = failure
    raise last_failure


async def fetch_one(connection: Connection, statement: str, *arguments: object) -> asyncpg.Record:
    """The row of a statement that always gives one."""
    row = await connection.fetchrow(statement, *arguments)
    if row is None:
        raise LookupError(statement)
    return row


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn the driver's exceptions into ours; the driver is known in this package alone."""
    try:
        yield
    except asyncpg.PostgresError as failure:
        raise _named(failure) from failure
    except _LOST as failure:
        raise DatabaseUnavailable from failure


def _named(failure: asyncpg.PostgresError) -> Exception:
    state = failure.sqlstate or "08000"
    constraint = getattr(failure, "constraint_name", None)
    # A statement that was prepared before a migration is prepared anew the next time.
    is_outdated = isinstance(failure, asyncpg.InvalidCachedStatementError)
    if is_outdated or state in _TRY_AGAIN_STATES or constraint in _TRY_AGAIN_CONSTRAINTS:
        return TransactionConflict(str(failure))
    if state.startswith(_AWAY_CLASSES) or state in _AWAY_STATES:
        return DatabaseUnavailable()
    if state.startswith(("22", "23")):
        return ConstraintViolated(constraint or state)
    return failure


async def _commit(connection: Connection, transaction: Any) -> None:
    try:
        await transaction.commit()
    except (asyncpg.PostgresError, *_LOST) as failure:
        if _is_an_answer(failure):
            raise
        terminate(connection)
        raise CommitUnknown from failure


def _is_an_answer(failure: BaseException) -> bool:
    """Whether the server has said no. The driver tells a lost connection as if the server had."""
    state = getattr(failure, "sqlstate", None) or "08000"
    return not state.startswith(_GONE_STATES)


async def _roll_back(connection: Connection, transaction: Any) -> None:
    """After a lost connection there is nothing left to undo: the database has done it."""
    try:
        await transaction.rollback()
    except (asyncpg.PostgresError, *_LOST):
        terminate(connection)
