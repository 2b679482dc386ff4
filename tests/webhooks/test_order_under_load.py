"""The order of each unit with several workers, slow receivers and long chains."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

import pytest

from holdfast.background.jobs import queue_jobs, run_loops
from holdfast.domain.delivery import Schedule
from holdfast.storage.database import Database
from tests.support.delivery_engine import OFF, ON, Engine, an_engine, eventually, made, replying, switch
from tests.support.inventory import replacement, store
from tests.support.receivers import Received, receiving
from tests.support.sales import new_units

CODES = [f"A-{number}" for number in range(6)]
MANY = 300
KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


class Watching:
    """A receiver that notes which unit's requests are with it at the same time, and their order."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.with_it: dict[str, int] = defaultdict(int)
        self.overlaps = 0
        self.seen: list[tuple[str, str]] = []
        self.times: dict[str, int] = defaultdict(int)

    async def answer(self, request: Received) -> int:
        body = json.loads(request.body)
        unit = body["data"]["unit"]["code"]
        self.times[body["id"]] += 1
        is_first = self.times[body["id"]] == 1
        if is_first:
            self.seen.append((unit, body["createdAt"]))
            self.overlaps += self.with_it[unit]
            self.with_it[unit] += 1
        await asyncio.sleep(self._seconds * (hash(body["id"]) % 4))
        if is_first:
            self.with_it[unit] -= 1
        return 500 if is_first and hash(body["id"]) % 5 == 0 else 200


@asynccontextmanager
async def workers(count: int, postgres_url: str, schedule: Schedule) -> AsyncIterator[list[Engine]]:
    """Each with connections of its own, as processes have, and with their loops."""
    async with AsyncExitStack() as stack:
        engines = []
        for _ in range(count):
            database = await stack.enter_async_context(Database(postgres_url))
            engine = await stack.enter_async_context(
                an_engine(database, schedule=schedule, keys=[KEY], timeout_seconds=5)
            )
            stop = await stack.enter_async_context(engine.running(postgres_url))
            group = await stack.enter_async_context(asyncio.TaskGroup())
            group.create_task(run_loops(queue_jobs(engine.dispatching, engine.tidying), stop))
            stack.callback(stop.set)
            engines.append(engine)
        yield engines


@pytest.mark.parametrize("ordered", [False, True])
async def test_three_workers_and_a_slow_receiver_keep_the_order_of_each_unit(
    database: Database, postgres_url: str, ordered: bool
) -> None:
    watching = Watching(0.01)
    async with receiving(replying(watching.answer)) as receiver, an_engine(database, keys=[KEY]) as engine:
        await engine.subscribe(receiver.url, ordered=ordered, max_in_flight=8)
        project_id = await new_units(database, *CODES)
        async with workers(3, postgres_url, Schedule(0.02, 8)):
            for turn in range(10):
                await asyncio.gather(*(step(database, project_id, code, turn) for code in CODES))
            await eventually(lambda: all_ended(engine), 30)
    assert watching.overlaps == 0
    assert len(watching.seen) == 10 * len(CODES)
    for code in CODES:
        times = [created_at for unit, created_at in watching.seen if unit == code]
        assert times == sorted(times)


async def step(database: Database, project_id: UUID, code: str, turn: int) -> None:
    await store(database, replacement(project_id, code, status=ON if turn % 2 else OFF))


async def all_ended(engine: Engine) -> bool:
    return not await engine.value("select count(*) from pending_delivery")


async def test_a_long_chain_of_one_unit_is_delivered_in_order_and_without_pauses(
    database: Database, postgres_url: str
) -> None:
    """Whoever waits is let go by the one before it, not by the clock: 300 in far less than 300 looks."""
    watching = Watching(0)
    async with receiving(replying(watching.answer)) as receiver, an_engine(database, keys=[KEY]) as engine:
        endpoint = (await engine.subscribe(receiver.url, paused=True)).endpoint
        await switch(database, await new_units(database, "A-1"), "A-1", MANY)
        async with workers(1, postgres_url, Schedule(0.02, 8)):
            await engine.change(endpoint, paused=False)
            await eventually(lambda: all_ended(engine), 30)
    assert watching.overlaps == 0
    times = [created_at for _, created_at in watching.seen]
    assert times == sorted(times)
    assert len(times) == MANY


async def test_the_backlog_of_one_unit_delays_no_record_of_another_endpoint(
    engine: Engine, database: Database
) -> None:
    """One event is on its way, thousands wait behind it: to put those aside takes no time from others."""
    busy = (await engine.subscribe(max_in_flight=2)).endpoint
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    await switch(database, project_id, "A-1")
    claimed = await engine.claim()
    assert len(claimed) == 2
    await engine.execute(
        """
        insert into pending_delivery
            (id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, due_at, body)
        select gen_random_uuid(), endpoint_id, event, project_id, unit_id, unit_version + number, unit_code,
            created_at, due_at, body
        from pending_delivery cross join generate_series(1, 5000) as number
        where endpoint_id = $1
        """,
        busy.id,
    )
    async with asyncio.timeout(2):
        assert await engine.claim() == []
    assert await engine.dispatching.record([made(one) for one in claimed])
