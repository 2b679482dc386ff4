"""Two at the same moment: one holds a lock, the other has looked already and waits for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.endpoint import MAX_IN_FLIGHT
from holdfast.operations.delivery_queue import cancel_all
from holdfast.storage import deliveries, delivery_queue
from holdfast.storage.database import DISPATCHER_SETTINGS, Connection, Database, TransactionConflict
from tests.support.delivery_engine import Engine, an_engine, made, switch
from tests.support.sales import new_units

WAITING = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)
LEASE = timedelta(seconds=35)
UNAVAILABLE = "unit.unavailable"


async def blocked(database: Database, task: "asyncio.Future[Any]") -> None:
    """Returns when it waits for somebody's lock, of which nothing tells."""
    async with database.reading() as observer, asyncio.timeout(5):
        while not await observer.fetchval(WAITING):
            assert not task.done()
            await asyncio.sleep(0.005)


@asynccontextmanager
async def meanwhile(database: Database, other: Awaitable[object]) -> AsyncIterator[Connection]:
    """A transaction; the other one begins within it, waits for its locks, and goes on after it."""
    async with database.writing() as connection:
        yield connection
        task = asyncio.ensure_future(other)
        await blocked(database, task)
    await task


async def test_what_is_claimed_at_the_moment_of_cancelling_is_left_to_arrive(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    await engine.execute("update pending_delivery set series = 2")
    await engine.execute("update endpoint set events = array['unit.sold']")
    async with meanwhile(database, cancel_all(database, endpoint.id, [UNAVAILABLE])) as connection:
        found = await delivery_queue.claim(connection, UUID(int=0), 10, LEASE, MAX_IN_FLIGHT)
    (claimed,) = found.claimed
    assert (await engine.find(claimed.delivery_id)).status == "pending"
    assert await engine.answer([claimed]) == {claimed.delivery_id}
    assert (await engine.find(claimed.delivery_id)).status == "delivered"


async def test_an_event_that_is_selected_again_while_it_is_being_cancelled_is_cancelled_no_more(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    await engine.execute("update endpoint set events = array['unit.sold']")
    async with meanwhile(database, cancel_all(database, endpoint.id, [UNAVAILABLE])) as connection:
        await connection.execute("update endpoint set events = array['unit.unavailable']")
    assert [one.status for one in await engine.log()] == ["pending"]


async def test_the_gap_before_a_retry_is_kept_by_whoever_lets_go_of_those_who_wait(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    await engine.execute("update pending_delivery set postponed = true")
    place = (endpoint.id, await engine.value("select unit_id from pending_delivery"))

    async def let_go() -> None:
        async with database.writing_autocommit() as connection:
            await delivery_queue.unblock_next_delivery(connection, [place])

    async with meanwhile(database, let_go()) as connection:
        await connection.execute(
            "update pending_delivery set postponed = false, attempts = 1, due_at = now() + interval '30 s'"
        )
    assert await engine.value("select due_at > now() + interval '20 s' from pending_delivery")


async def test_a_delivery_that_is_given_back_while_somebody_sends_it_anew_begins_a_new_series(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    delivery_id = await engine.ping(endpoint)
    claimed = await engine.claim()
    async with meanwhile(database, engine.dispatching.give_back(claimed)) as connection:
        await deliveries.resend(connection, delivery_id)
    assert await engine.rows("select series, again from pending_delivery") == [(2, False)]
    (again,) = await engine.claim()
    await engine.answer([again])
    assert await engine.claim() == []


async def test_who_is_put_aside_just_when_the_one_before_is_recorded_is_let_go(
    engine: Engine, database: Database
) -> None:
    await engine.subscribe()
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    (first,) = await engine.claim()
    await engine.execute("update pending_delivery set postponed = false, due_at = created_at")
    async with database.writing() as connection:
        await connection.execute("select from pending_delivery where id <> $1 for update", first.delivery_id)
        claiming = asyncio.ensure_future(engine.claim())
        await blocked(database, claiming)
        await engine.answer([first])
    assert len(await claiming) == 1


async def test_a_lock_that_is_not_to_be_had_is_a_reason_to_try_again(postgres_url: str) -> None:
    async with (
        Database(postgres_url) as theirs,
        Database(postgres_url, settings=DISPATCHER_SETTINGS) as own,
        theirs.writing() as connection,
    ):
        await connection.execute("lock table pending_delivery")
        with pytest.raises(TransactionConflict):
            async with own.writing() as waiting:
                await waiting.execute("update pending_delivery set again = false")


async def test_a_recovery_that_could_not_be_noted_is_noted_with_the_next_record(postgres_url: str) -> None:
    async with (
        Database(postgres_url) as theirs,
        Database(postgres_url, settings=DISPATCHER_SETTINGS) as own,
        an_engine(own) as engine,
    ):
        sick, other = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
        await engine.ping(sick)
        await engine.answer(await engine.claim(), 500)
        await engine.ping(sick)
        (recovering,) = await engine.claim()
        async with theirs.writing() as connection:
            await connection.execute("select from endpoint where id = $1 for update", sick.id)
            await engine.dispatching.record([made(recovering)])
        assert (await engine.subscribing.find(sick.id)).failure is not None
        await engine.ping(other)
        await engine.answer(await engine.claim())
        assert (await engine.subscribing.find(sick.id)).failure is None
