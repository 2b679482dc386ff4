"""The door to PostgreSQL: connections, transactions, and what it means when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import MappingProxyType
from typing import Any
from uuid import UUID

import asyncpg

from holdfast.domain.errors import DatabaseAway
from holdfast.domain.project import Project
from holdfast.storage.connections import Connections, terminate
from holdfast.storage.dsn import split_hosts
from holdfast.storage.hints import NOTIFY, Hint

Connection = asyncpg.Connection

KnownProjects = dict[UUID, Project]
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
OF_A_DISPATCHER = {"enable_hashjoin": "off", "enable_bitmapscan": "off", "lock_timeout": "250ms"}


class CommitUnknown(DatabaseAway):
    """The connection was lost during COMMIT: the change is stored, or it is not."""


class TryAgain(DatabaseAway):
    """The database undid the transaction for the sake of another one; the same again may succeed."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class RefusedByDatabase(Exception):
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
        self.known_projects: KnownProjects = {}

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        with failures_named():
            async with self._readers.one() as connection:
                yield connection

    @asynccontextmanager
    async def reading_one_moment(self) -> AsyncIterator[Connection]:
        """All statements see the database as it was at the first."""
        async with (
            self.reading() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    @asynccontextmanager
    async def writing_at_once(self) -> AsyncIterator[Connection]:
        """No transaction around it: each statement is one, and is stored when it is answered."""
        with failures_named():
            async with self._writers.one() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """One transaction, committed at the end of the block."""
        with failures_named():
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

    async def forget_plans(self) -> None:
        """Replace the connections when the tables are no longer what they were when the plans were made."""
        await self._writers.expire()
        await self._readers.expire()

    def hint_at_deliveries(self) -> None:
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
def failures_named() -> Iterator[None]:
    """Turn the driver's exceptions into ours; the driver is known in this package alone."""
    try:
        yield
    except asyncpg.PostgresError as failure:
        raise _named(failure) from failure
    except _LOST as failure:
        raise DatabaseAway from failure


def _named(failure: asyncpg.PostgresError) -> Exception:
    state = failure.sqlstate or "08000"
    constraint = getattr(failure, "constraint_name", None)
    # A statement that was prepared before a migration is prepared anew the next time.
    is_outdated = isinstance(failure, asyncpg.InvalidCachedStatementError)
    if is_outdated or state in _TRY_AGAIN_STATES or constraint in _TRY_AGAIN_CONSTRAINTS:
        return TryAgain(str(failure))
    if state.startswith(_AWAY_CLASSES) or state in _AWAY_STATES:
        return DatabaseAway()
    if state.startswith(("22", "23")):
        return RefusedByDatabase(constraint or state)
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
