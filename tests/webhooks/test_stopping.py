"""A worker that is told to stop finishes what it has begun, or says that it was cut off."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from holdfast.domain.delivery import CUT_OFF, DeliveryStatus
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage.database import Database
from holdfast.webhooks import dispatcher as dispatcher_module
from tests.support.clusters import NEWEST, Cluster
from tests.support.delivery_engine import Engine, an_engine, eventually, replying
from tests.support.receivers import Received, receiving


class Gate:
    """A receiver that answers when it is opened."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.open = asyncio.Event()

    async def answer(self, _: Received) -> int:
        self.arrived.set()
        await self.open.wait()
        return 200


@pytest.fixture
async def patient(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database, timeout_seconds=30, lease_seconds=60) as engine:
        yield engine


async def test_what_is_on_its_way_is_finished_and_recorded(patient: Engine) -> None:
    gate = Gate()
    async with receiving(replying(gate.answer)) as receiver:
        delivery_id = await patient.ping((await patient.subscribe(receiver.url)).endpoint)
        stop = asyncio.Event()
        running = asyncio.create_task(patient.dispatcher.run(stop))
        await asyncio.wait_for(gate.arrived.wait(), 5)
        stop.set()
        await asyncio.sleep(0.05)
        assert not running.done()
        gate.open.set()
        await asyncio.wait_for(running, 2)
    assert (await patient.find(delivery_id)).status is DeliveryStatus.DELIVERED
    assert await patient.value("select count(*) from in_flight") == 0


async def test_nothing_new_is_begun(patient: Engine) -> None:
    gate = Gate()
    async with receiving(replying(gate.answer)) as receiver:
        endpoint = (await patient.subscribe(receiver.url)).endpoint
        await patient.ping(endpoint)
        stop = asyncio.Event()
        running = asyncio.create_task(patient.dispatcher.run(stop))
        await asyncio.wait_for(gate.arrived.wait(), 5)
        stop.set()
        await patient.ping(endpoint)
        gate.open.set()
        await asyncio.wait_for(running, 2)
        assert len(receiver.requests) == 1
    assert await patient.value("select count(*) from pending_delivery") == 1


async def test_what_goes_on_for_too_long_is_cut_off_with_a_cause_and_tried_again(
    patient: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher_module, "FINISH_SECONDS", 0.2)
    gate = Gate()
    async with receiving(replying(gate.answer)) as receiver:
        delivery_id = await patient.ping((await patient.subscribe(receiver.url)).endpoint)
        stop = asyncio.Event()
        running = asyncio.create_task(patient.dispatcher.run(stop))
        await asyncio.wait_for(gate.arrived.wait(), 5)
        stop.set()
        await asyncio.wait_for(running, 2)
        gate.open.set()
        await receiver.all_left()
    found, (attempt,) = await patient.deliveries.find(delivery_id)
    assert attempt.cause == CUT_OFF
    assert attempt.duration_ms >= 200
    assert (found.status, found.attempts) == (DeliveryStatus.PENDING, 1)
    assert await patient.value("select count(*) from in_flight") == 0


async def test_an_idle_worker_stops_at_once(engine: Engine) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(engine.dispatcher.run(stop))
    await asyncio.sleep(0.05)
    stop.set()
    await asyncio.wait_for(running, 0.3)


async def test_a_worker_that_waits_for_a_busy_database_stops_in_time_all_the_same(
    patient: Engine, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked a table for long; the promise is 15 seconds, here of a finish of half a second."""
    monkeypatch.setattr(dispatcher_module, "FINISH_SECONDS", 0.2)
    monkeypatch.setattr(dispatcher_module, "LAST_RECORD_SECONDS", 0.2)
    await patient.subscribe()
    stop = asyncio.Event()
    async with database.writing() as other:
        await other.execute("lock table in_flight")
        running = asyncio.create_task(patient.dispatcher.run(stop))
        await asyncio.sleep(0.2)
        stop.set()
        started_at = time.perf_counter()
        _, late = await asyncio.wait([running], timeout=3)
        took = time.perf_counter() - started_at
    await running
    assert not late, f"still at it after {took:.1f} s"


@pytest.fixture
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, str]]:
    with Cluster(tmp_path_factory.mktemp("own"), NEWEST) as cluster:
        yield cluster, cluster.new_database()


async def test_when_the_database_is_gone_it_stops_all_the_same_and_the_lease_brings_it_back(
    own_cluster: tuple[Cluster, str],
) -> None:
    gate = Gate()
    cluster, url = own_cluster
    async with (
        Database(url) as database,
        an_engine(database, timeout_seconds=30, lease_seconds=60) as engine,
        receiving(replying(gate.answer)) as receiver,
    ):
        delivery_id = await engine.ping((await engine.subscribe(receiver.url)).endpoint)
        stop = asyncio.Event()
        running = asyncio.create_task(engine.dispatcher.run(stop))
        await asyncio.wait_for(gate.arrived.wait(), 5)
        cluster.crash()
        gate.open.set()
        stop.set()
        await asyncio.wait_for(running, 5)
        cluster.start()
        await again(engine.let_leases_run_out)
        assert await engine.dispatching.rescue() == 1
        assert (await engine.find(delivery_id)).attempts == 1


async def again(call: Callable[[], Awaitable[object]]) -> None:
    """The connections of before are dead, each of which says so once."""

    async def works() -> bool:
        try:
            await call()
        except DatabaseUnavailable:
            return False
        return True

    await eventually(works)


async def test_what_could_not_be_recorded_is_recorded_when_the_database_is_back(
    own_cluster: tuple[Cluster, str],
) -> None:
    gate = Gate()
    cluster, url = own_cluster
    async with (
        Database(url) as database,
        an_engine(database, timeout_seconds=30, lease_seconds=60) as engine,
        receiving(replying(gate.answer)) as receiver,
    ):
        delivery_id = await engine.ping((await engine.subscribe(receiver.url)).endpoint)
        async with engine.running():
            await asyncio.wait_for(gate.arrived.wait(), 5)
            cluster.crash()
            gate.open.set()
            await asyncio.sleep(0.2)
            cluster.start()

            async def is_delivered() -> bool:
                try:
                    return (await engine.find(delivery_id)).status is DeliveryStatus.DELIVERED
                except DatabaseUnavailable:
                    return False

            await eventually(is_delivered, 10)
        assert len(receiver.requests) == 1
        assert len(await engine.attempts(delivery_id)) == 1
