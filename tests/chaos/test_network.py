"""The relays do to connections what the faults of the network say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage import database as module
from holdfast.storage.database import Connection, Database, connect
from tests.chaos import network_faults
from tests.chaos.faults import Injection, Kind
from tests.chaos.network import Link, Network, When
from tests.support.delivery_engine import eventually
from tests.support.server import PATIENCE_SECONDS
from tests.support.sql import connected

STORE = "with stored as (insert into kept values ($1) returning number) select number from stored"
HALF_OPEN = "half open"
SESSIONS = f"select count(*) from pg_stat_activity where application_name = '{HALF_OPEN}'"


@pytest.fixture
async def network(postgres_url: str) -> AsyncIterator[Network]:
    query = parse_qs(urlsplit(postgres_url).query)
    path = Path(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")
    async with Network().running({"one": path, "two": path}) as network:
        yield network


@pytest.fixture
async def keeper(postgres_url: str) -> AsyncIterator[Connection]:
    """A connection that no fault touches."""
    async with connected(postgres_url) as connection:
        await connection.execute("create table if not exists kept (number integer)")
        await connection.execute("truncate kept")
        yield connection


def through(postgres_url: str, *links: Link) -> str:
    parts = urlsplit(postgres_url)
    hosts, ports = ",".join("127.0.0.1" for _ in links), ",".join(str(link.port) for link in links)
    return f"postgresql://{parts.netloc.rpartition('@')[0]}@{parts.path}?host={hosts}&port={ports}"


async def store(database: Database, number: int, *, in_transaction: bool) -> None:
    async with database.writing() if in_transaction else database.writing_autocommit() as connection:
        await connection.fetchval(STORE, number)


@pytest.mark.parametrize("in_transaction", [True, False], ids=["transaction", "single statement"])
@pytest.mark.parametrize("when", ["before", "in", "after"])
async def test_a_connection_is_cut_at_its_commit(
    when: When, in_transaction: bool, network: Network, postgres_url: str, keeper: Connection
) -> None:
    link = network.app["one"]
    async with Database(through(postgres_url, link), writers=1) as database:
        await store(database, 1, in_transaction=in_transaction)  # The driver prepares the statement once.
        link.cut_at(when)
        async with database.writing() as connection:
            await connection.execute("select number from kept for update")
            link.cut_at(None)
        link.cut_at(when)
        with pytest.raises(DatabaseUnavailable):
            await store(database, 2, in_transaction=in_transaction)
        await store(database, 3, in_transaction=in_transaction)
    assert link.cuts == {when: 1}
    stored = {row[0] for row in await keeper.fetch("select number from kept")}
    expected = {"before": [{1, 3}], "in": [{1, 3}, {1, 2, 3}], "after": [{1, 2, 3}]}
    assert stored in expected[when]


async def test_only_sessions_of_the_application_are_cut(
    network: Network, postgres_url: str, keeper: Connection
) -> None:
    link = network.app["one"]
    link.cut_at("before")
    async with Database(through(postgres_url, link), name="holdfast background") as database:
        await store(database, 1, in_transaction=True)
    assert not link.cuts
    assert await keeper.fetchval("select count(*) from kept") == 1


async def test_an_answer_that_was_withheld_is_handed_over_when_the_fault_ends(
    network: Network, postgres_url: str, keeper: Connection
) -> None:
    link = network.app["one"]
    async with Database(through(postgres_url, link)) as database, asyncio.timeout(PATIENCE_SECONDS):
        async with database.writing_autocommit() as connection:
            await connection.fetchval(STORE, 0)
        async with keeper.transaction():
            await keeper.execute("lock table kept")
            link.cut_at("after")
            storing = asyncio.create_task(store(database, 1, in_transaction=False))
            await eventually(lambda: link.cutting is None)
            link.cut_at(None)
        await storing
    assert not link.cuts


async def test_a_network_that_hung_goes_on_with_the_same_connection(
    network: Network, postgres_url: str
) -> None:
    link = network.app["one"]
    connection = await connect(through(postgres_url, link))
    link.hang()
    answer = asyncio.create_task(connection.fetchval("select 1"))
    await eventually(lambda: link.withheld_bytes > 0)
    assert not answer.done()
    await link.heal()
    assert await answer == 1
    await connection.close()


async def test_new_connections_work_at_once_when_the_old_ones_were_lost(
    network: Network, postgres_url: str
) -> None:
    link = network.app["one"]
    lost = await connect(through(postgres_url, link))
    link.lose(link.current_connections())
    unanswered = asyncio.create_task(lost.fetchval("select 1"))
    connection = await connect(through(postgres_url, link))
    assert await connection.fetchval("select 2") == 2
    await connection.close()
    assert not unanswered.done()
    lost.terminate()
    await asyncio.gather(unanswered, return_exceptions=True)


async def test_the_server_keeps_a_session_whose_client_alone_was_closed(
    network: Network, postgres_url: str, keeper: Connection
) -> None:
    link = network.app["one"]
    async with Database(through(postgres_url, link), writers=1, name=HALF_OPEN) as database:
        await store(database, 1, in_transaction=True)
        assert link.close_clients() == 1
        with pytest.raises(DatabaseUnavailable):
            await store(database, 2, in_transaction=True)
        await store(database, 3, in_transaction=True)
        assert await keeper.fetchval(SESSIONS) == 2
    link.cut()


async def test_connections_are_refused_until_the_port_listens_again(
    network: Network, postgres_url: str
) -> None:
    link = network.app["one"]
    link.refuse()
    with pytest.raises(ConnectionRefusedError):
        await connect(through(postgres_url, link))
    await link.heal()
    await (await connect(through(postgres_url, link))).close()


async def test_the_next_host_is_taken_where_the_first_answers_nothing(
    network: Network, postgres_url: str
) -> None:
    first, second = network.app.values()
    first.swallows_new = True
    connection = await connect(through(postgres_url, first, second), timeout=3)
    assert (first.swallowed > 0, len(second.greetings)) == (True, 1)
    await connection.close()


@pytest.mark.parametrize(("delay", "speed"), [(0.005, None), (0.0, 2_000_000), (0.005, 2_000_000)])
async def test_a_slow_network_loses_and_reorders_nothing(
    delay: float, speed: int | None, network: Network, postgres_url: str
) -> None:
    link = network.app["one"]
    connection = await connect(through(postgres_url, link))
    link.line.delay, link.line.bytes_per_second = delay, speed
    text = ",".join(map(str, range(30_000)))
    for _ in range(2):
        assert await connection.fetchval("select $1::text", text) == text
        await link.heal()
    await connection.close()


async def test_what_exceeds_the_memory_of_a_relay_waits_in_the_kernel(
    network: Network, postgres_url: str
) -> None:
    link = network.app["one"]
    connection = await connect(through(postgres_url, link))
    link.line.delay = 0.05
    assert len(await connection.fetchval("select repeat('x', 20000000)")) == 20_000_000
    await connection.close()


async def test_a_connection_is_reset_while_the_server_is_down(tmp_path: Path) -> None:
    nowhere = tmp_path / "absent"
    async with Network().running({"one": nowhere, "two": nowhere}) as network:
        with pytest.raises((ConnectionError, asyncpg.ConnectionDoesNotExistError)):
            await connect(f"postgresql://holdfast@127.0.0.1:{network.app['one'].port}/holdfast")


FAULTS = [
    pytest.param(kind, id=kind.name, marks=[pytest.mark.slow] * (number > 0))
    for number, kind in enumerate(network_faults.KINDS)
]


async def inject(kind: Kind, network: Network) -> Injection:
    injection = Injection(kind, 1, 0.0, 0.5, Random(1))
    scene: Any = SimpleNamespace(network=network)
    await kind.run(scene, injection)
    return injection


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_of_the_network_is_seen_and_healed(
    kind: Kind, network: Network, postgres_url: str, keeper: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_SECONDS", 0.5)
    links = network.replication if "standby" in kind.name else network.app

    async def keep_writing() -> None:
        while True:
            with suppress(DatabaseUnavailable):
                await store(database, 1, in_transaction=False)
            await asyncio.sleep(0.01)

    async with Database(through(postgres_url, *links.values()), writers=2) as database:
        writing = asyncio.create_task(keep_writing())
        await eventually(lambda: keeper.fetchval("select exists (select from kept)"))
        injection = await inject(kind, network)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    assert injection.effect
    for link in network.links:
        connection = await connect(through(postgres_url, link))
        assert await connection.fetchval("select 1") == 1
        await connection.close()


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_fault_that_nobody_meets_does_not_count(
    kind: Kind, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_faults, "_EFFECT_SECONDS", 0.5)
    assert not (await inject(kind, network)).effect
