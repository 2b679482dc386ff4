"""Leases: what is lost with its worker counts and goes out again, and who comes late changes nothing."""

import asyncio
from datetime import timedelta

import pytest

from holdfast.domain.delivery import OUTCOME_UNKNOWN, ClaimedDelivery, DeliveryStatus, Schedule, Trigger
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, switch
from tests.support.inventory import replacement, store
from tests.webhooks.test_records import one_claimed, one_of_twenty

STATE = """
    select to_jsonb(pending_delivery) - 'body' from pending_delivery order by id
"""
LOGGED = "select delivery_id, number, cause from attempt order by delivery_id, number"
HEALTH = "select id, failing_since, failing_cause, gone_at from endpoint order by id"


async def everything(engine: Engine) -> list[object]:
    return [await engine.rows(statement) for statement in (STATE, LOGGED, HEALTH)]


@pytest.fixture
async def late(engine: Engine) -> ClaimedDelivery:
    """A claim whose lease ran out; the delivery is on its way again, in other hands."""
    await engine.subscribe()
    claimed = await one_claimed(engine)
    await engine.let_leases_run_out()
    assert await engine.dispatching.rescue() == 1
    await engine.make_due()
    (again,) = await engine.claim()
    assert again.delivery_id == claimed.delivery_id
    assert again.token != claimed.token
    return claimed


@pytest.mark.parametrize("status_code", [200, 500, 410, None])
async def test_a_late_record_is_refused_and_changes_nothing(
    engine: Engine, late: ClaimedDelivery, status_code: int | None
) -> None:
    before = await everything(engine)
    assert await engine.answer([late], status_code) == set()
    assert await everything(engine) == before


async def test_a_late_success_does_not_say_that_an_endpoint_is_well(
    engine: Engine, late: ClaimedDelivery
) -> None:
    await engine.execute("update endpoint set failing_since = now(), failing_cause = 'x', gone_at = now()")
    before = await everything(engine)
    await engine.answer([late], 200)
    assert await everything(engine) == before


async def test_a_late_record_after_the_end_leaves_the_end_alone(
    engine: Engine, late: ClaimedDelivery
) -> None:
    await engine.execute("delete from in_flight")
    assert await engine.answer(await engine.claim(), 200)
    before = await engine.find(late.delivery_id)
    assert await engine.answer([late], 500) == set()
    assert await engine.find(late.delivery_id) == before
    assert len(await engine.attempts(late.delivery_id)) == 2


async def test_a_late_record_does_not_fail_its_neighbours_in_the_batch(
    engine: Engine, late: ClaimedDelivery
) -> None:
    project_id = await engine.value("select id from project")
    await store(engine.database, replacement(project_id, "B-1"))
    await switch(engine.database, project_id, "B-1")
    (other,) = await engine.claim()
    assert await engine.answer([late, other]) == {other.delivery_id}
    assert (await engine.find(other.delivery_id)).status is DeliveryStatus.DELIVERED
    assert (await engine.find(late.delivery_id)).status is DeliveryStatus.PENDING


async def test_a_lost_attempt_is_logged_with_its_cause_and_goes_out_again_at_once(engine: Engine) -> None:
    await engine.subscribe()
    claimed = await one_claimed(engine)
    await engine.let_leases_run_out()
    assert await engine.dispatching.rescue() == 1
    assert await engine.dispatching.rescue() == 0
    (attempt,) = await engine.attempts(claimed.delivery_id)
    assert (attempt.number, attempt.trigger, attempt.cause) == (1, Trigger.FIRST, OUTCOME_UNKNOWN)
    assert (attempt.status_code, attempt.secret_id, attempt.request_headers) == (None, None, [])
    assert abs(attempt.started_at - claimed.claimed_at) <= timedelta(milliseconds=1)
    # Times are stored to the millisecond, and may be half of one ahead.
    assert await engine.value("select due_at <= clock_timestamp() + interval '1 ms' from pending_delivery")
    await engine.make_due()
    (again,) = await engine.claim()
    assert (again.delivery_id, again.body) == (claimed.delivery_id, claimed.body)
    assert again.progress.trigger is Trigger.RETRY


async def test_a_lease_that_has_not_run_out_is_left_alone(engine: Engine) -> None:
    await engine.subscribe()
    claimed = await one_claimed(engine)
    assert await engine.dispatching.rescue() == 0
    assert await engine.answer([claimed]) == {claimed.delivery_id}


async def test_a_delivery_that_is_lost_again_and_again_is_tried_eight_times_in_all(
    database: Database,
) -> None:
    async with an_engine(database, schedule=Schedule(0.001, 8)) as engine:
        await engine.subscribe()
        claimed = await one_claimed(engine)
        for _ in range(7):
            await engine.let_leases_run_out()
            await engine.dispatching.rescue()
            await engine.make_due()
            assert len(await engine.claim()) == 1
        await engine.let_leases_run_out()
        await engine.dispatching.rescue()
        assert await engine.claim() == []
        found, attempts = await engine.deliveries.find(claimed.delivery_id)
    assert found.status is DeliveryStatus.FAILED
    assert found.last_cause == OUTCOME_UNKNOWN
    assert [attempt.number for attempt in attempts] == list(range(1, 9))
    assert [attempt.trigger for attempt in attempts] == ["first"] + ["retry"] * 7


async def test_lost_and_failed_attempts_count_together(database: Database) -> None:
    async with an_engine(database, schedule=Schedule(0.001, 3)) as engine:
        await engine.subscribe()
        claimed = await one_claimed(engine)
        await engine.answer([claimed], 500)
        await engine.make_due()
        await engine.claim()
        await engine.let_leases_run_out()
        await engine.dispatching.rescue()
        await engine.make_due()
        await engine.answer(await engine.claim(), 502)
        found = await engine.find(claimed.delivery_id)
    assert (found.status, found.attempts) == (DeliveryStatus.FAILED, 3)
    assert (found.last_status_code, str(found.last_cause)) == (502, "The receiver answered 502.")


async def test_two_rescuers_at_once_log_a_lost_attempt_once(engine: Engine, postgres_url: str) -> None:
    for _ in range(20):
        await engine.subscribe()
    await one_of_twenty(engine)
    await engine.let_leases_run_out()
    async with Database(postgres_url) as other_database:
        other = DeliveryQueue(other_database, engine.schedule, 35)
        await asyncio.gather(engine.dispatching.rescue(), other.rescue())
    assert await engine.value("select count(*) from attempt") == 20
    assert await engine.value("select count(*) from in_flight") == 0


async def test_who_has_lost_its_claim_gives_nothing_back(engine: Engine, late: ClaimedDelivery) -> None:
    await engine.dispatching.give_back([late])
    assert await engine.claim() == []
    assert await engine.value("select count(*) from in_flight") == 1
