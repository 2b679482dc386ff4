"""Connections are shared, kept while they are good, and replaced when they are not."""

import asyncio
import gc
from collections.abc import AsyncIterator

import asyncpg
import psutil
import pytest

from holdfast.storage import database as module
from holdfast.storage.database import Connections, connect


@pytest.fixture
async def two(postgres_url: str) -> AsyncIterator[Connections]:
    connections = Connections(2, dsn=postgres_url, connect=connect)
    await connections.open()
    yield connections
    await connections.close()


async def server_pid(connections: Connections) -> int:
    async with connections.one() as connection:
        return int(connection.get_server_pid())


async def test_a_connection_is_used_again(two: Connections) -> None:
    assert await server_pid(two) == await server_pid(two)


async def test_a_refused_statement_leaves_the_connection_as_good_as_before(two: Connections) -> None:
    before = await server_pid(two)
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with two.one() as connection:
            await connection.execute("select 1 / 0")
    assert await server_pid(two) == before


async def test_a_connection_that_was_lost_is_replaced(two: Connections) -> None:
    before = await server_pid(two)
    async with two.one() as connection, two.one() as other:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await other.execute("select pg_terminate_backend($1)", connection.get_server_pid())
        await lost.wait()
    assert await server_pid(two) != before


async def test_what_was_idle_when_another_one_was_lost_is_not_trusted(two: Connections) -> None:
    async with two.one() as connection, two.one() as other:
        before = {connection.get_server_pid(), other.get_server_pid()}
    with pytest.raises(asyncpg.PostgresError):
        async with two.one() as lost:
            await lost.execute("select pg_terminate_backend(pg_backend_pid())")
    async with two.one() as connection, two.one() as other:
        assert not before & {connection.get_server_pid(), other.get_server_pid()}


async def test_a_connection_is_not_used_again_in_the_middle_of_a_statement(two: Connections) -> None:
    started = asyncio.Event()
    pid = 0

    async def sleep_long() -> None:
        nonlocal pid
        async with two.one() as connection:
            pid = connection.get_server_pid()
            started.set()
            await connection.execute("select pg_sleep(60)")

    sleeper = asyncio.create_task(sleep_long())
    await started.wait()
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert await server_pid(two) != pid


async def test_no_more_are_opened_than_agreed_and_the_next_one_waits(two: Connections) -> None:
    async with two.one():
        async with two.one():
            third = asyncio.create_task(server_pid(two))
            await asyncio.sleep(0)
            assert not third.done()
        assert await third


async def test_nobody_waits_for_ever(two: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    async with two.one(), two.one():
        with pytest.raises(TimeoutError):
            await server_pid(two)
    assert await server_pid(two)


async def test_a_failure_to_connect_gives_the_turn_back() -> None:
    async def fail(*_: object, **__: object) -> asyncpg.Connection:
        raise OSError("away")

    connections = Connections(1, dsn="postgresql://nowhere/db", connect=fail)
    await connections.open()
    for _ in range(3):
        with pytest.raises(OSError, match="away"):
            await server_pid(connections)


async def test_closing_takes_a_connection_from_one_who_does_not_give_it_back(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    connections = Connections(2, dsn=postgres_url, connect=connect)
    await connections.open()
    async with connections.one() as connection:
        await connections.close()
        with pytest.raises(asyncpg.InterfaceError):
            await connection.execute("select 1")


async def test_expired_connections_are_replaced_when_they_are_next_used(two: Connections) -> None:
    before = await server_pid(two)
    await two.expire()
    assert await server_pid(two) != before


async def test_a_cancelled_user_of_a_lost_connection_stays_cancelled(two: Connections) -> None:
    lost, forever = asyncio.Event(), asyncio.Event()

    async def wait_after_loss() -> None:
        async with two.one() as connection, two.one() as other:
            connection.add_termination_listener(lambda _: lost.set())
            await other.execute("select pg_terminate_backend($1)", connection.get_server_pid())
            await forever.wait()

    waiting = asyncio.create_task(wait_after_loss())
    await lost.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await server_pid(two)


async def test_an_expired_connection_whose_server_has_gone_is_replaced_without_a_failure(
    two: Connections, caplog: pytest.LogCaptureFixture
) -> None:
    """The pool closes it in a task that nobody waits for."""
    before = await server_pid(two)
    # Nothing here gives the loop a chance to notice.
    backend = psutil.Process(before)
    backend.terminate()
    backend.wait(30)
    await two.expire()
    assert await server_pid(two) != before
    gc.collect()
    assert caplog.messages == []
