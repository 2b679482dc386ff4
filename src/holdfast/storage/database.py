"""Connections to PostgreSQL: hosts, pools, transactions, and the meaning of errors."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

import asyncpg

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.project import Project
from holdfast.storage.notifications import CLOSE_SECONDS, LOST_CONNECTION, NOTIFY, Notifier

Connection = asyncpg.Connection
Row = asyncpg.Record | tuple[Any, ...]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Query = Callable[Concatenate[Connection, Arguments], Awaitable[Result]]

ProjectCache = dict[UUID, Project]
"""Projects as this process last saw them, so that they are not read with every unit."""

FOREGROUND, BACKGROUND = "holdfast", "holdfast background"
"""Names of connections: of those that somebody waits for, and of those that can wait."""

CONNECT_TIMEOUT_SECONDS = 3.0
COMMAND_TIMEOUT_SECONDS = 20.0
WAIT_SECONDS = 5.0
WRITE_FOR_READER_SECONDS = 2.0

# Classes of SQLSTATE, and single ones, in which the database is at fault and not the statement: connection,
# a server that has become a standby, a transaction that was idle, authorisation, catalogue, resources, state,
# operator intervention, system, internal.
_UNAVAILABLE_STATES = ("08", "25006", "25P03", "28", "3D", "53", "55", "57", "58", "XX")
# The server is gone or going, and does not say whether it has committed.
_COMMIT_UNKNOWN_STATES = ("08", "57P")
# The server answers, and then closes the connection, which the driver does not know yet.
_CONNECTION_CLOSED_STATES = ("08", "57P", "25P03")
# A conflict, a deadlock, a lock that was not granted in the time allowed.
CONFLICT_STATES = ("40001", "40P01", "55P03")
# A row of a composite type that a migration has widened since the connection was opened.
_OUTDATED_STATE = "42804"
# Two commands decided at the same time; the one that lost decides again on what is stored now.
_CONFLICT_CONSTRAINTS = ("booking_pkey", "one_booking_", "one_hold_")

# These hold whatever the operator has set for the database: our statements must see what was committed
# before each of them.
_SESSION = {
    "default_transaction_isolation": "read committed",
    "jit": "off",
    # The server times out before the client does. Otherwise a statement that the client gave up could be
    # stored after its caller got an error.
    "statement_timeout": "18s",
    # A process that stops in the middle of a transaction must not keep its locks.
    "idle_in_transaction_session_timeout": "10s",
}

# For both ends of every connection: a setting of the server, and the option of our socket. A machine that has
# not answered for 30 seconds is gone: the server ends the session and frees its locks, our kernel says so.
TCP_OPTIONS = {
    "tcp_keepalives_idle": (socket.TCP_KEEPIDLE, 10),
    "tcp_keepalives_interval": (socket.TCP_KEEPINTVL, 5),
    "tcp_keepalives_count": (socket.TCP_KEEPCNT, 4),
    "tcp_user_timeout": (socket.TCP_USER_TIMEOUT, 30_000),
}
PEER_SETTINGS = {name: str(value) for name, (_, value) in TCP_OPTIONS.items()}
# A server that runs a statement, or waits for a lock, looks for its client only if it is told to.
PEER_SETTINGS["client_connection_check_interval"] = "10s"

# Whatever the operator has set for the database or the role: what is acknowledged is on disk, here and on the
# synchronous standby, if there is one. More than that would do nothing for us, since we never read a standby.
# The server must be free to warn of a commit that does not wait for the standby any more.
DURABLE_COMMITS = {"synchronous_commit": "on", "client_min_messages": "warning"}
# The function of the server that gives that warning. Its message may be in any language.
_STANDBY_WAIT = "SyncRepWaitForLSN"

# For one that waits, or works, for as long as it takes.
NO_TIMEOUTS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}

# Writers look rows up by key only. Planning again for each batch would cost more than the batch, and a plan
# that was made while the tables were empty must never read them whole: neither row by row, nor along an index
# from its start to where the batch begins.
_PLAN_ONCE = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_mergejoin": "off"}
# The dispatcher's tables are small one minute and huge the next, and its statements take a few rows from the
# head of an index. A plan that hashes or sorts all due rows would be kept for the life of the connection.
# It does not wait for a locked endpoint either: other endpoints would wait with it.
DISPATCHER_SETTINGS = {"enable_hashjoin": "off", "enable_bitmapscan": "off", "lock_timeout": "250ms"}


class CommitUnknown(DatabaseUnavailable):
    """The connection was lost during COMMIT: the change is stored, or it is not.

    Or somebody has ended the wait for the synchronous standby: it is stored here, and perhaps not there.
    """


class TransactionConflict(DatabaseUnavailable):
    """The database rolled back the transaction in favor of another one; a retry may succeed."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class ConstraintViolated(Exception):
    """A constraint rejected a change that the domain had accepted."""

    def __init__(self, constraint: str) -> None:
        super().__init__(f"The database refused the change ({constraint}).")
        self.constraint = constraint


class Database:
    """Two pools of connections: writers plan each statement once, readers plan for the given arguments.

    ``async with`` opens and closes it.
    """

    def __init__(
        self,
        database_url: str,
        *,
        writers: int = 3,
        readers: int = 5,
        name: str = FOREGROUND,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``name`` is the application name of the connections, ``settings`` their further parameters."""

        def pool(size: int, of_kind: Mapping[str, str], **options: Any) -> Connections:
            server_settings = {**_SESSION, **of_kind, **settings, "application_name": name}
            return Connections(
                size,
                when_lost=self.replace_connections,
                dsn=database_url,
                connect=connect,
                server_settings=server_settings,
                **options,
            )

        load = _WritingConnection.load_row_widths
        self._writers = pool(writers, _PLAN_ONCE, connection_class=_WritingConnection, init=load)
        self._readers = pool(readers, {}, command_timeout=COMMAND_TIMEOUT_SECONDS)
        self._notifier = Notifier(self._notify)
        self._slow_writes: dict[str, asyncio.Future[object]] = {}
        self.project_cache: ProjectCache = {}

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the pools without connecting: a process starts even while the database is unavailable."""
        await asyncio.gather(self._writers.open(), self._readers.open())

    async def close(self) -> None:
        await self._notifier.close()
        await asyncio.gather(self._writers.close(), self._readers.close())

    def reading(self) -> AbstractAsyncContextManager[Connection]:
        return self._using(self._readers)

    @asynccontextmanager
    async def reading_snapshot(self) -> AsyncIterator[Connection]:
        """All statements see the database as it was at the first."""
        snapshot = {"isolation": "repeatable_read", "readonly": True}
        async with self.reading() as connection, self.transaction(connection, **snapshot):
            yield connection

    def writing_autocommit(self) -> AbstractAsyncContextManager[Connection]:
        """No transaction around it: each statement is one, and is stored when it is answered."""
        return self._using(self._writers)

    @asynccontextmanager
    async def _using(self, pool: Connections) -> AsyncIterator[Connection]:
        with translate_errors():
            try:
                async with pool.one() as connection:
                    yield connection
            except (asyncpg.ReadOnlySQLTransactionError, asyncpg.DatatypeMismatchError):
                # Another server takes writes now, and readers would go on to read what is no longer true. Or
                # a migration has widened a type.
                await self.replace_connections()
                raise

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """One transaction, committed at the end of the block."""
        async with self.writing_autocommit() as connection, self.transaction(connection):
            yield connection

    @asynccontextmanager
    async def transaction(self, connection: Connection, **options: Any) -> AsyncIterator[None]:
        transaction = connection.transaction(**options)
        await transaction.start()
        try:
            yield
        except (asyncio.CancelledError, *LOST_CONNECTION):
            # The connection is given up, which rolls back without a wait for the answer.
            raise
        except BaseException:
            await transaction.rollback()
            raise
        try:
            await transaction.commit()
        except (asyncpg.PostgresError, *LOST_CONNECTION) as failure:
            # The driver reports a lost connection as if the server had answered.
            state = getattr(failure, "sqlstate", None) or "08000"
            if not state.startswith(_COMMIT_UNKNOWN_STATES):
                raise
            raise CommitUnknown from failure

    async def read(
        self, query: Query[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run one function of this package on a reader's connection."""
        async with self.reading() as connection:
            return await query(connection, *args, **kwargs)

    async def write(
        self, query: Query[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run one function of this package without a transaction: each statement is stored at once."""
        async with self.writing_autocommit() as connection:
            return await query(connection, *args, **kwargs)

    async def read_to_acknowledge(
        self, query: Query[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Read what is to be answered like a write: what is found is on the synchronous standby too."""
        async with self.writing_autocommit() as connection:
            found = await query(connection, *args, **kwargs)
            await wait_for_standby(connection)
            return found

    @asynccontextmanager
    async def acknowledging(self, *refusals: type[Exception]) -> AsyncIterator[None]:
        """These errors tell whoever repeats a request that it was done: raise them only once the standby has
        what they rest on."""
        try:
            yield
        except refusals:
            await self.write(wait_for_standby)
            raise

    async def write_for_reader(self, purpose: str, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do what a read would have written first, but let the read go on after a moment: without its
        synchronous standby a server commits nothing. While one write is so slow, the next for the same
        purpose are left out."""
        slow = self._slow_writes.get(purpose)
        if slow is not None and not slow.done():
            return
        task = asyncio.ensure_future(work())
        task.add_done_callback(lambda one: one.cancelled() or one.exception())  # or it is logged
        if (await asyncio.wait((task,), timeout=WRITE_FOR_READER_SECONDS))[0]:
            task.result()
        else:
            self._slow_writes[purpose] = task

    async def replace_connections(self) -> None:
        """Replace every connection when it is next used: the server was lost, or its tables have changed."""
        await self._writers.expire()
        await self._readers.expire()

    def notify_workers(self) -> None:
        """Wake the workers soon. They also poll, so a lost notification does no harm."""
        self._notifier.notify()

    async def _notify(self) -> None:
        async with self._writers.one() as connection:
            await connection.execute(NOTIFY)


async def connect_to_listen(database_url: str) -> asyncpg.Connection:
    settings = {"application_name": BACKGROUND}
    return await connect(database_url, command_timeout=CONNECT_TIMEOUT_SECONDS, server_settings=settings)


async def connect(
    database_url: str, *, timeout: float = CONNECT_TIMEOUT_SECONDS, **options: Any
) -> asyncpg.Connection:
    """Connect to the first host that takes writes, with ``timeout`` for each of them. The host that was
    connected last comes first: one that does not answer would cost each connection its timeout.

    asyncpg's own list of hosts shares one timeout and ends at a host that rejects the login.
    """
    options = {"target_session_attrs": "read-write", "connection_class": WatchedConnection, **options}
    options["server_settings"] = PEER_SETTINGS | DURABLE_COMMITS | options.get("server_settings", {})
    last_failure: Exception | None = None
    last_host = _last_hosts.get(database_url)
    for host, port in sorted(parse_hosts(database_url), key=lambda one: one != last_host):
        options |= {"host": host, "port": port}
        try:
            connection: asyncpg.Connection = await asyncpg.connect(database_url, timeout=timeout, **options)
        except (asyncpg.PostgresError, *LOST_CONNECTION) as failure:
            last_failure = failure
        else:
            _last_hosts[database_url] = host, port
            return connection
    assert last_failure is not None
    raise last_failure


_last_hosts: dict[str, tuple[str | None, int | None]] = {}
"""The host that was connected last, by URL."""


def parse_hosts(database_url: str) -> Sequence[tuple[str, int] | tuple[None, None]]:
    """Return the hosts and ports that a URL names, in their order; None for the driver's default.

    Hosts stand in the authority (``h1:5432,[::1]:5433``) or in ``?host=h1,/socket/dir&port=5432,5433``,
    as libpq reads them.
    """
    parts = urlsplit(database_url)
    query = dict(parse_qsl(parts.query))
    authority = parts.netloc.rpartition("@")[2]
    hosts = [_parse_host(spec) for spec in (authority or query.get("host", "")).split(",") if spec]
    if not hosts:
        return [(None, None)]
    ports = query.get("port", "").split(",")
    # A single port is that of every host.
    in_query = ports * len(hosts) if len(ports) == 1 else [*ports, *[""] * len(hosts)]
    default = os.environ.get("PGPORT") or "5432"
    return [(host, int(port or in_query[at] or default)) for at, (host, port) in enumerate(hosts)]


def _parse_host(spec: str) -> tuple[str, str]:
    if spec.startswith("["):
        host, _, port = spec.partition("]")
        return host[1:], port.removeprefix(":")
    if spec.startswith("/"):
        return spec, ""
    host, _, port = spec.partition(":")
    return unquote(host), port


async def fetch_one(connection: Connection, statement: str, *arguments: object) -> asyncpg.Record:
    """Return the row of a statement that always gives one."""
    row = await connection.fetchrow(statement, *arguments)
    if row is None:
        raise LookupError(statement)
    return row


async def current_time(connection: Connection) -> datetime:
    """Return the database's time, cut to whole milliseconds. Call it when all locks are held."""
    time: datetime = await connection.fetchval("select date_trunc('milliseconds', statement_timestamp())")
    return time


async def wait_for_standby(connection: Connection) -> None:
    """Write something, so that the commit waits for a standby, which may be behind what is read here."""
    await connection.execute("select pg_logical_emit_message(true, 'holdfast', 'looked')")


async def execute_and_count(connection: Connection, statement: str, *arguments: object) -> int:
    return int((await connection.execute(statement, *arguments)).rpartition(" ")[2])


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn the driver's exceptions into ours; only this package knows the driver."""
    try:
        yield
    except asyncpg.PostgresError as failure:
        raise _translate(failure) from failure
    except LOST_CONNECTION as failure:
        raise DatabaseUnavailable from failure


def _translate(failure: asyncpg.PostgresError) -> Exception:
    state = failure.sqlstate or "08000"
    constraint = getattr(failure, "constraint_name", None) or ""
    # A statement that was prepared before a migration is prepared again the next time, by a new connection if
    # a type is another.
    is_outdated = isinstance(failure, asyncpg.InvalidCachedStatementError)
    if (
        is_outdated
        or state in (*CONFLICT_STATES, _OUTDATED_STATE)
        or constraint.startswith(_CONFLICT_CONSTRAINTS)
    ):
        return TransactionConflict(str(failure))
    if state.startswith(_UNAVAILABLE_STATES):
        return DatabaseUnavailable()
    if state.startswith(("22", "23")):
        return ConstraintViolated(constraint or state)
    return failure


class Connections:
    """asyncpg's pool with limited waits; connections are opened when first needed, and replaced when lost."""

    def __init__(
        self, size: int, when_lost: Callable[[], Awaitable[None]] | None = None, **options: Any
    ) -> None:
        """``when_lost`` is to expire all connections to the server; without it, the pool expires its own."""
        self._when_lost = when_lost or self.expire
        self._options = {"connection_class": WatchedConnection, "max_size": size, **options}
        self._free = asyncio.Semaphore(size)

    async def open(self) -> None:
        """Open the pool in the running loop, without a connection."""
        self._pool: asyncpg.Pool = await asyncpg.create_pool(
            min_size=0,
            max_queries=sys.maxsize,
            max_inactive_connection_lifetime=0,
            # No statement in between: the session has no state that the next user must not see.
            reset=_keep_session,
            **self._options,
        )

    @asynccontextmanager
    async def one(self) -> AsyncIterator[asyncpg.Connection]:
        # Limit the wait for a free connection, and not the time that it takes to connect.
        async with asyncio.timeout(WAIT_SECONDS if self._free.locked() else None):
            await self._free.acquire()
        try:
            connection: Any = await self._pool.acquire()
        except BaseException:
            self._free.release()
            raise
        is_lost = False
        try:
            yield connection
        except (asyncio.CancelledError, asyncpg.PostgresError, CommitUnknown, *LOST_CONNECTION) as failure:
            state = getattr(failure, "sqlstate", None) or "08000"
            is_lost = state.startswith(_CONNECTION_CLOSED_STATES)
            if is_lost and not isinstance(failure, asyncio.CancelledError):
                # Idle connections are probably lost too, which statements would find out only by waiting.
                await self._when_lost()
            raise
        finally:
            statement = getattr(connection, "unanswered", None)
            if statement is not None and not statement.done():
                # The server still works for it: new connections in its place would use up what it allows.
                statement.add_done_callback(lambda _: self._terminate(connection))
            elif is_lost:
                self._terminate(connection)
            else:
                self._free.release()
                await self._pool.release(connection)

    def _terminate(self, connection: asyncpg.Connection) -> None:
        # One that was lost has left the pool already, and rejects every call.
        with suppress(asyncpg.InterfaceError):
            connection.terminate()
        self._free.release()

    async def close(self) -> None:
        """Wait a while for those who use a connection; then asyncpg terminates it."""
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()

    async def expire(self) -> None:
        """Replace each connection when it is next used."""
        await self._pool.expire_connections()


class WatchedConnection(asyncpg.Connection):
    """Is lost when the machine of the server no longer answers."""

    def __init__(self, protocol: Any, transport: asyncio.BaseTransport, *others: Any) -> None:
        super().__init__(protocol, transport, *others)
        self.watch(transport)

    @staticmethod
    def watch(transport: asyncio.BaseTransport) -> None:
        sock = transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in TCP_OPTIONS.values():
                sock.setsockopt(socket.IPPROTO_TCP, option, value)

    async def close(self, *, timeout: float | None = None) -> None:
        """Close, also when the server has gone: the pool closes expired ones in a task that nobody awaits."""
        with suppress(OSError):
            await super().close(timeout=timeout or CLOSE_SECONDS)


def _left_to_server(method: Any) -> Any:
    """Let callers be cancelled, or wait too long, while the statement goes on and ends by its own timeout.

    The driver would ask the server to cancel it. A commit that waits for a standby would then become visible,
    although the standby does not have it.
    """

    async def call(self: _WritingConnection, statement: str, *arguments: Any, **options: Any) -> Any:
        arguments = self.widen_rows(statement, arguments)
        messages: list[Any] = []

        def collect(_: object, message: Any) -> None:
            messages.append(message)

        self.add_log_listener(collect)
        self.unanswered = asyncio.ensure_future(method(self, statement, *arguments, **options))
        self.unanswered.add_done_callback(lambda one: one.cancelled() or one.exception())  # or it is logged
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
                answer = await asyncio.shield(self.unanswered)
        finally:
            self.remove_log_listener(collect)
        # The driver calls listeners before whoever waits for the answer.
        if any(getattr(message, "server_source_function", "") == _STANDBY_WAIT for message in messages):
            raise CommitUnknown
        return answer

    return call


class _WritingConnection(WatchedConnection):
    unanswered: asyncio.Future[Any]
    """The last statement: if it is not done, nobody waits for it any more."""
    _row_widths: Mapping[str, int] = MappingProxyType({})
    """How many attributes the composite types had when the connection was opened."""

    async def load_row_widths(self) -> None:
        self._row_widths = dict(await self.fetch(_ROW_WIDTHS))

    def widen_rows(self, statement: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Send null for the attributes that a later release has added to a type: the server wants all."""
        for index, name in _row_parameters(statement):
            rows = arguments[index]
            added = self._row_widths.get(name, 0) - len(rows[0]) if rows else 0
            if added > 0:
                widened = [(*row, *[None] * added) for row in rows]
                arguments = (*arguments[:index], widened, *arguments[index + 1 :])
        return arguments

    execute = _left_to_server(asyncpg.Connection.execute)
    executemany = _left_to_server(asyncpg.Connection.executemany)
    fetch = _left_to_server(asyncpg.Connection.fetch)
    fetchrow = _left_to_server(asyncpg.Connection.fetchrow)
    fetchval = _left_to_server(asyncpg.Connection.fetchval)


# Of the types that end with "_write", as all do that parameters have.
_ROW_WIDTHS = r"""
    select relname::text, count(*)
    from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
    where relkind = 'c' and relname like '%\_write' and pg_table_is_visible(pg_class.oid)
    group by relname
"""
_ROW_PARAMETER = re.compile(r"\$(\d+)::(\w+_write)\[\]")


@lru_cache(1000)
def _row_parameters(statement: str) -> list[tuple[int, str]]:
    """Return the index and the type of each parameter that is an array of rows."""
    return [(int(number) - 1, name) for number, name in _ROW_PARAMETER.findall(statement)]


async def _keep_session(connection: asyncpg.Connection) -> None:
    pass
