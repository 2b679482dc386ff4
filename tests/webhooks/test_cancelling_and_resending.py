"""Cancelling and resending: what ends with a reason, and what begins a new series of attempts."""

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain import delivery
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryStatus, FailedDeliveryFilter, Progress, Schedule
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import EndpointRemoved, Message, UnknownEndpoint
from holdfast.operations import deliveries, delivery_queue
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage.database import Database
from tests.support.delivery_engine import ALWAYS, Engine, an_engine
from tests.support.inventory import replacement, store
from tests.support.receivers import answer_all, receiving
from tests.support.sales import hold

PENDING, DELIVERED, FAILED, CANCELLED = DeliveryStatus
REMOVED, UNSELECTED = (CANCELLED, delivery.ENDPOINT_REMOVED), (CANCELLED, delivery.EVENT_UNSELECTED)
DAYS = """
    select inhrelid::regclass::text from pg_inherits
    where inhparent in ('attempt'::regclass, 'ended_delivery'::regclass)
"""


async def outcome(engine: Engine, delivery_id: UUID) -> tuple[DeliveryStatus, str | None]:
    found = await engine.find(delivery_id)
    return found.status, found.reason


@pytest.mark.parametrize("paused", [False, True])
async def test_removing_an_endpoint_cancels_what_is_queued_and_forgets_its_secret(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, paused: bool
) -> None:
    monkeypatch.setattr(delivery_queue, "CANCELLED_AT_ONCE", 2)
    endpoint, other = await engine.endpoint(paused=paused), await engine.endpoint()
    await engine.queue_events("A-1", "A-2", "A-3", "A-4")
    await engine.ping(endpoint)
    await engine.remove(endpoint)
    found = {(one.endpoint_id, one.status, one.reason) for one in await engine.log()}
    assert found == {(endpoint.id, *REMOVED), (other.id, PENDING, None)}
    assert {one.endpoint_id for one in await engine.claim()} == {other.id}
    for again in (engine.load(endpoint), engine.remove(endpoint)):
        with pytest.raises(UnknownEndpoint):
            await again
    assert await engine.value("select secret_sealed from endpoint where id = $1", endpoint.id) == b""


@pytest.mark.parametrize(
    ("status_code", "expected"), [(200, (DELIVERED, None)), (500, REMOVED), (None, REMOVED)]
)
async def test_what_is_in_flight_when_its_endpoint_is_removed_may_arrive_and_is_not_tried_again(
    engine: Engine, status_code: int | None, expected: tuple[DeliveryStatus, str | None]
) -> None:
    endpoint, claimed = await engine.claim_one()
    await engine.remove(endpoint)
    assert await outcome(engine, claimed.delivery_id) == (PENDING, None)
    if status_code is None:
        await engine.let_leases_run_out()
        await engine.dispatching.rescue()
    else:
        await engine.answer([claimed], status_code)
    await engine.tidying.run()
    assert await outcome(engine, claimed.delivery_id) == expected
    assert len(await engine.attempts(claimed.delivery_id)) == 1
    assert await engine.value("select count(*) from in_flight") == 0


async def test_a_delivery_that_commits_after_its_endpoint_was_removed_is_cancelled(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    await engine.execute("update endpoint set removed_at = now(), secret_sealed = ''")
    assert await engine.claim() == []
    await engine.tidying.run()
    assert await outcome(engine, delivery_id) == REMOVED


async def test_unselecting_an_event_cancels_its_queued_deliveries_and_no_others(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    project_id = await engine.queue_events("A-1")
    await store(engine.database, replacement(project_id, "A-2"))
    await hold(engine.database, (project_id, "A-2"))
    ping = await engine.ping(endpoint)
    await engine.change(endpoint, events=("unit.held",))
    found = {one.event: (one.status, one.reason) for one in await engine.log()}
    assert found == {"unit.unavailable": UNSELECTED, "unit.held": (PENDING, None), "ping": (PENDING, None)}
    assert ping in {one.delivery_id for one in await engine.claim()}


async def test_a_resent_delivery_is_cancelled_if_its_event_is_unselected_after_that(engine: Engine) -> None:
    endpoint, claimed = await engine.claim_one()
    await engine.answer([claimed])
    await engine.resend(claimed.delivery_id)
    await engine.change(endpoint, events=("unit.sold", "unit.held"))
    assert await outcome(engine, claimed.delivery_id) == UNSELECTED
    # Whoever resends it now wants it in spite of that.
    await engine.resend(claimed.delivery_id)
    await engine.tidying.run()
    await engine.change(endpoint, events=("unit.sold",))
    await engine.answer(await engine.claim(), 500)
    await engine.tidying.run()
    await engine.make_due()
    await engine.answer(await engine.claim())
    assert await outcome(engine, claimed.delivery_id) == (DELIVERED, None)


@pytest.mark.parametrize("paused", [False, True])
async def test_an_unselected_event_that_is_in_flight_is_not_tried_again(engine: Engine, paused: bool) -> None:
    endpoint, claimed = await engine.claim_one()
    await engine.change(endpoint, events=("unit.sold",), paused=paused)
    await engine.answer([claimed], 500)
    await engine.make_due()
    if paused:
        await engine.tidying.run()
    assert await engine.claim() == []
    found = await engine.find(claimed.delivery_id)
    assert (found.status, found.reason, found.attempts, found.last_status_code) == (*UNSELECTED, 1, 500)


async def test_the_workers_look_for_unselected_events_until_none_can_come(engine: Engine) -> None:
    endpoint, claimed = await engine.claim_one()
    await engine.change(endpoint, events=("unit.sold",))
    await engine.execute("update endpoint set updated_at = updated_at - interval '61 s'")
    for expected in (True, False):
        await engine.tidying.run()
        assert await engine.value("select has_unwanted from endpoint") is expected
        await engine.answer([claimed])


async def test_a_claim_can_cancel_before_the_log_has_a_partition(engine: Engine) -> None:
    """The first worker of the day may claim before anybody has recorded an attempt."""
    endpoint = await engine.endpoint()
    await engine.queue_events("A-1", "A-2")
    await engine.ping(endpoint)
    await engine.execute("update endpoint set events = array['unit.sold']")
    for (part,) in await engine.rows(DAYS):
        await engine.execute(f"drop table {part}")
    fresh = DeliveryQueue(engine.database, engine.schedule, 35)
    assert [one.event for one in await fresh.claim(10)] == ["ping"]
    assert await engine.value("select count(*) from ended_delivery") == 2


async def test_a_change_to_the_same_config_changes_and_cancels_nothing(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.queue_events("A-1")
    changed = await engine.change(endpoint, events=endpoint.config.events, paused=False)
    assert changed._replace(read_at=endpoint.read_at) == endpoint
    assert len(await engine.claim()) == 1


# Resending: the same id, the same bytes, a new series of attempts; one by one, or all that failed.

AUDITED = """
    select (after ->> 'resent')::int from audit_entry
    where subject_id = $1 and action = 'recover' order by id
"""
ALL = FailedDeliveryFilter(ALWAYS.since)
FAILED_DELIVERIES = """
    insert into ended_delivery (
        id, endpoint_id, event, unit_id, unit_version, unit_code, created_at, body, tried, attempts,
        status, ended_at
    )
    select gen_random_uuid(), $1, 'unit.held', gen_random_uuid(), 2, 'A-' || number, now(), '{}', 8, 8,
        'failed', now()
    from generate_series(1, $2) as number
"""


async def test_a_delivered_one_is_sent_again_with_the_same_id_and_bytes(engine: Engine) -> None:
    async with receiving(answer_all) as receiver:
        delivery_id = await engine.ping(await engine.endpoint(receiver.url))
        await engine.send_all()
        resent = await engine.resend(delivery_id)
        assert (resent.id, resent.status, resent.attempts) == (delivery_id, PENDING, 1)
        await engine.send_all()
        first, second = receiver.requests
    assert first.body == second.body
    assert first.header("X-Service-Delivery") == second.header("X-Service-Delivery") == str(delivery_id)
    found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts) == (DELIVERED, 2)
    assert [(one.number, one.trigger) for one in attempts] == [(1, "first"), (2, "resend")]
    actions = await engine.value("select string_agg(action, ' ' order by id) from audit_entry")
    assert actions == "create ping resend"


async def test_a_failed_one_has_a_new_series_of_as_many_attempts(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    for _ in range(2):
        for _ in range(engine.schedule.attempts):
            await engine.make_due()
            await engine.answer(await engine.claim(), 500)
        found, attempts = await engine.deliveries.find(delivery_id)
        assert found.status is FAILED
        await engine.resend(delivery_id)
    assert [one.trigger for one in attempts] == ["first", "retry", "retry", "resend", "retry", "retry"]
    assert [one.number for one in attempts] == [1, 2, 3, 4, 5, 6]
    assert (found.attempts, found.next_attempt_at) == (6, None)
    cause = Message("The receiver answered %(code)s.", {"code": 500})
    assert {found.last_cause, *(one.cause for one in attempts)} == {cause}


async def test_a_pending_one_is_sent_now_and_has_all_its_attempts_again(engine: Engine) -> None:
    _, claimed = await engine.claim_one()
    await engine.answer([claimed], 500)
    assert await engine.claim() == []
    await engine.resend(claimed.delivery_id)
    assert [one.progress for one in await engine.claim()] == [Progress(series=2, tried=0, attempts=1)]


@pytest.mark.parametrize("status_code", [200, 500])
async def test_one_in_flight_is_sent_again_whatever_comes_of_it(database: Database, status_code: int) -> None:
    async with an_engine(database, schedule=Schedule(600, 1)) as engine:
        delivery_id = await engine.ping(await engine.endpoint())
        (claimed,) = await engine.claim()
        await engine.resend(delivery_id)
        await engine.make_due()
        assert await engine.claim() == []
        assert await engine.answer([claimed], status_code) == {delivery_id}
        (again,) = await engine.claim()
        assert again.progress == Progress(series=2, tried=0, attempts=1)
        await engine.answer([again])
        found, attempts = await engine.deliveries.find(delivery_id)
    assert (found.status, found.attempts) == (DELIVERED, 2)
    assert [one.trigger for one in attempts] == ["first", "resend"]


@pytest.mark.parametrize("status_code", [200, 500])
async def test_of_a_removed_endpoint_nothing_is_resent(engine: Engine, status_code: int) -> None:
    endpoint = await engine.endpoint()
    delivery_id = await engine.ping(endpoint)
    await engine.answer(await engine.claim(), status_code)
    await engine.remove(endpoint)
    before = await engine.find(delivery_id)
    with pytest.raises(EndpointRemoved):
        await engine.resend(delivery_id)
    assert await engine.find(delivery_id) == before
    for endpoint_id in (endpoint.id, UUID(int=3)):
        with pytest.raises(UnknownEndpoint):
            await engine.deliveries.recover(endpoint_id, ALL, COMMAND)


async def endpoint_with_failed(engine: Engine, count: int) -> Endpoint:
    endpoint = await engine.endpoint()
    await engine.execute(FAILED_DELIVERIES, endpoint.id, count)
    return endpoint


async def audited(engine: Engine, endpoint: Endpoint) -> list[int]:
    """How many were resent by each step of a recovery, as the audit log has it."""
    return [count for (count,) in await engine.rows(AUDITED, endpoint.id)]


async def test_a_recovery_resends_all_that_failed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 10)
    endpoint, other = await endpoint_with_failed(engine, 25), await endpoint_with_failed(engine, 3)
    assert await engine.deliveries.count_failed(endpoint.id, ALL) == 25
    assert await engine.value("select count(*) from pending_delivery") == 0
    assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 25
    assert await engine.rows("select count(*), min(series), max(tried) from pending_delivery") == [(25, 2, 0)]
    assert await engine.deliveries.count_failed(endpoint.id, ALL) == 0
    assert await engine.deliveries.count_failed(other.id, ALL) == 3
    assert await audited(engine, endpoint) == [10, 10, 5]
    assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 0
    assert await audited(engine, endpoint) == [10, 10, 5, 0]


async def test_a_recovery_resends_what_is_selected_and_nothing_else(engine: Engine) -> None:
    endpoint = await endpoint_with_failed(engine, 4)
    await engine.execute("update ended_delivery set event = 'unit.sold' where unit_code = 'A-1'")
    await engine.execute("update ended_delivery set status = 'delivered' where unit_code = 'A-2'")
    now: datetime = await engine.value("select clock_timestamp()")
    for selection, count in (
        (ALL._replace(events=("unit.sold",)), 1),
        (ALL._replace(unit_code="A-3"), 1),
        (ALL._replace(unit_code="A-2"), 0),
        (ALL._replace(since=now), 0),
        (ALL._replace(until=ALL.since), 0),
        (ALL, 1),
    ):
        assert await engine.deliveries.count_failed(endpoint.id, selection) == count
        assert await engine.deliveries.recover(endpoint.id, selection, COMMAND) == count


async def test_an_interrupted_recovery_is_audited(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 1)
    endpoint = await endpoint_with_failed(engine, 5)
    recover_some = engine.deliveries.recover_some

    async def recover_two(*arguments: Any) -> int:
        if len(await audited(engine, endpoint)) == 2:
            raise asyncio.CancelledError
        return await recover_some(*arguments)

    monkeypatch.setattr(engine.deliveries, "recover_some", recover_two)
    with pytest.raises(asyncio.CancelledError):
        await engine.deliveries.recover(endpoint.id, ALL, COMMAND)
    assert await engine.value("select count(*) from pending_delivery") == 2
    assert await audited(engine, endpoint) == [1, 1]


async def test_what_fails_again_meanwhile_is_not_resent_by_the_same_recovery(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would never end where everything fails at its first attempt."""
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 1)
    async with an_engine(database, schedule=Schedule(0.01, 1)) as engine:
        endpoint = await endpoint_with_failed(engine, 20)
        async with engine.running(postgres_url), asyncio.timeout(120):
            assert await engine.deliveries.recover(endpoint.id, ALL, COMMAND) == 20
