"""Two at the same moment, of which one waits or passes; and random histories, in which each delivery ends."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.delivery import ClaimedDelivery, Schedule
from holdfast.domain.endpoint import MAX_IN_FLIGHT, Endpoint
from holdfast.domain.errors import DomainError
from holdfast.domain.event import EventName
from holdfast.operations.delivery_queue import DeliveryQueue, cancel_all
from holdfast.storage import deliveries, delivery_queue
from holdfast.storage.database import (
    DISPATCHER_SETTINGS,
    Connection,
    Database,
    TransactionConflict,
    execute_and_count,
)
from tests.support.delivery_engine import OFF, ON, Engine, an_engine, eventually, made
from tests.support.inventory import replacement, store
from tests.support.sales import new_units
from tests.support.sql import rows

WAITING = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
UNAVAILABLE = "unit.unavailable"


async def is_blocked(database: Database, task: "asyncio.Future[Any]") -> bool:
    assert not task.done()
    return bool(await rows(database, WAITING))


@asynccontextmanager
async def meanwhile(database: Database, other: Awaitable[object]) -> AsyncIterator[Connection]:
    """A transaction; the other one begins within it, waits for its locks, and goes on after it."""
    async with database.writing() as connection:
        yield connection
        task = asyncio.ensure_future(other)
        await eventually(lambda: is_blocked(database, task))
    await task


@pytest.fixture
async def hurried(postgres_url: str) -> AsyncIterator[Engine]:
    """With the settings of a worker: it does not wait for locks for long."""
    async with Database(postgres_url, settings=DISPATCHER_SETTINGS) as own, an_engine(own) as engine:
        yield engine


async def test_what_is_claimed_at_the_moment_of_cancelling_is_left_to_arrive(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.queue_events("A-1")
    await engine.execute("update pending_delivery set series = 2")
    await engine.execute("update endpoint set events = array['unit.sold']")
    cancelling = cancel_all(engine.database, endpoint.id, [UNAVAILABLE])
    async with meanwhile(engine.database, cancelling) as connection:
        lease = timedelta(seconds=35)
        found = await delivery_queue.claim(connection, UUID(int=0), 10, lease, MAX_IN_FLIGHT)
    assert [one.status for one in await engine.log()] == ["pending"]
    assert len(await engine.answer(found.claimed)) == 1
    assert [one.status for one in await engine.log()] == ["delivered"]


async def test_an_event_that_is_selected_again_while_it_is_being_cancelled_is_kept(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.queue_events("A-1")
    await engine.execute("update endpoint set events = array['unit.sold']")
    cancelling = cancel_all(engine.database, endpoint.id, [UNAVAILABLE])
    async with meanwhile(engine.database, cancelling) as connection:
        await connection.execute("update endpoint set events = array['unit.unavailable']")
    assert [one.status for one in await engine.log()] == ["pending"]


async def test_unblocking_does_not_shorten_the_gap_before_a_retry(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.queue_events("A-1")
    await engine.execute("update pending_delivery set postponed = true")
    queue = (endpoint.id, await engine.value("select unit_id from pending_delivery"))
    unblock = engine.database.write(delivery_queue.unblock_next_delivery, [queue])
    async with meanwhile(engine.database, unblock) as connection:
        later = "due_at = now() + interval '1 hour'"
        await connection.execute(f"update pending_delivery set postponed = false, attempts = 1, {later}")
    assert await engine.value("select due_at > now() + interval '1 minute' from pending_delivery")


async def test_a_delivery_that_is_given_back_while_it_is_resent_begins_a_new_series(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    claimed = await engine.claim()
    async with meanwhile(engine.database, engine.dispatching.give_back(claimed)) as connection:
        await deliveries.resend(connection, delivery_id)
    assert await engine.rows("select series, again from pending_delivery") == [(2, False)]
    await engine.answer(await engine.claim())
    assert await engine.claim() == []


async def test_an_event_that_is_postponed_just_as_its_turn_comes_is_unblocked(engine: Engine) -> None:
    _, first = await engine.claim_one(times=2)
    await engine.execute("update pending_delivery set postponed = false, due_at = created_at")
    async with engine.database.writing() as connection:
        await connection.execute("select from pending_delivery where id <> $1 for update", first.delivery_id)
        claiming = asyncio.ensure_future(engine.claim())
        await eventually(lambda: is_blocked(engine.database, claiming))
        await engine.answer([first])
    assert len(await claiming) == 1


async def test_a_lane_that_another_worker_has_locked_is_passed_over(engine: Engine) -> None:
    locked, free = await engine.endpoint(), await engine.endpoint()
    await engine.ping(locked)
    await engine.ping(free)
    async with engine.database.writing() as other:
        await other.execute("select from endpoint where id = $1 for no key update", locked.id)
        async with asyncio.timeout(60):
            assert [one.endpoint_id for one in await engine.claim()] == [free.id]
    assert [one.endpoint_id for one in await engine.claim()] == [locked.id]


async def test_a_lock_that_is_held_for_long_is_a_conflict(database: Database, hurried: Engine) -> None:
    async with database.writing() as connection:
        await connection.execute("lock table pending_delivery")
        with pytest.raises(TransactionConflict):
            await hurried.database.write(execute_and_count, "update pending_delivery set again = false")
        assert await hurried.claim() == []


@pytest.mark.parametrize("is_recovering", [False, True])
async def test_health_that_cannot_be_saved_is_saved_later_and_delays_no_other_endpoint(
    database: Database, hurried: Engine, is_recovering: bool
) -> None:
    locked, other = await hurried.endpoint(), await hurried.endpoint()
    if is_recovering:
        await hurried.ping(locked)
        await hurried.answer(await hurried.claim(), 500)
    await hurried.ping(locked)
    (claimed,) = await hurried.claim()
    async with database.writing() as connection:
        await connection.execute("select from endpoint where id = $1 for update", locked.id)
        assert await hurried.answer([claimed], 200 if is_recovering else 500)
        await hurried.ping(other)
        (next_one,) = await hurried.claim()
        assert next_one.endpoint_id == other.id
    assert ((await hurried.load(locked)).failure is None) != is_recovering
    await hurried.answer([next_one])
    assert ((await hurried.load(locked)).failure is None) == is_recovering


async def test_a_locked_backlog_is_cancelled_later(database: Database, hurried: Engine) -> None:
    endpoint = await hurried.endpoint()
    await hurried.ping(endpoint)
    async with database.writing() as connection:
        await connection.execute("select from pending_delivery for update")
        await hurried.remove(endpoint)
        await hurried.tidying.run()
        assert [one.status for one in await hurried.log()] == ["pending"]
    await hurried.tidying.run()
    assert [one.status for one in await hurried.log()] == ["cancelled"]


async def claimed_of(engine: Engine, count: int) -> list[ClaimedDelivery]:
    """One delivery of each of so many endpoints."""
    for _ in range(count):
        await engine.endpoint()
    await engine.queue_events("A-1")
    return sorted(await engine.claim(), key=lambda one: one.endpoint_id)


async def test_two_workers_that_rescue_at_once_log_each_once(engine: Engine, postgres_url: str) -> None:
    await claimed_of(engine, 20)
    await engine.let_leases_run_out()
    async with Database(postgres_url) as database:
        other = DeliveryQueue(database, engine.schedule, 35)
        await asyncio.gather(engine.dispatching.rescue(), other.rescue())
    assert await engine.value("select count(*) from attempt") == 20
    assert await engine.value("select count(*) from in_flight") == 0


async def test_workers_that_record_at_once_never_deadlock(engine: Engine, postgres_url: str) -> None:
    """Many endpoints fail at once, and two workers record that, each in an order of its own."""
    claimed = await claimed_of(engine, 20)
    again = """
        insert into in_flight (delivery_id, endpoint_id, token, claimed_at, lease_until)
        select pending_delivery.id, endpoint_id, token, now(), now() + interval '1 hour'
        from pending_delivery join unnest($1::uuid[], $2::bigint[]) as of (id, token) using (id)
    """
    async with Database(postgres_url) as database:
        other = DeliveryQueue(database, engine.schedule._replace(attempts=99), 35)
        for status_code in (500, 503) * 5:
            records = [made(one, other.schedule, status_code) for one in claimed]
            await asyncio.gather(engine.dispatching.record(records[::2]), other.record(records[1::2][::-1]))
            await engine.execute(again, [one.delivery_id for one in claimed], [one.token for one in claimed])
    assert await engine.value("select count(*) from attempt") == 10 * len(claimed)


async def test_recording_and_resending_at_once_never_deadlock(engine: Engine) -> None:
    """One locks the endpoint before the delivery, the other perhaps after it."""
    claimed = await claimed_of(engine, 20)
    resends = [engine.resend(one.delivery_id) for one in claimed]
    await asyncio.gather(engine.answer(claimed, 500), *resends)
    in_new_series = "select count(*) from pending_delivery where series = 2 and attempts = 1"
    assert await engine.value(in_new_series) == 20


async def test_a_resend_at_the_moment_of_the_end_is_never_lost_nor_doubled(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    for _ in range(10):
        delivery_id = await engine.ping(endpoint)
        claimed = await engine.claim()
        await asyncio.gather(engine.answer(claimed), *(engine.resend(delivery_id) for _ in range(2)))
        assert (await engine.find(delivery_id)).status == "pending"
        assert await engine.value("select count(*) from pending_delivery") == 1
        await engine.make_due()
        await engine.answer(await engine.claim())


# Random histories: whatever happens in whatever order, each of them ends, and is counted.

ATTEMPTS = 3
STEPS = 120
CODES = [f"A-{number}" for number in range(4)]
SELECTIONS = (tuple(EventName), (EventName.AVAILABLE,), (EventName.UNAVAILABLE,))
VERSION = "select unit_version from pending_delivery where id = $1"


class History:
    """Two workers, a few endpoints and units, and chance."""

    def __init__(self, engine: Engine, project_id: UUID, chance: random.Random) -> None:
        self.engine = engine
        self.project_id = project_id
        self.chance = chance
        self.workers = [DeliveryQueue(engine.database, engine.schedule, 35) for _ in range(2)]
        self.endpoints: list[Endpoint] = []
        self.claimed: list[ClaimedDelivery] = []
        self.is_off: dict[str, bool] = defaultdict(bool)
        self.last_version: dict[tuple[UUID, UUID], int] = defaultdict(int)
        self.first_attempts: dict[tuple[UUID, UUID], UUID] = {}

    async def step(self) -> None:
        steps = {
            self.change_unit: 30, self.claim: 30, self.answer: 30, self.let_time_pass: 8, self.die: 3,
            self.resend: 4, self.change_endpoint: 8, self.remove: 1,
        }  # fmt: skip
        (chosen,) = self.chance.choices(list(steps), list(steps.values()))
        await chosen()

    async def change_unit(self) -> None:
        code = self.chance.choice(CODES)
        self.is_off[code] = not self.is_off[code]
        status = OFF if self.is_off[code] else ON
        await store(self.engine.database, replacement(self.project_id, code, status=status))

    async def claim(self) -> None:
        claimed = await self.chance.choice(self.workers).claim(self.chance.randint(1, 6))
        for one in claimed:
            if one.unit_id is not None and not one.progress.attempts and one.progress.series == 1:
                queue = (one.endpoint_id, one.unit_id)
                version = await self.engine.value(VERSION, one.delivery_id)
                assert queue not in self.first_attempts, "two first attempts of one unit overlap"
                assert self.last_version[queue] < version, "out of order"
                self.last_version[queue] = version
                self.first_attempts[queue] = one.delivery_id
        self.claimed += claimed

    def take(self, count: int) -> list[ClaimedDelivery]:
        self.chance.shuffle(self.claimed)
        ending, self.claimed = self.claimed[:count], self.claimed[count:]
        ids = {one.delivery_id for one in ending}
        self.first_attempts = {queue: one for queue, one in self.first_attempts.items() if one not in ids}
        return ending

    async def answer(self) -> None:
        await self.answer_some(self.chance.randint(0, len(self.claimed)))

    async def answer_some(self, count: int) -> None:
        codes = [200, 200, 500, 410, None]
        ending = [made(one, self.engine.schedule, self.chance.choice(codes)) for one in self.take(count)]
        await self.chance.choice(self.workers).record(ending)

    async def die(self) -> None:
        """All claims are lost with their worker, and recorded too late."""
        lost = self.take(len(self.claimed))
        await self.engine.let_leases_run_out()
        await self.workers[0].rescue()
        late = [made(one, self.engine.schedule, self.chance.choice([200, 500])) for one in lost]
        assert await self.workers[1].record(late) == set()

    async def let_time_pass(self) -> None:
        await self.engine.execute("update pending_delivery set due_at = due_at - interval '1 day'")
        if self.chance.random() < 0.5:
            await self.engine.tidying.run()

    async def resend(self) -> None:
        if known := await self.engine.log():
            try:
                await self.engine.resend(self.chance.choice(known).id)
            except DomainError:
                return

    async def change_endpoint(self) -> None:
        at = self.chance.randrange(len(self.endpoints))
        config = self.endpoints[at].config
        changes: list[tuple[str, object]] = [("paused", not config.paused), ("ordered", not config.ordered)]
        name, value = self.chance.choice([*changes, ("events", self.chance.choice(SELECTIONS))])
        self.endpoints[at] = await self.engine.change(self.endpoints[at], **{name: value})

    async def remove(self) -> None:
        if len(self.endpoints) > 1:
            await self.engine.remove(self.endpoints.pop(self.chance.randrange(len(self.endpoints))))

    async def end(self) -> None:
        """Resume all endpoints, and go on until nothing is left."""
        for endpoint in self.endpoints:
            await self.engine.change(endpoint, paused=False)
        for _ in range(1000):
            await self.answer_some(len(self.claimed))
            await self.let_time_pass()
            await self.claim()
            if not self.claimed and not await self.engine.value("select count(*) from pending_delivery"):
                return
        raise AssertionError(await self.engine.rows("select * from pending_delivery"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
async def test_whatever_happens_every_delivery_ends_once(database: Database, seed: int) -> None:
    async with an_engine(database, schedule=Schedule(0.001, ATTEMPTS)) as engine:
        history = History(engine, await new_units(database, *CODES), random.Random(seed))
        endpoints = [await engine.endpoint(ordered=it == 1, max_in_flight=1 + 3 * it) for it in range(3)]
        history.endpoints = list(endpoints)
        for _ in range(STEPS):
            await history.step()
        await history.end()
        await check(engine, endpoints)


async def check(engine: Engine, endpoints: list[Endpoint]) -> None:
    assert await engine.value("select count(*) from in_flight") == 0
    for endpoint in endpoints:
        counts = (await engine.deliveries.reconcile(endpoint.id, None)).counts
        assert (counts.pending, counts.missing, counts.forgotten) == (0, 0, 0)
        assert counts.events == counts.delivered + counts.failed + counts.cancelled
    triggers: dict[UUID, list[str]] = defaultdict(list)
    attempts = "select delivery_id, number, trigger from attempt order by delivery_id, number"
    for delivery_id, number, trigger in await engine.rows(attempts):
        triggers[delivery_id].append(trigger)
        assert number == len(triggers[delivery_id])
        # No series has more attempts than the schedule.
        assert triggers[delivery_id][-ATTEMPTS:] != ["retry"] * ATTEMPTS
    counted = await engine.rows("select id, attempts from ended_delivery where attempts > 0")
    assert dict(counted) == {delivery_id: len(made) for delivery_id, made in triggers.items()}
