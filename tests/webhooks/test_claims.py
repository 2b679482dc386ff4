"""Claims: up to the cap of each endpoint over all workers, fairly, each delivery once."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from holdfast.domain.delivery import ClaimedDelivery
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage import delivery_queue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, switch
from tests.support.sales import new_units

CAP = 5
BACKLOG = """
    insert into pending_delivery
        (id, endpoint_id, event, unit_id, unit_version, unit_code, created_at, due_at, body)
    select gen_random_uuid(), $1, 'unit.held', gen_random_uuid(), 1, 'A-1', now(),
        now() - interval '1 hour' + number * interval '1 ms', '{}'
    from generate_series(1, $2) as number
"""
LOCKING = "for no key update skip locked"


async def backlog(engine: Engine, endpoint_id: UUID, count: int) -> None:
    await engine.execute(BACKLOG, endpoint_id, count)


async def claimed_at_once(
    engine: Engine, postgres_url: str, claimers: int, budget: int
) -> list[ClaimedDelivery]:
    """By as many workers, each with connections of its own, that begin together."""
    async with AsyncExitStack() as stack:
        workers = []
        for _ in range(claimers):
            database = await stack.enter_async_context(Database(postgres_url))
            workers.append(DeliveryQueue(database, engine.schedule, 35))
            await workers[-1].seconds_until_next()
            async with database.writing() as connection:
                await connection.execute("select")
        taken = await asyncio.gather(*(worker.claim(budget) for worker in workers))
    return [one for several in taken for one in several]


async def most_in_flight(engine: Engine, postgres_url: str, rounds: int) -> int:
    """Of an endpoint with a cap, when two workers claim at the same time."""
    endpoint = (await engine.subscribe(max_in_flight=CAP)).endpoint
    await backlog(engine, endpoint.id, 100)
    most = 0
    for _ in range(rounds):
        await claimed_at_once(engine, postgres_url, 2, 100)
        most = max(most, await engine.value("select count(*) from in_flight"))
        await engine.execute("delete from in_flight")
    return most


async def test_two_workers_that_claim_at_once_keep_the_cap(engine: Engine, postgres_url: str) -> None:
    assert await most_in_flight(engine, postgres_url, 20) == CAP


async def test_without_the_lock_of_the_lane_they_would_break_the_cap(
    engine: Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the race is there. Each looks in an order of its own, so that it is the cap that is in
    the way, and not the other's claim of the very same delivery."""
    for name, locked, unlocked in (
        ("_LOCK_LANES", LOCKING, ""),
        ("_TAKE", "order by due_at\n", "order by hashtext(id::text || pg_backend_pid())\n"),
        ("_TAKE", "from ranked where", "from ranked cross join (select pg_sleep(0.02)) as slow where"),
        ("_TAKE", "and turn <= $4\n    )", "and turn <= $4 on conflict do nothing\n    )"),
    ):
        statement = getattr(delivery_queue, name)
        assert locked in statement
        monkeypatch.setattr(delivery_queue, name, statement.replace(locked, unlocked, 1))
    assert await most_in_flight(engine, postgres_url, 20) > CAP


async def test_many_workers_claim_each_delivery_once(engine: Engine, postgres_url: str) -> None:
    for _ in range(4):
        endpoint = (await engine.subscribe(max_in_flight=100)).endpoint
        await backlog(engine, endpoint.id, 90)
    taken: list[ClaimedDelivery] = []
    for _ in range(40):
        taken += await claimed_at_once(engine, postgres_url, 8, 25)
        if len(taken) >= 360:
            break
    assert Counter(one.delivery_id for one in taken).most_common(1)[0][1] == 1
    assert len(taken) == 360
    assert len({one.token for one in taken}) > 1


async def test_a_backlog_of_a_hundred_thousand_does_not_delay_another_endpoint(engine: Engine) -> None:
    deep, fresh = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
    await backlog(engine, deep.id, 100_000)
    await engine.ping(fresh)
    async with asyncio.timeout(1):
        claimed = await engine.claim(10)
    assert len(claimed) == 10
    assert Counter(one.endpoint_id for one in claimed)[fresh.id] == 1


async def test_a_budget_is_shared_out_evenly(engine: Engine) -> None:
    endpoints = [(await engine.subscribe()).endpoint for _ in range(5)]
    for number, endpoint in enumerate(endpoints):
        await backlog(engine, endpoint.id, 10 * (number + 1))
    first = await engine.claim(10)
    assert set(Counter(one.endpoint_id for one in first).values()) == {2}
    second = await engine.claim(15)
    assert set(Counter(one.endpoint_id for one in second).values()) == {3}


async def test_a_small_budget_serves_the_endpoint_with_the_least_in_flight(engine: Engine) -> None:
    busy, idle = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
    await backlog(engine, busy.id, 20)
    assert len(await engine.claim(10)) == 10
    await backlog(engine, idle.id, 5)
    (only,) = await engine.claim(1)
    assert only.endpoint_id == idle.id


async def test_every_lane_has_its_turn_when_there_are_more_than_one_claim_looks_at(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_queue, "LANES_AT_ONCE", 3)
    endpoints = [(await engine.subscribe()).endpoint for _ in range(8)]
    for endpoint in endpoints:
        await backlog(engine, endpoint.id, 50)
    taken: Counter[UUID] = Counter()
    for _ in range(6):
        taken.update(one.endpoint_id for one in await engine.claim(3))
    assert set(taken) == {endpoint.id for endpoint in endpoints}
    assert max(taken.values()) <= 3


async def test_the_budget_is_never_exceeded(engine: Engine) -> None:
    await backlog(engine, (await engine.subscribe()).endpoint.id, 20)
    assert len(await engine.claim(7)) == 7
    assert len(await engine.claim(1)) == 1


async def test_the_oldest_go_first(engine: Engine) -> None:
    await backlog(engine, (await engine.subscribe()).endpoint.id, 20)
    taken = [one.delivery_id for one in await engine.claim(5)]
    oldest = await engine.rows("select id from pending_delivery order by due_at limit 5")
    assert set(taken) == {row[0] for row in oldest}


async def test_a_paused_endpoint_keeps_its_backlog_and_sends_it_when_it_goes_on(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe(paused=True)).endpoint
    project_id = await new_units(database, "A-1", "A-2")
    await switch(database, project_id, "A-1")
    await engine.ping(endpoint)
    assert await engine.claim() == []
    assert await engine.dispatching.seconds_until_next() is None
    await engine.change(endpoint, paused=False)
    assert len(await engine.claim()) == 2
    await engine.execute("delete from in_flight")
    await engine.change(endpoint, paused=True)
    await switch(database, project_id, "A-2")
    assert await engine.claim() == []
    assert await engine.value("select count(*) from pending_delivery") == 3


async def test_a_lower_cap_bites_at_once_and_a_higher_one_too(engine: Engine) -> None:
    endpoint = (await engine.subscribe(max_in_flight=4)).endpoint
    await backlog(engine, endpoint.id, 20)
    assert len(await engine.claim()) == 4
    await engine.change(endpoint, max_in_flight=2)
    assert await engine.claim() == []
    await engine.change(endpoint, max_in_flight=6)
    assert len(await engine.claim()) == 2


async def test_what_is_not_due_is_not_claimed_and_says_when_it_will_be(engine: Engine) -> None:
    await backlog(engine, (await engine.subscribe()).endpoint.id, 2)
    await engine.execute("update pending_delivery set due_at = now() + interval '100 seconds'")
    assert await engine.claim() == []
    seconds = await engine.dispatching.seconds_until_next()
    assert seconds is not None
    assert 95 < seconds <= 100


async def test_an_endpoint_at_its_cap_makes_nobody_look_again_and_again(engine: Engine) -> None:
    await backlog(engine, (await engine.subscribe(max_in_flight=2)).endpoint.id, 9)
    assert len(await engine.claim()) == 2
    assert await engine.dispatching.seconds_until_next() is None


async def test_a_lane_that_somebody_has_locked_is_passed_over_and_not_waited_for(
    engine: Engine, database: Database
) -> None:
    locked, free = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
    await engine.ping(locked)
    await engine.ping(free)
    async with database.writing() as other:
        await other.execute("select from endpoint where id = $1 for no key update", locked.id)
        async with asyncio.timeout(1):
            assert [one.endpoint_id for one in await engine.claim()] == [free.id]
    assert [one.endpoint_id for one in await engine.claim()] == [locked.id]


async def test_a_claim_carries_the_secret_the_url_and_the_bytes_of_the_moment(engine: Engine) -> None:
    issued = await engine.subscribe()
    delivery_id = await engine.ping(issued.endpoint)
    await engine.change(issued.endpoint, url="http://127.0.0.1:11/moved")
    (claimed,) = await engine.claim()
    assert claimed.delivery_id == delivery_id
    assert claimed.url == "http://127.0.0.1:11/moved"
    assert claimed.secret.id == issued.endpoint.secret_id
    assert engine.box.open(claimed.secret.sealed) == issued.text
    assert claimed.body == (await engine.find(delivery_id)).body


async def test_a_change_whose_time_runs_ahead_of_the_clock_is_sent_at_once(
    engine: Engine, database: Database
) -> None:
    """After the database's clock was set back; the times of one unit's events go up all the same."""
    await engine.subscribe()
    project_id = await new_units(database, "A-1")
    await engine.execute("update unit set updated_at = now() + interval '1 hour'")
    await switch(database, project_id, "A-1")
    assert len(await engine.claim()) == 1
