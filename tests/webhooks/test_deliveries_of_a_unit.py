"""The latest deliveries of one unit, pending and ended alike."""

from uuid import UUID

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import Delivery, DeliveryStatus
from holdfast.domain.endpoint import EndpointLabel
from holdfast.operations.units import Units
from tests.support.delivery_engine import NOWHERE, Engine, switch
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import new_units

PENDING, DELIVERED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED


async def latest_with_labels(
    engine: Engine, code: str = "A-1", limit: int = 10, slug: str = SLUG
) -> list[tuple[Delivery, EndpointLabel]]:
    inventory = Units(engine.database)
    unit, _ = await inventory.find(slug, code)
    return await inventory.latest_deliveries(unit, limit)


async def latest(engine: Engine, code: str = "A-1", limit: int = 10, slug: str = SLUG) -> list[Delivery]:
    return [delivery for delivery, _ in await latest_with_labels(engine, code, limit, slug)]


def told(found: list[Delivery]) -> list[tuple[str, DeliveryStatus]]:
    return [(one.event, one.status) for one in found]


async def units(engine: Engine) -> UUID:
    return await new_units(engine.database, "A-1", "A-2")


async def test_a_unit_that_nobody_was_told_of_has_none(engine: Engine) -> None:
    project_id = await units(engine)
    await switch(engine.database, project_id, "A-1")
    assert await latest(engine) == []


async def test_what_is_pending_and_what_ended_stand_together_the_latest_first(engine: Engine) -> None:
    project_id = await units(engine)
    await engine.subscribe()
    await switch(engine.database, project_id, "A-1")
    await engine.answer(await engine.claim())
    await switch(engine.database, project_id, "A-1", 2)
    found = await latest(engine)
    assert told(found)[-1] == ("unit.unavailable", DELIVERED)
    assert {one.status for one in found[:-1]} == {PENDING}
    assert [one.created_at for one in found] == sorted((one.created_at for one in found), reverse=True)


async def test_one_that_is_tried_again_is_among_them_with_its_next_attempt(engine: Engine) -> None:
    project_id = await units(engine)
    await engine.subscribe()
    await switch(engine.database, project_id, "A-1")
    await engine.answer(await engine.claim(), 500)
    (one,) = await latest(engine)
    assert (one.status, one.attempts, one.last_status_code) == (PENDING, 1, 500)
    assert one.next_attempt_at is not None


async def test_one_that_is_sent_anew_is_among_them_once(engine: Engine) -> None:
    project_id = await units(engine)
    await engine.subscribe()
    await switch(engine.database, project_id, "A-1")
    await engine.answer(await engine.claim())
    (ended,) = await latest(engine)
    await engine.resend(ended.id)
    (again,) = await latest(engine)
    assert (again.id, again.status) == (ended.id, PENDING)


async def test_other_units_and_units_of_the_same_code_elsewhere_are_not_told_of(engine: Engine) -> None:
    project_id = await units(engine)
    elsewhere = await new_project(engine.database, "elsewhere")
    await store(engine.database, replacement(elsewhere, "A-1"))
    await engine.subscribe()
    await switch(engine.database, project_id, "A-2")
    await switch(engine.database, elsewhere, "A-1")
    await engine.answer(await engine.claim())
    assert await latest(engine) == []
    assert len(await latest(engine, slug="elsewhere")) == 1


async def test_no_more_than_so_many_are_told(engine: Engine) -> None:
    project_id = await units(engine)
    await engine.subscribe()
    await switch(engine.database, project_id, "A-1", 5)
    everything = await latest(engine)
    assert await latest(engine, limit=3) == everything[:3]


async def test_each_names_its_endpoint_also_when_that_was_removed(engine: Engine) -> None:
    project_id = await units(engine)
    endpoint = (await engine.subscribe(description="Our CRM")).endpoint
    await switch(engine.database, project_id, "A-1")
    await engine.answer(await engine.claim())
    ((_, label),) = await latest_with_labels(engine)
    assert label == (endpoint.id, NOWHERE, "Our CRM", False)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    ((_, label),) = await latest_with_labels(engine)
    assert label.is_removed is True
