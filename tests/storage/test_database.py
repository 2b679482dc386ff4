"""The way to PostgreSQL: hosts, connections that are shared and replaced, and commits without an answer."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import psutil
import pytest

from holdfast.domain.delivery import DeliveryStatus
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage import database as module
from holdfast.storage import delivery_log, units
from holdfast.storage.database import (
    CommitUnknown,
    Connection,
    Connections,
    Database,
    TransactionConflict,
    connect,
    parse_hosts,
)
from holdfast.storage.units import UnitWrite
from tests.support.delivery_engine import ALWAYS, LATEST, eventually
from tests.support.inventory import replacement, store
from tests.support.sales import hold, new_unit
from tests.support.sql import as_owner, connected, execute, value, with_database


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://h/db", [("h", 5432)]),
        ("postgres://u:p@h:5433/db", [("h", 5433)]),
        ("postgresql://u@h1:1,h2:2/db", [("h1", 1), ("h2", 2)]),
        ("postgresql://us%40er:p%40s%2Cs%3A@h1,h2/db?sslmode=require", [("h1", 5432), ("h2", 5432)]),
        ("postgresql://u@h1:1,h2/db?port=6", [("h1", 1), ("h2", 6)]),
        ("postgresql://h1,h2", [("h1", 5432), ("h2", 5432)]),
        ("postgresql://u@[::1]:5433,[2001:db8::2]/db", [("::1", 5433), ("2001:db8::2", 5432)]),
        ("postgresql://u@/db?host=/a%20b/c&port=5433", [("/a b/c", 5433)]),
        ("postgresql:///db?host=/s", [("/s", 5432)]),
        ("postgresql://u@%2Frun%2Fpg:5433,h2/db", [("/run/pg", 5433), ("h2", 5432)]),
        ("postgresql://u@/db?host=h1,/s,h3&port=1,2,3", [("h1", 1), ("/s", 2), ("h3", 3)]),
        ("postgresql://u@/db?host=h1,h2,h3&port=1,,3", [("h1", 1), ("h2", 5432), ("h3", 3)]),
        ("postgresql:///db", [(None, None)]),
    ],
)
def test_hosts_are_read_as_libpq_reads_them(url: str, hosts: list[tuple[str | None, int | None]]) -> None:
    assert parse_hosts(url) == hosts


def test_the_default_port_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    assert parse_hosts("postgresql://h1,h2:1/db") == [("h1", 6543), ("h2", 1)]


async def test_a_read_only_host_is_skipped(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both hosts of the URL are the same server, which takes writes when it is asked for the second time."""
    keeper, asked = await asyncpg.connect(as_owner(postgres_url)), []
    name = await keeper.fetchval("select current_database()")
    setting = f'alter database "{name}" {{}} default_transaction_read_only'
    connect_to = asyncpg.connect

    async def connecting(*arguments: Any, **options: Any) -> asyncpg.Connection:
        asked.append(options["host"])
        if len(asked) == 2:
            await keeper.execute(setting.format("reset"))
        return await connect_to(*arguments, **options)

    monkeypatch.setattr(asyncpg, "connect", connecting)
    await keeper.execute(setting.format("set") + " = on")
    start, _, socket = postgres_url.partition("host=")
    connection = await connect(f"{start}host={socket.split('&')[0]},{socket}")
    assert len(asked) == 2
    assert await connection.fetchval("show transaction_read_only") == "off"
    await connection.close()
    await keeper.close()


async def test_a_database_that_is_not_there_is_away(postgres_url: str) -> None:
    async with Database(with_database(postgres_url, "nowhere")) as database:
        with pytest.raises(DatabaseUnavailable):
            await value(database, "select 1")


async def test_a_late_statement_is_not_stored(postgres_url: str, database: Database) -> None:
    limit = float(module._SESSION["statement_timeout"].removesuffix("s"))
    assert limit < module.COMMAND_TIMEOUT_SECONDS, "the server gives up before we do"
    assert await value(database, "show statement_timeout") == f"{limit:g}s"
    await execute(database, "create table waited as select 1 as number")
    async with (
        Database(postgres_url, settings={"statement_timeout": "200ms"}) as impatient,
        database.writing() as holder,
    ):
        await holder.execute("select * from waited for update")
        with pytest.raises(DatabaseUnavailable):
            async with impatient.writing_autocommit() as connection:
                await connection.execute("update waited set number = 2")
    assert await value(database, "select number from waited") == 1


async def test_a_slow_write_holds_up_no_write_for_another_purpose(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_FOR_READER_SECONDS", 0.01)
    standby, written = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        written.set()

    await database.write_for_reader("reports", standby.wait)
    await database.write_for_reader("reports", write)
    assert not written.is_set()
    await database.write_for_reader("events", write)
    assert written.is_set()
    standby.set()


async def test_a_look_along_the_indexes_leaves_the_planner_as_it_was(database: Database) -> None:
    planner = "select name, setting from pg_settings where name like 'enable_%'"
    async with database.reading_snapshot() as connection:
        before = await connection.fetch(planner)
        for filters in (ALWAYS, ALWAYS._replace(status=DeliveryStatus.PENDING)):
            await delivery_log.list_deliveries(connection, [], None, LATEST, filters, 1)
            assert await connection.fetch(planner) == before
        await delivery_log.find_latest(connection, [], ALWAYS)
        assert await connection.fetch(planner) == before


# Connections


@pytest.fixture
async def two(postgres_url: str) -> AsyncIterator[Connections]:
    connections = Connections(2, dsn=postgres_url, connect=connect)
    await connections.open()
    yield connections
    await connections.close()


async def server_pid(connections: Connections) -> int:
    async with connections.one() as connection:
        return int(connection.get_server_pid())


async def lose(connection: asyncpg.Connection, other: asyncpg.Connection) -> None:
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _: lost.set())
    await other.execute("select pg_terminate_backend($1)", connection.get_server_pid())
    await lost.wait()


async def test_a_connection_is_used_again_until_it_expires(two: Connections) -> None:
    before = await server_pid(two)
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with two.one() as connection:
            await connection.execute("select 1 / 0")
    assert await server_pid(two) == before
    await two.expire()
    assert await server_pid(two) != before


async def test_lost_and_idle_connections_are_replaced(two: Connections) -> None:
    before = await server_pid(two)
    async with two.one() as connection, two.one() as other:
        await lose(connection, other)
    assert await server_pid(two) != before
    async with two.one() as connection, two.one() as other:
        idle = {connection.get_server_pid(), other.get_server_pid()}
    with pytest.raises(asyncpg.PostgresError):
        async with two.one() as lost:
            await lost.execute("select pg_terminate_backend(pg_backend_pid())")
    async with two.one() as connection, two.one() as other:
        assert not idle & {connection.get_server_pid(), other.get_server_pid()}


async def test_a_connection_is_not_used_again_in_the_middle_of_a_statement(two: Connections) -> None:
    started = asyncio.Event()
    pid = 0

    async def sleep_long() -> None:
        nonlocal pid
        async with two.one() as connection:
            pid = connection.get_server_pid()
            started.set()
            await connection.execute("select pg_sleep(600)")

    sleeper = asyncio.create_task(sleep_long())
    await started.wait()
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert await server_pid(two) != pid


async def test_nobody_waits_for_ever_for_a_turn(two: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two.one():
        async with two.one():
            third = asyncio.create_task(server_pid(two))
            await asyncio.sleep(0)
            assert not third.done()
        assert await third
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    async with two.one(), two.one():
        with pytest.raises(TimeoutError):
            await server_pid(two)
    assert await server_pid(two)


async def test_a_failure_to_connect_gives_the_turn_back(anyio_backend: str) -> None:
    async def fail(*_: object, **__: object) -> asyncpg.Connection:
        raise OSError("away")

    connections = Connections(1, dsn="postgresql://nowhere/db", connect=fail)
    await connections.open()
    for _ in range(3):
        with pytest.raises(OSError, match="away"):
            await server_pid(connections)


async def test_closing_takes_connections_away(two: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    async with two.one() as connection:
        await two.close()
        with pytest.raises(asyncpg.InterfaceError):
            await connection.execute("select 1")


async def test_a_cancelled_user_of_a_lost_connection_stays_cancelled(two: Connections) -> None:
    lost, forever = asyncio.Event(), asyncio.Event()

    async def wait_after_loss() -> None:
        async with two.one() as connection, two.one() as other:
            await lose(connection, other)
            lost.set()
            await forever.wait()

    waiting = asyncio.create_task(wait_after_loss())
    await lost.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await server_pid(two)


async def test_a_dead_connection_expires_quietly(two: Connections, caplog: pytest.LogCaptureFixture) -> None:
    """The pool closes it in a task that nobody waits for."""
    before = await server_pid(two)
    # Nothing here gives the loop a chance to notice.
    backend = psutil.Process(before)
    backend.terminate()
    backend.wait(60)
    await two.expire()
    assert await server_pid(two) != before
    gc.collect()
    assert caplog.messages == []


# A commit that is not answered, and the look for what it was to store

GATE = 4711
SLOW_COMMIT = """
    create table kept (number integer);
    create function wait_at_commit() returns trigger language plpgsql as $$ {body} $$;
    create constraint trigger wait_at_commit after insert on kept
        deferrable initially deferred for each row execute function wait_at_commit()
"""
WHO_WAITS = "select pid from pg_locks where locktype = 'advisory' and objid = $1 and not granted"


@pytest.fixture
async def gate(database: Database, postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """At its commit a transaction with a row in ``kept`` waits until the gate is opened."""
    body = f"begin perform pg_advisory_xact_lock({GATE}); return null; end"
    await execute(database, SLOW_COMMIT.format(body=body))
    async with connected(postgres_url) as keeper:
        await keeper.execute("select pg_advisory_lock($1)", GATE)
        yield keeper


async def waiting_in_commit(gate: asyncpg.Connection) -> int:
    """The process of the transaction that waits there."""
    await eventually(lambda: gate.fetchval(WHO_WAITS, GATE))
    return int(await gate.fetchval(WHO_WAITS, GATE))


async def keep(database: Database, used: list[Connection] | None = None) -> None:
    async with database.writing() as connection:
        if used is not None:
            used.append(connection)
        await connection.execute("insert into kept values (1)")


async def test_a_cut_line_leaves_the_commit_unknown(database: Database, gate: asyncpg.Connection) -> None:
    used: list[Connection] = []
    keeping = asyncio.create_task(keep(database, used))
    pid = await waiting_in_commit(gate)
    used[0]._transport.abort()  # type: ignore[attr-defined]
    with pytest.raises(CommitUnknown):
        await keeping
    await gate.execute("select pg_advisory_unlock($1)", GATE)
    ended = "select not exists (select from pg_stat_activity where pid = $1)"
    await eventually(lambda: gate.fetchval(ended, pid))
    # The server has gone on without us.
    assert await gate.fetchval("select count(*) from kept") == 1


async def test_an_ended_process_leaves_it_unknown(database: Database, gate: asyncpg.Connection) -> None:
    # More often than there are connections: each that was lost is replaced.
    for _ in range(5):
        keeping = asyncio.create_task(keep(database))
        await gate.execute("select pg_terminate_backend($1)", await waiting_in_commit(gate))
        with pytest.raises(CommitUnknown):
            await keeping
    await gate.execute("select pg_advisory_unlock($1)", GATE)
    await keep(database)
    assert await gate.fetchval("select count(*) from kept") == 1


async def test_a_refused_commit_is_known_not_to_be_stored(database: Database) -> None:
    await execute(database, SLOW_COMMIT.format(body="begin return null; end"))
    outcomes: list[tuple[str, type[Exception]]] = [
        ("check_violation", module.ConstraintViolated),
        ("serialization_failure", module.TransactionConflict),
        ("53100", DatabaseUnavailable),
        *((state, CommitUnknown) for state in ("57P01", "57P02", "57P03", "08006")),
    ]
    for state, meaning in outcomes:
        body = f"$$ begin raise exception 'no' using errcode = '{state}'; end $$ language plpgsql"
        await execute(database, f"create or replace function wait_at_commit() returns trigger as {body}")
        with pytest.raises(meaning) as refused:
            await keep(database)
        assert isinstance(refused.value, CommitUnknown) is (meaning is CommitUnknown)


async def test_a_row_of_a_type_that_was_widened_is_sent_with_nulls_by_the_next_connection(
    database: Database,
) -> None:
    """The attributes that are known come first. A connection that was open before is replaced."""
    await execute(database, "create type some_write as (number integer)")
    query = "select number from unnest($1::some_write[])"

    async def send() -> Any:
        async with database.writing() as connection:
            return await connection.fetchval(query, [(1,)])

    assert await send() == 1
    await execute(database, "alter type some_write add attribute name text, add attribute age integer")
    with pytest.raises(TransactionConflict):
        await send()
    assert await send() == 1
    await execute(database, "alter type some_write drop attribute age")
    with pytest.raises(TransactionConflict):
        await send()
    assert await send() == 1
    await execute(database, "drop type some_write")


async def changes_made(database: Database) -> list[UnitWrite]:
    """Of a hold, and of a unit that was created."""
    key = await new_unit(database)
    booking = await hold(database, key)
    (created,) = await store(database, replacement(key[0], "A-2"))
    _, (snapshot,), _ = await database.read(units.load_for_update, {}, [key], locked=False)
    assert snapshot.unit is not None
    return [UnitWrite(snapshot.unit, None, 1, new_bookings=(booking,)), UnitWrite(created.unit, None)]


async def test_a_role_without_privileges_finds_what_was_stored(database: Database) -> None:
    """A commit that has nothing to write would not wait for a standby that what it saw still waits for."""
    changes = await changes_made(database)
    async with database.writing() as connection:
        assert await connection.fetchval("select pg_current_xact_id_if_assigned()") is None
        found = await units.find_stored(connection, changes)
        assert await connection.fetchval("select pg_current_xact_id_if_assigned()") is not None
        assert not await connection.fetchval("select current_setting('is_superuser')::boolean")
    assert set(found) == {change.unit.id for change in changes}
    assert all(found.values())


async def test_what_stands_there_otherwise_was_not_stored(database: Database) -> None:
    held, created = await changes_made(database)
    (booking,) = held.new_bookings
    for other in (
        held._replace(unit=held.unit._replace(version=held.unit.version + 1)),
        held._replace(new_bookings=(booking._replace(token_hash=b"another"),)),
        held._replace(new_bookings=(), changed_bookings=(booking._replace(number=booking.number + 1),)),
        created._replace(unit=created.unit._replace(id=uuid4())),
    ):
        async with database.writing() as connection:
            assert await units.find_stored(connection, [other]) == {}
