"""The loop that brings back what a stopped worker has kept, round upon round until there is none."""

from collections.abc import AsyncIterator

import pytest

from holdfast.background.jobs import RESCUE_SECONDS, queue_jobs
from holdfast.operations import delivery_queue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database) as running:
        yield running


async def lost(engine: Engine, count: int) -> None:
    endpoint = (await engine.subscribe(max_in_flight=100)).endpoint
    for _ in range(count):
        await engine.ping(endpoint)
    assert len(await engine.claim()) == count
    await engine.let_leases_run_out()


async def test_where_nothing_is_lost_it_rests(engine: Engine) -> None:
    loop, _ = queue_jobs(engine.dispatching, engine.tidying)
    assert await loop.run_once() == RESCUE_SECONDS


async def test_a_crashed_workers_deliveries_go_out_again_within_the_lease_and_two_rounds(
    engine: Engine,
) -> None:
    await lost(engine, 3)
    loop, _ = queue_jobs(engine.dispatching, engine.tidying)
    assert await loop.run_once() == 0
    assert await loop.run_once() == RESCUE_SECONDS
    await engine.make_due()
    assert len(await engine.claim()) == 3
    assert engine.dispatching.lease_seconds + 2 * RESCUE_SECONDS < 60


async def test_round_follows_upon_round_until_all_are_brought_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_queue, "RESCUED_AT_ONCE", 2)
    await lost(engine, 5)
    loop, _ = queue_jobs(engine.dispatching, engine.tidying)
    assert [await loop.run_once() for _ in range(4)] == [0, 0, 0, RESCUE_SECONDS]
    assert await engine.value("select count(*) from attempt") == 5


async def test_a_claim_of_what_is_gone_does_not_keep_its_place_for_ever(engine: Engine) -> None:
    await lost(engine, 1)
    await engine.execute("delete from pending_delivery")
    assert await queue_jobs(engine.dispatching, engine.tidying)[0].run_once() == RESCUE_SECONDS
    assert await engine.value("select count(*) from in_flight") == 0
