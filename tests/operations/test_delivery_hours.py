"""How many deliveries ended in each of the last hours."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.operations.deliveries import DeliverySearch
from holdfast.operations.delivery_queue import count_delivery_hours
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine

THIS_HOUR = "select date_trunc('hour', clock_timestamp(), 'UTC')"
# An attempt takes a millisecond here, which may not have passed when it is recorded.
HAVE_PASSED = "select date_trunc('milliseconds', clock_timestamp()) >= max(ended_at) from ended_delivery"
LOG_DAY = """
    create table if not exists ended_delivery_{day:%Y%m%d} partition of ended_delivery
    for values from ('{day:%Y-%m-%d} 00:00Z') to ('{after:%Y-%m-%d} 00:00Z')
"""


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database) as running:
        yield running


async def end(engine: Engine, status_code: int, ended_at: datetime | None = None) -> None:
    """A delivery for the only endpoint that ended so, at this moment or another."""
    (endpoint,) = await engine.subscribing.page(None, None, 1)
    delivery_id = await engine.ping(endpoint)
    for _ in range(engine.schedule.attempts):
        await engine.answer(await engine.claim(), status_code)
        await engine.make_due()
    if ended_at is not None:
        await _create_day(engine, ended_at)
        await engine.execute(
            "update ended_delivery set created_at = $2, ended_at = $2 where id = $1", delivery_id, ended_at
        )
    while not await engine.value(HAVE_PASSED):
        pass


async def _create_day(engine: Engine, day: datetime) -> None:
    await engine.execute(LOG_DAY.format(day=day, after=day + timedelta(days=1)))


async def counted(engine: Engine, settled_after: timedelta = timedelta()) -> list[tuple[Any, ...]]:
    while await count_delivery_hours(engine.database, settled_after):
        pass
    (endpoint,) = await engine.subscribing.page(None, None, 1)
    traffic = (await DeliverySearch(engine.database).load_traffic([endpoint.id]))[endpoint.id]
    return [tuple(hour)[1:] for hour in traffic.hours]


async def test_deliveries_are_counted_by_the_hour_in_which_they_ended(engine: Engine) -> None:
    await engine.subscribe()
    now = await engine.value(THIS_HOUR)
    earlier = now - timedelta(hours=5)
    await end(engine, 200, earlier + timedelta(minutes=1))
    await end(engine, 500, earlier + timedelta(minutes=59))
    await end(engine, 200, now)
    assert await counted(engine) == [(earlier, 1, 1), (now, 1, 0)]


async def test_each_is_counted_once(engine: Engine) -> None:
    await engine.subscribe()
    now = await engine.value(THIS_HOUR)
    await end(engine, 200, now)
    assert await counted(engine) == [(now, 1, 0)]
    assert await counted(engine) == [(now, 1, 0)]
    await end(engine, 500)
    assert sum(failed for *_, failed in await counted(engine)) == 1


async def test_what_ended_more_than_a_day_ago_is_not_counted(engine: Engine) -> None:
    await engine.subscribe()
    await end(engine, 200, await engine.value(THIS_HOUR) - timedelta(hours=24, minutes=1))
    assert await counted(engine) == []


async def test_what_was_cancelled_is_neither_delivered_nor_failed(engine: Engine) -> None:
    await engine.subscribe()
    await end(engine, 200, await engine.value(THIS_HOUR))
    await engine.execute("update ended_delivery set status = 'cancelled'")
    assert await counted(engine) == []


async def test_what_ended_a_moment_ago_is_counted_a_moment_later(engine: Engine) -> None:
    """It may not have been recorded yet."""
    await engine.subscribe()
    await end(engine, 200)
    assert await counted(engine, timedelta(minutes=1)) == []
    assert len(await counted(engine)) == 1


async def test_while_one_process_counts_another_leaves_it_alone(engine: Engine) -> None:
    async with engine.database.writing() as connection:
        await connection.execute("select from installation for no key update")
        assert await count_delivery_hours(engine.database, timedelta()) is False
