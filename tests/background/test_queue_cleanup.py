"""The loop that finds what fell between two changes."""

from collections.abc import AsyncIterator

import pytest

from holdfast.background.jobs import CLEANUP_SECONDS, queue_jobs
from holdfast.operations import delivery_queue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, switch
from tests.support.sales import new_units

QUEUE = "select due_at, postponed from pending_delivery order by unit_version"


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database) as running:
        yield running


async def test_where_there_is_nothing_to_do_it_rests(engine: Engine) -> None:
    _, loop = queue_jobs(engine.dispatching, engine.tidying)
    assert await loop.run_once() >= CLEANUP_SECONDS


async def test_who_waits_for_what_is_gone_is_let_go(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    (first,) = await engine.claim()
    assert await engine.claim() == []
    await engine.execute("delete from pending_delivery where id = $1", first.delivery_id)
    await engine.execute("delete from in_flight")
    assert await engine.claim() == []
    await engine.tidying.run()
    assert len(await engine.claim()) == 1


async def test_who_waits_rightly_waits_on(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    assert len(await engine.claim()) == 1
    assert await engine.claim() == []
    before = await engine.rows(QUEUE)
    await engine.tidying.run()
    assert await engine.rows(QUEUE) == before


@pytest.mark.parametrize("units_at_once", [1, 2, 5, 6])
async def test_all_are_found_however_few_are_looked_at_together(
    engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch, units_at_once: int
) -> None:
    monkeypatch.setattr(delivery_queue, "UNITS_AT_ONCE", units_at_once)
    for _ in range(2):
        await engine.subscribe()
    codes = [f"A-{number}" for number in range(3)]
    project_id = await new_units(database, *codes)
    for code in codes:
        await switch(database, project_id, code, 2)
    assert len(await engine.claim()) == 6
    assert await engine.value("select count(*) from pending_delivery where postponed") == 6
    await engine.execute("delete from pending_delivery where not postponed")
    await engine.execute("delete from in_flight")
    await engine.tidying.run()
    assert await engine.value("select count(*) from pending_delivery where postponed") == 0
