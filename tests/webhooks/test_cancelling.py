"""Cancelling: what an endpoint no longer gets ends with the reason, and what is in flight may arrive."""

from uuid import UUID

import pytest

from holdfast.domain.delivery import ENDPOINT_REMOVED, EVENT_UNSELECTED, DeliveryStatus
from holdfast.domain.errors import UnknownEndpoint
from holdfast.operations import delivery_queue
from holdfast.operations.delivery_queue import DeliveryQueue
from tests.support.delivery_engine import Engine
from tests.support.inventory import replacement, store
from tests.support.sales import hold

PENDING, DELIVERED, CANCELLED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.CANCELLED
REMOVED, UNSELECTED = (CANCELLED, ENDPOINT_REMOVED), (CANCELLED, EVENT_UNSELECTED)
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
