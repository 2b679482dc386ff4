"""Cancelling: what nobody wants any more ends, says why, and what is on its way is left to arrive."""

from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import ENDPOINT_REMOVED, EVENT_UNSELECTED, DeliveryStatus
from holdfast.domain.errors import UnknownEndpoint
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage.database import Database
from tests.support.delivery_engine import OFF, Engine, switch
from tests.support.inventory import replacement, store
from tests.support.sales import hold, new_units

CANCELLED = DeliveryStatus.CANCELLED
DAYS = """
    select inhrelid::regclass::text from pg_inherits
    where inhparent in ('attempt'::regclass, 'ended_delivery'::regclass)
"""


async def units(engine: Engine, *codes: str) -> UUID:
    project_id = await new_units(engine.database, *codes)
    for code in codes:
        await switch(engine.database, project_id, code)
    return project_id


async def test_removing_an_endpoint_cancels_what_is_queued_and_says_why(engine: Engine) -> None:
    endpoint, other = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
    await units(engine, "A-1", "A-2")
    await engine.ping(endpoint)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    found = {(one.endpoint_id, one.status, one.reason) for one in await engine.log()}
    assert found == {
        (endpoint.id, CANCELLED, ENDPOINT_REMOVED),
        (other.id, DeliveryStatus.PENDING, None),
    }
    assert {one.endpoint_id for one in await engine.claim()} == {other.id}


async def test_a_removed_endpoint_is_not_found_and_its_secret_is_forgotten(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await engine.subscribing.remove(endpoint.id, COMMAND)
    for again in (engine.subscribing.find(endpoint.id), engine.subscribing.remove(endpoint.id, COMMAND)):
        with pytest.raises(UnknownEndpoint):
            await again
    assert await engine.value("select secret_sealed from endpoint") == b""


@pytest.mark.parametrize(("status_code", "status"), [(200, DeliveryStatus.DELIVERED), (500, CANCELLED)])
async def test_what_is_on_its_way_when_its_endpoint_is_removed_may_arrive_and_is_not_tried_again(
    engine: Engine, status_code: int, status: DeliveryStatus
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    (claimed,) = await engine.claim()
    await engine.subscribing.remove(endpoint.id, COMMAND)
    assert (await engine.find(claimed.delivery_id)).status is DeliveryStatus.PENDING
    await engine.answer([claimed], status_code)
    await engine.tidying.run()
    assert (await engine.find(claimed.delivery_id)).status is status
    assert len(await engine.attempts(claimed.delivery_id)) == 1


async def test_what_is_lost_after_its_endpoint_was_removed_is_cancelled(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    (claimed,) = await engine.claim()
    await engine.subscribing.remove(endpoint.id, COMMAND)
    await engine.let_leases_run_out()
    await engine.dispatching.rescue()
    await engine.tidying.run()
    found = await engine.find(claimed.delivery_id)
    assert (found.status, found.reason) == (CANCELLED, ENDPOINT_REMOVED)
    assert await engine.value("select count(*) from in_flight") == 0


async def test_a_delivery_that_commits_after_its_endpoint_was_removed_is_cancelled(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    await engine.execute("update endpoint set removed_at = now(), secret_sealed = ''")
    assert await engine.claim() == []
    await engine.tidying.run()
    (found,) = await engine.log()
    assert (found.status, found.reason) == (CANCELLED, ENDPOINT_REMOVED)
    assert found.endpoint_id == endpoint.id


async def test_unselecting_an_event_cancels_its_queued_deliveries_and_no_others(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    project_id = await units(engine, "A-1")
    await store(database, replacement(project_id, "A-2"))
    await hold(database, (project_id, "A-2"))
    ping = await engine.ping(endpoint)
    await engine.change(endpoint, events=("unit.held",))
    found = {one.event: (one.status, one.reason) for one in await engine.log()}
    assert found == {
        "unit.unavailable": (CANCELLED, EVENT_UNSELECTED),
        "unit.held": (DeliveryStatus.PENDING, None),
        "ping": (DeliveryStatus.PENDING, None),
    }
    assert ping in {one.delivery_id for one in await engine.claim()}


async def test_unselecting_an_event_ends_what_was_queued_to_be_sent_again_too(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    (claimed,) = await engine.claim()
    await engine.answer([claimed])
    await engine.resend(claimed.delivery_id)
    await engine.change(endpoint, events=("unit.sold",))
    found = await engine.find(claimed.delivery_id)
    assert (found.status, found.reason) == (CANCELLED, EVENT_UNSELECTED)


async def test_what_is_sent_again_after_its_event_was_unselected_is_sent(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    await engine.change(endpoint, events=("unit.sold", "unit.held"))
    (cancelled,) = await engine.log()
    await engine.resend(cancelled.id)
    await engine.tidying.run()
    await engine.change(endpoint, events=("unit.sold",))
    assert [one.delivery_id for one in await engine.claim()] == [cancelled.id]


async def test_what_came_back_to_a_paused_endpoint_is_cancelled_if_its_event_was_unselected(
    engine: Engine,
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    (claimed,) = await engine.claim()
    await engine.change(endpoint, events=("unit.sold",), paused=True)
    await engine.answer([claimed], 500)
    await engine.tidying.run()
    found = await engine.find(claimed.delivery_id)
    assert (found.status, found.reason) == (CANCELLED, EVENT_UNSELECTED)


async def test_the_workers_stop_looking_once_nothing_more_can_come(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    (claimed,) = await engine.claim()
    await engine.change(endpoint, events=("unit.sold",))
    looked_for = "select has_unwanted from endpoint"
    await engine.execute("update endpoint set updated_at = updated_at - interval '61 s'")
    await engine.tidying.run()
    assert await engine.value(looked_for)
    await engine.answer([claimed])
    await engine.tidying.run()
    assert not await engine.value(looked_for)


async def test_what_is_on_its_way_when_its_event_is_unselected_is_not_tried_again(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    (claimed,) = await engine.claim()
    await engine.change(endpoint, events=("unit.sold",))
    await engine.answer([claimed], 500)
    await engine.make_due()
    assert await engine.claim() == []
    found = await engine.find(claimed.delivery_id)
    assert (found.status, found.reason) == (CANCELLED, EVENT_UNSELECTED)
    assert (found.attempts, found.last_status_code) == (1, 500)


async def test_a_claim_can_cancel_before_the_log_has_a_day(engine: Engine, database: Database) -> None:
    """The first worker of the day may claim before anybody has recorded, or kept the log."""
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1", "A-2")
    await engine.ping(endpoint)
    await engine.execute("update endpoint set events = array['unit.sold']")
    for (part,) in await engine.rows(DAYS):
        await engine.execute(f"drop table {part}")
    fresh = DeliveryQueue(database, engine.schedule, 35)
    assert [one.event for one in await fresh.claim(10)] == ["ping"]
    assert await engine.value("select count(*) from ended_delivery") == 2


async def test_the_same_wishes_again_change_and_cancel_nothing(engine: Engine) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await units(engine, "A-1")
    changed = await engine.change(endpoint, events=endpoint.config.events, paused=False)
    assert changed._replace(read_at=endpoint.read_at) == endpoint
    assert changed.updated_at == endpoint.updated_at
    assert len(await engine.claim()) == 1


async def test_an_event_of_a_unit_behind_a_cancelled_one_does_not_wait_for_it(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe(events=("unit.unavailable", "unit.available"))).endpoint
    project_id = await new_units(database, "A-1")
    await switch(database, project_id, "A-1", 2)
    await engine.execute("update endpoint set events = array['unit.available']")
    claimed = await engine.claim()
    await engine.tidying.run()
    await engine.make_due()
    claimed += await engine.claim()
    assert [one.event for one in claimed] == ["unit.available"]
    assert endpoint.id == claimed[0].endpoint_id


async def test_taking_a_paused_endpoint_away_cancels_its_backlog(engine: Engine, database: Database) -> None:
    endpoint = (await engine.subscribe(paused=True)).endpoint
    project_id = await new_units(database, "A-1")
    await store(database, replacement(project_id, "A-1", status=OFF))
    await engine.subscribing.remove(endpoint.id, COMMAND)
    (found,) = await engine.log()
    assert found.status is CANCELLED
