"""Machines that hang or vanish, servers that no longer take writes, and standbys that do not answer."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.operations.write_path import WriteResult
from holdfast.operations.write_path import write as write_batch
from holdfast.storage import database as module
from holdfast.storage import notifications, schema
from holdfast.storage.backup.dump import BackupOptions, back_up
from holdfast.storage.database import CommitUnknown, Connections, Database, connect, connect_to_listen
from holdfast.storage.notifications import LOST_CONNECTION, listen
from tests.support.clusters import Cluster
from tests.support.delivery_engine import eventually
from tests.support.inventory import new_project, replacement
from tests.support.ports import free_port
from tests.support.relay import Relay
from tests.support.server import PATIENCE_SECONDS
from tests.support.sql import as_owner, connected, value, with_database
from tests.support.standby import SESSIONS, WAITING, without_standby

SETTINGS = (
    *("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"),
    "client_connection_check_interval",
)
APPLICATION = "standby is away"
END_WAIT = "select {}(pid) from pg_stat_activity where application_name = $1"


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, int]]:
    """A server with its port. Unlike the embedded one, it is reached by TCP too."""
    port = free_port()
    folder = tmp_path_factory.mktemp("other")
    with Cluster(folder, listen_addresses="127.0.0.1", port=str(port)) as cluster:
        cluster.allow_tcp()
        yield cluster, port


@pytest.fixture
async def relay(postgres_url: str) -> AsyncIterator[Relay]:
    query = parse_qs(urlsplit(postgres_url).query)
    async with Relay(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}").running() as running:
        yield running


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides give the other up after a second."""
    for name, (option, _) in module.TCP_OPTIONS.items():
        seconds = 1000 if name == "tcp_user_timeout" else 1
        monkeypatch.setitem(module.TCP_OPTIONS, name, (option, seconds))
        monkeypatch.setitem(module.PEER_SETTINGS, name, str(seconds))
    monkeypatch.setitem(module.PEER_SETTINGS, "client_connection_check_interval", "100ms")


def through(relay: Relay, url: str) -> str:
    parts = urlsplit(url)
    return f"postgresql://{parts.netloc.rpartition('@')[0]}@127.0.0.1:{relay.port}{parts.path}"


async def test_every_session_tells_the_server_how_to_notice_a_dead_client(
    relay: Relay, postgres_url: str, tmp_path: Path
) -> None:
    postgres_url = as_owner(postgres_url)
    url = through(relay, postgres_url)
    async with Database(url) as database, database.reading(), database.writing():
        (await connect_to_listen(url)).terminate()
    async with schema.lock_filling(url):
        await schema.migrate(url)
    async with connected(postgres_url) as keeper:
        await keeper.execute("create database migrated")
        await schema.migrate(through(relay, with_database(postgres_url, "migrated")))
        await keeper.execute("drop database migrated")
    ours = len(relay.greetings)
    await back_up(url, BackupOptions(tmp_path / "backup", False, [], True), lambda _: None)
    # Two for the migration, two for the backup, of which one is that of pg_dump.
    assert (ours, len(relay.greetings)) == (7, 9)
    for name in (*SETTINGS, "synchronous_commit"):
        assert all(name.encode() in greeting for greeting in relay.greetings)


async def test_the_server_takes_the_settings_and_a_socket_needs_none(
    postgres_url: str, other_server: tuple[Cluster, int]
) -> None:
    cluster, port = other_server
    for url, expected in ((postgres_url, "0"), (through(_at(port), cluster.url), None)):
        connection = await connect(url)
        found = [
            await connection.fetchval("select setting from pg_settings where name = $1", name)
            for name in SETTINGS[:4]
        ]
        await connection.close()
        assert found == [expected or str(value) for _, value in module.TCP_OPTIONS.values()]


def _at(port: int) -> Relay:
    relay = Relay(port)
    relay.port = port
    return relay


@pytest.mark.parametrize("statement", ["select", "select pg_sleep(600)"], ids=["idle", "busy"])
@pytest.mark.usefixtures("quick")
async def test_the_server_frees_the_locks_of_a_client_that_vanished(
    statement: str, other_server: tuple[Cluster, int]
) -> None:
    cluster, port = other_server
    async with Relay(port).running() as relay, connected(cluster.url) as keeper:
        connection = await connect(through(relay, cluster.url))
        await connection.execute("select pg_advisory_lock(1)")
        using = asyncio.create_task(connection.execute(statement))
        asleep = "select exists (select from pg_stat_activity where query = $1 and state = $2)"
        state = "idle" if statement == "select" else "active"
        await eventually(lambda: keeper.fetchval(asleep, statement, state))
        relay.vanish()
        await keeper.execute("select pg_advisory_lock(1)", timeout=PATIENCE_SECONDS)
        connection.terminate()
        await asyncio.gather(using, return_exceptions=True)


@pytest.mark.usefixtures("quick")
async def test_a_connection_is_lost_when_the_machine_of_the_server_vanishes(
    relay: Relay, postgres_url: str
) -> None:
    connections = Connections(1, dsn=through(relay, postgres_url), connect=connect)
    await connections.open()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises((asyncpg.PostgresError, *LOST_CONNECTION)):  # noqa: PT012 - lost while it is used
            async with connections.one() as connection:
                sleeping = asyncio.create_task(connection.execute("select pg_sleep(600)"))
                await asyncio.sleep(0)
                relay.vanish()
                await sleeping
    await connections.close()


@pytest.mark.usefixtures("quick")
async def test_a_writer_that_waits_for_a_vanished_server_is_replaced_once_it_is_lost(
    relay: Relay, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    async with Database(through(relay, postgres_url), writers=1) as database:
        with pytest.raises(DatabaseUnavailable):
            await write(database, relay.vanish)
        relay.come_back()

        async def is_back() -> bool:
            try:
                await write(database, lambda: None)
            except DatabaseUnavailable:
                return False
            return True

        assert not await is_back(), "the slot is kept as long as the server may work for it"
        await eventually(is_back)
    loop, logged = asyncio.get_running_loop(), list[dict[str, Any]]()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: logged.append(context))
    gc.collect()  # Tasks that have failed, and were not asked why, say so now.
    loop.set_exception_handler(handler)
    assert not [context for context in logged if isinstance(context.get("future"), asyncio.Task)]


async def test_a_lost_writer_replaces_the_readers_and_a_lost_reader_the_writers(
    relay: Relay, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 2.0)
    async with Database(through(relay, postgres_url)) as database:
        for first, second in ((write, read), (read, write)):
            for use in (first, second):
                await use(database, lambda: None)
            with pytest.raises(DatabaseUnavailable):
                await first(database, relay.vanish)
            relay.come_back()
            # It would fail on a connection that vanished.
            await second(database, lambda: None)


async def read(database: Database, then: Callable[[], None]) -> None:
    async with database.reading() as connection:
        then()
        await connection.execute("select")


async def read_a_snapshot(database: Database, then: Callable[[], None]) -> None:
    async with database.reading_snapshot() as connection:
        then()
        await connection.execute("select")


async def begin(database: Database, then: Callable[[], None]) -> None:
    async with database.writing_autocommit() as connection:
        then()
        async with database.transaction(connection):
            pass


async def write(database: Database, then: Callable[[], None]) -> None:
    async with database.writing() as connection:
        then()
        await connection.execute("select")


async def commit(database: Database, then: Callable[[], None]) -> None:
    with pytest.raises(CommitUnknown):
        async with database.writing():
            then()
    raise DatabaseUnavailable


async def roll_back(database: Database, then: Callable[[], None]) -> None:
    async with database.writing():
        then()
        raise DatabaseUnavailable


@pytest.mark.parametrize("use", [read, read_a_snapshot, begin, write, commit, roll_back])
async def test_nobody_waits_for_ever_for_a_server_that_hangs(
    use: Callable[[Database, Callable[[], None]], Awaitable[None]],
    relay: Relay,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 0.2)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with Database(through(relay, postgres_url)) as database:
            with pytest.raises(DatabaseUnavailable):
                await use(database, relay.hang)


async def test_a_database_closes_while_a_server_that_hangs_is_to_notify(
    relay: Relay, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 10 * PATIENCE_SECONDS)
    async with asyncio.timeout(PATIENCE_SECONDS), Database(through(relay, postgres_url)) as database:
        await write(database, lambda: None)
        relay.hang()
        database.notify_workers()


async def test_a_connection_to_a_server_that_hangs_is_closed(relay: Relay, postgres_url: str) -> None:
    connection = await connect(through(relay, postgres_url))
    relay.hang()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await connection.close()


async def test_the_listener_leaves_a_server_that_hangs(
    relay: Relay, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(notifications, "PAUSE_AFTER_FAILURE_SECONDS", 0.05)
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_SECONDS", 0.5)
    stop, woken = asyncio.Event(), asyncio.Event()
    url = through(relay, postgres_url)
    listening = asyncio.create_task(listen(lambda: connect_to_listen(url), woken.set, stop))
    await woken.wait()
    relay.hang()
    before = len(relay.greetings)
    await eventually(lambda: len(relay.greetings) > before)
    stop.set()
    relay.come_back()
    await listening


@pytest.mark.parametrize("use", [Database.reading, Database.writing])
async def test_a_server_that_no_longer_takes_writes_is_given_up_for_the_next(
    use: Callable[[Database], AbstractAsyncContextManager[asyncpg.Connection]],
    postgres_url: str,
    other_server: tuple[Cluster, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever connection is the first to notice."""
    monkeypatch.setattr(notifications, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(notifications, "PAUSE_AFTER_FAILURE_SECONDS", 0.05)
    monkeypatch.setattr(module, "_last_hosts", {})
    demoted, port = other_server
    second = parse_qs(urlsplit(postgres_url).query)
    hosts = f"host=127.0.0.1,{second['host'][0]}&port={port},{second['port'][0]}"
    url = f"postgresql://{urlsplit(as_owner(postgres_url)).netloc}/postgres?{hosts}"
    stop, listeners = asyncio.Event(), list[asyncpg.Connection]()

    async def connect_listener() -> asyncpg.Connection:
        listeners.append(await connect_to_listen(url))
        return listeners[-1]

    async def write(database: Database) -> bool:
        try:
            async with database.writing() as connection:
                await connection.execute("select pg_logical_emit_message(true, 'test', 'written')")
        except DatabaseUnavailable:
            return False
        return True

    async with connected(demoted.url) as keeper, Database(url) as database:
        listening = asyncio.create_task(listen(connect_listener, lambda: None, stop))
        assert await write(database)
        assert await value(database, "show port") == str(port)
        await eventually(lambda: listeners)
        await keeper.execute("alter system set default_transaction_read_only = on")
        await keeper.execute("select pg_reload_conf()")
        try:
            await eventually(lambda: _fails(use(database)))
            assert await write(database)
            assert await value(database, "show port") != str(port), "readers have gone too"
            await eventually(lambda: len(listeners) > 1)
        finally:
            await keeper.execute("alter system reset default_transaction_read_only")
            await keeper.execute("select pg_reload_conf()")
            await eventually(lambda: _takes_writes(keeper))
            stop.set()
            await listening


async def _takes_writes(connection: asyncpg.Connection) -> bool:
    return bool(await connection.fetchval("show default_transaction_read_only") == "off")


async def _fails(using: AbstractAsyncContextManager[asyncpg.Connection]) -> bool:
    try:
        async with using as connection:
            await connection.execute("create table if not exists tried (number integer)")
            await connection.execute("drop table tried")
    except DatabaseUnavailable:
        return True
    return False


async def test_commits_without_a_standby_use_up_no_connections_and_go_on_when_it_is_back(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    # The server's own timeout must not end the wait either.
    settings = {"statement_timeout": "100ms"}
    async with connected(postgres_url) as owner:
        await owner.execute("create table kept (number integer)")

    async def keep(*, in_transaction: bool = True) -> bool:
        try:
            async with database.writing() if in_transaction else database.writing_autocommit() as connection:
                await connection.execute("insert into kept values (1)")
        except DatabaseUnavailable:
            return False
        return True

    async with (
        Database(postgres_url, writers=3, readers=1, name=APPLICATION, settings=settings) as database,
        connected(postgres_url) as keeper,
        without_standby(postgres_url) as standby_is_back,
    ):

        async def is_waiting(number: int) -> bool:
            return bool(await keeper.fetchval(WAITING, APPLICATION) == number)

        assert not await keep()
        assert not await keep(in_transaction=False)
        cancelled = asyncio.create_task(keep())
        await eventually(lambda: is_waiting(3))
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        for _ in range(20):
            assert not await keep()
        assert await is_waiting(3)
        assert await keeper.fetchval(SESSIONS, APPLICATION) <= 4, "three writers and a reader"
        assert await value(database, "select count(*) from kept") == 0, "readers go on, and see no more"
        await standby_is_back()
        await eventually(keep)
        assert await value(database, "select count(*) from kept") >= 4
        await eventually(lambda: is_waiting(0))


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("use", [Database.writing, Database.writing_autocommit])
async def test_a_commit_that_an_administrator_keeps_from_waiting_is_unknown(
    use: Callable[[Database], AbstractAsyncContextManager[asyncpg.Connection]], end: str, postgres_url: str
) -> None:
    async with connected(postgres_url) as keeper:
        # It must not hide the warning.
        name = await keeper.fetchval("select current_database()")
        await keeper.execute(f"alter database {name} set client_min_messages = error")
    async with (
        connected(postgres_url) as keeper,
        Database(postgres_url, name=APPLICATION) as database,
        without_standby(postgres_url),
    ):
        await keeper.execute("set synchronous_commit = local")
        await keeper.execute("create table kept (number integer)")

        async def keep() -> None:
            async with use(database) as connection:
                await connection.execute("insert into kept values (1)")

        keeping = asyncio.create_task(keep())
        await eventually(lambda: keeper.fetchval(WAITING, APPLICATION))
        await keeper.execute(
            f"select {end}(pid) from pg_stat_activity where application_name = $1", APPLICATION
        )
        with pytest.raises(DatabaseUnavailable):
            await keeping
        assert await value(database, "select count(*) from kept") == 1, "readers see it already"


async def test_what_became_visible_without_the_standby_is_not_acknowledged(
    postgres_url: str,
) -> None:
    """Neither by the look that follows an unknown commit."""
    async with Database(postgres_url, name=APPLICATION) as database:
        project_id = await new_project(database)
        async with connected(postgres_url) as keeper, without_standby(postgres_url) as standby_is_back:
            writing = asyncio.create_task(write_batch(database, [replacement(project_id, "A-1")]))
            await eventually(lambda: keeper.fetchval(WAITING, APPLICATION))
            await keeper.execute(END_WAIT.format("pg_cancel_backend"), APPLICATION)
            await eventually(lambda: value(database, "select exists (select from unit)"))
            await eventually(lambda: keeper.fetchval(WAITING, APPLICATION))
            assert not writing.done()
            await standby_is_back()
            (outcome,) = await writing
        assert isinstance(outcome, WriteResult)
        assert outcome.created


async def test_the_host_that_was_connected_last_is_tried_first(
    postgres_url: str, other_server: tuple[Cluster, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeout of one that does not answer is waited for once."""
    cluster, port = other_server
    hung, good = Relay(port), Relay(port)
    async with hung.running(), good.running():
        url = f"{through(hung, cluster.url).rpartition('/')[0]},127.0.0.1:{good.port}/postgres"
        hung.hang()
        for _ in range(3):
            await (await connect(url, timeout=3)).close()
        assert (len(hung.greetings), len(good.greetings)) == (1, 3)
        good.hang()
        hung.come_back()
        for _ in range(2):
            await (await connect(url, timeout=3)).close()
        assert (len(hung.greetings), len(good.greetings)) == (3, 4)


async def test_an_operator_cannot_let_commits_be_less_durable(postgres_url: str) -> None:
    async with connected(postgres_url) as owner:
        name = await owner.fetchval("select current_database()")
        await owner.execute(f'alter database "{name}" set synchronous_commit = off')
        try:
            async with Database(postgres_url) as database, database.writing_autocommit() as connection:
                assert await connection.fetchval("show synchronous_commit") == "on"
        finally:
            await owner.execute(f'alter database "{name}" reset synchronous_commit')
