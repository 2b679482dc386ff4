"""Claims: each delivery once, up to the cap of each endpoint over all workers, and fairly."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from itertools import chain
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.delivery import ClaimedDelivery
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage import delivery_queue
from holdfast.storage.database import DISPATCHER_SETTINGS, Database
from tests.support.delivery_engine import ON, Engine, an_engine, switch
from tests.support.inventory import replacement, store
from tests.support.sales import new_units

CAP = 5
BACKLOG = """
    insert into pending_delivery
        (id, endpoint_id, event, unit_id, unit_version, unit_code, created_at, due_at, body)
    select gen_random_uuid(), $1, 'unit.held', gen_random_uuid(), 1, 'A-1', now(),
        now() - interval '1 hour' + number * interval '1 ms', '{}'
    from generate_series(1, $2) as number
"""


async def endpoint_with_backlog(engine: Engine, count: int, **config: Any) -> UUID:
    endpoint = await engine.endpoint(**config)
    await engine.execute(BACKLOG, endpoint.id, count)
    return endpoint.id


def by_endpoint(claimed: list[ClaimedDelivery]) -> Counter[UUID]:
    return Counter(one.endpoint_id for one in claimed)


@asynccontextmanager
async def workers(engine: Engine, postgres_url: str, count: int) -> AsyncIterator[list[DeliveryQueue]]:
    """Each with connections of its own, which are open."""
    async with AsyncExitStack() as stack:
        queues = []
        for _ in range(count):
            database = await stack.enter_async_context(Database(postgres_url))
            queues.append(DeliveryQueue(database, engine.schedule, 35))
            await queues[-1].claim(0)
        yield queues


async def most_in_flight(engine: Engine, postgres_url: str) -> int:
    """Of an endpoint with a cap, when two workers claim at the same time, again and again."""
    await endpoint_with_backlog(engine, 100, max_in_flight=CAP)
    most = 0
    async with workers(engine, postgres_url, 2) as queues:
        for _ in range(20):
            await asyncio.gather(*(queue.claim(100) for queue in queues))
            most = max(most, await engine.value("select count(*) from in_flight"))
            await engine.execute("delete from in_flight")
    return most


async def test_two_workers_that_claim_at_once_keep_the_cap(engine: Engine, postgres_url: str) -> None:
    assert await most_in_flight(engine, postgres_url) == CAP


@pytest.mark.slow
async def test_without_the_lock_of_the_lane_they_would_exceed_the_cap(
    engine: Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the race is there. Each worker looks in an order of its own, so that it is the cap that
    stops it, and not the other's claim of the same delivery."""
    for name, locked, unlocked in (
        ("_LOCK_LANES", "for no key update skip locked", ""),
        ("_TAKE", "order by due_at\n", "order by hashtext(id::text || pg_backend_pid())\n"),
        ("_TAKE", "from ranked where", "from ranked cross join (select pg_sleep(0.02)) as slow where"),
        ("_TAKE", "and turn <= $4\n    )", "and turn <= $4 on conflict do nothing\n    )"),
    ):
        statement = getattr(delivery_queue, name)
        assert locked in statement
        monkeypatch.setattr(delivery_queue, name, statement.replace(locked, unlocked, 1))
    assert await most_in_flight(engine, postgres_url) > CAP


async def test_many_workers_claim_each_delivery_once(engine: Engine, postgres_url: str) -> None:
    for _ in range(4):
        await endpoint_with_backlog(engine, 40, max_in_flight=100)
    taken: list[ClaimedDelivery] = []
    async with workers(engine, postgres_url, 4) as queues:
        while len(taken) < 160:
            taken += chain(*await asyncio.gather(*(queue.claim(15) for queue in queues)))
    assert len({one.delivery_id for one in taken}) == len(taken) == 160
    assert len({one.token for one in taken}) > 1


@pytest.mark.parametrize("count", [100, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_long_backlog_does_not_delay_another_endpoint(engine: Engine, count: int) -> None:
    await endpoint_with_backlog(engine, count)
    other = await endpoint_with_backlog(engine, 1)
    async with asyncio.timeout(60):
        claimed = await engine.claim(10)
    assert len(claimed) == 10
    assert by_endpoint(claimed)[other] == 1


async def test_a_budget_is_kept_and_shared_evenly(engine: Engine) -> None:
    for number in range(5):
        await endpoint_with_backlog(engine, 10 * (number + 1))
    assert list(by_endpoint(await engine.claim(10)).values()) == [2] * 5
    assert list(by_endpoint(await engine.claim(15)).values()) == [3] * 5
    idle = await endpoint_with_backlog(engine, 5)
    assert by_endpoint(await engine.claim(1)) == {idle: 1}


async def test_every_lane_has_its_turn(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoints = {await endpoint_with_backlog(engine, 50) for _ in range(8)}
    served: Counter[UUID] = Counter()
    # With less room than endpoints, of which none has anything in flight.
    for _ in range(25):
        claimed = await engine.claim(3)
        assert len(claimed) == 3
        served += by_endpoint(claimed)
        await engine.answer(claimed)
    assert set(served) == endpoints
    monkeypatch.setattr(delivery_queue, "LANES_AT_ONCE", 3)
    taken: Counter[UUID] = Counter()
    for _ in range(6):
        taken += by_endpoint(await engine.claim(3))
    assert set(taken) == endpoints
    assert max(taken.values()) <= 3


async def test_a_paused_endpoint_keeps_its_backlog_and_sends_it_when_it_is_resumed(engine: Engine) -> None:
    endpoint = await engine.endpoint(paused=True)
    project_id = await engine.queue_events("A-1", "A-2")
    assert await engine.claim() == []
    assert await engine.dispatching.seconds_until_next() is None
    await engine.change(endpoint, paused=False)
    assert len(await engine.claim()) == 2
    await engine.execute("delete from in_flight")
    await engine.change(endpoint, paused=True)
    await switch(engine.database, project_id, "A-2", 2)
    assert await engine.claim() == []
    assert await engine.value("select count(*) from pending_delivery") == 3


async def test_a_cap_takes_effect_at_once(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_in_flight=4)
    await engine.execute(BACKLOG, endpoint.id, 20)
    assert len(await engine.claim()) == 4
    # Nobody need look again before one of them has ended.
    assert await engine.dispatching.seconds_until_next() is None
    await engine.change(endpoint, max_in_flight=2)
    assert await engine.claim() == []
    await engine.change(endpoint, max_in_flight=6)
    assert len(await engine.claim()) == 2


async def test_the_oldest_go_first_and_what_is_not_due_says_when_it_will_be(engine: Engine) -> None:
    await endpoint_with_backlog(engine, 20)
    oldest = await engine.rows("select id from pending_delivery order by due_at limit 5")
    assert {(one.delivery_id,) for one in await engine.claim(5)} == set(oldest)
    await engine.execute("update pending_delivery set due_at = now() + interval '1 hour'")
    assert await engine.claim() == []
    seconds = await engine.dispatching.seconds_until_next()
    assert seconds is not None
    assert 1800 < seconds <= 3600


async def test_a_change_whose_time_is_ahead_of_the_clock_is_sent_at_once(engine: Engine) -> None:
    """After the database's clock was set back; the times of one unit's events go up all the same."""
    await engine.endpoint()
    project_id = await new_units(engine.database, "A-1")
    await engine.execute("update unit set updated_at = now() + interval '1 hour'")
    await switch(engine.database, project_id, "A-1")
    assert len(await engine.claim()) == 1


async def test_a_claim_has_the_secret_the_url_and_the_body_of_now(engine: Engine) -> None:
    issued = await engine.subscribe()
    delivery_id = await engine.ping(issued.endpoint)
    await engine.change(issued.endpoint, url="http://127.0.0.1:11/moved")
    (claimed,) = await engine.claim()
    assert (claimed.delivery_id, claimed.url) == (delivery_id, "http://127.0.0.1:11/moved")
    assert claimed.secret.id == issued.endpoint.secret_id
    assert engine.box.open(claimed.secret.sealed) == issued.text
    assert claimed.body == (await engine.find(delivery_id)).body


async def test_statements_are_planned_anew_once_the_queue_is_many_times_larger(postgres_url: str) -> None:
    """Plans are kept for as long as a connection is."""

    async with (
        Database(postgres_url, writers=1, readers=1, settings=DISPATCHER_SETTINGS) as database,
        an_engine(database) as engine,
    ):
        used = []
        for count in (0, 0, 5000, 0):
            await endpoint_with_backlog(engine, count)
            await engine.tidying.run()
            async with database.writing_autocommit() as connection:
                used.append(connection.get_server_pid())
    assert used[0] == used[1] != used[2] == used[3]


# First attempts for one endpoint and unit go out in the order of the commits, and never overlap.


async def versions(engine: Engine, claimed: list[ClaimedDelivery]) -> list[int]:
    versions = "select array_agg(unit_version order by unit_version) from pending_delivery where id = any($1)"
    return list(await engine.value(versions, [one.delivery_id for one in claimed]))


async def test_the_next_event_of_a_unit_waits_for_the_first_attempt_of_the_one_before(engine: Engine) -> None:
    await engine.endpoint()
    await engine.queue_events("A-1", "A-2", times=3)
    for status_code, expected in ((200, 2), (500, 3), (200, 4)):
        claimed = await engine.claim()
        # Those of another unit do not wait for it.
        assert await versions(engine, claimed) == [expected] * 2
        assert await engine.claim() == []
        assert await engine.value("select count(*) from pending_delivery where postponed") == 8 - 2 * expected
        await engine.answer(claimed, status_code)


async def test_at_an_ordered_endpoint_an_event_waits_for_the_end_of_the_one_before(engine: Engine) -> None:
    await engine.endpoint(ordered=True)
    await engine.queue_events("A-1", times=2)
    for _ in range(engine.schedule.attempts):
        claimed = await engine.claim()
        assert await versions(engine, claimed) == [2]
        assert await engine.claim() == []
        await engine.answer(claimed, 500)
        await engine.tidying.run()
        await engine.make_due()
    assert await versions(engine, await engine.claim()) == [3]


async def test_at_an_ordered_endpoint_a_retry_waits_for_an_earlier_event(engine: Engine) -> None:
    """It was not ordered when the later event was first sent."""
    endpoint, first = await engine.claim_one(times=2)
    await engine.answer([first], 500)
    assert await versions(engine, await engine.claim()) == [3]
    await engine.execute("delete from in_flight")
    await engine.change(endpoint, ordered=True)
    await engine.make_due()
    assert await versions(engine, await engine.claim()) == [2]


@pytest.mark.parametrize("has_first_failed", [False, True])
async def test_an_event_behind_a_cancelled_one_does_not_wait(engine: Engine, has_first_failed: bool) -> None:
    endpoint = await engine.endpoint(ordered=True)
    await engine.queue_events("A-1", times=2)
    if has_first_failed:
        (first,) = await engine.claim()
        assert await engine.claim() == []
        await engine.answer([first], 500)
    await engine.change(endpoint, events=("unit.available",))
    assert await versions(engine, await engine.claim()) == [3]


async def test_the_next_event_does_not_overlap_an_attempt_whose_delivery_is_resent(engine: Engine) -> None:
    _, first = await engine.claim_one(times=2)
    await engine.resend(first.delivery_id)
    await engine.tidying.run()
    await engine.make_due()
    assert await engine.claim() == []
    await engine.answer([first])
    await engine.tidying.run()
    await engine.make_due()
    assert await versions(engine, await engine.claim()) == [2, 3]


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_resend_of_what_has_ended_neither_waits_nor_holds_back(engine: Engine, ordered: bool) -> None:
    await engine.endpoint(ordered=ordered)
    project_id = await engine.queue_events("A-1")
    (delivered,) = await engine.claim()
    await engine.answer([delivered])
    await engine.resend(delivered.delivery_id)
    (resent,) = await engine.claim()
    await store(engine.database, replacement(project_id, "A-1", status=ON))
    (next_one,) = await engine.claim()
    assert resent.delivery_id == delivered.delivery_id != next_one.delivery_id
    await engine.answer([resent], 500)
    await engine.make_due()
    assert [one.delivery_id for one in await engine.claim()] == [resent.delivery_id]


async def test_a_resend_of_what_failed_at_an_ordered_endpoint_still_holds_back(engine: Engine) -> None:
    _, first = await engine.claim_one(times=2, ordered=True)
    await engine.answer([first], 500)
    assert await engine.claim() == []
    await engine.resend(first.delivery_id)
    (again,) = await engine.claim()
    assert again.delivery_id == first.delivery_id
    await engine.answer([again], 500)
    await engine.tidying.run()
    assert await engine.claim() == []


async def test_a_postponed_event_that_fails_keeps_the_gap_of_its_schedule(engine: Engine) -> None:
    """Though it was claimed because its own time had come, and not because it was unblocked."""
    _, first = await engine.claim_one(times=2)
    assert await engine.claim() == []
    await engine.resend(first.delivery_id)
    await engine.answer([first])
    await engine.execute("update pending_delivery set due_at = now() - interval '1 ms', postponed = true")
    second = next(one for one in await engine.claim() if one.delivery_id != first.delivery_id)
    await engine.answer([second], 500)
    await engine.tidying.run()
    next_at = (await engine.find(second.delivery_id)).next_attempt_at
    assert next_at is not None
    assert next_at > second.claimed_at + timedelta(minutes=5)
