"""First attempts for one endpoint and unit go out in the order of the commits, and never overlap."""

from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.delivery import ClaimedDelivery, Schedule
from holdfast.storage.database import Database
from tests.support.delivery_engine import ON, Engine, an_engine, eventually, switch
from tests.support.inventory import replacement, store
from tests.support.sales import new_units

VERSION_OF = "select unit_version from pending_delivery where id = $1"
CODES = [f"A-{number}" for number in range(6)]


async def version(engine: Engine, claimed: ClaimedDelivery) -> int:
    return int(await engine.value(VERSION_OF, claimed.delivery_id))


async def chain(engine: Engine, times: int, **config: Any) -> UUID:
    """An endpoint, and one unit with as many events for it; the id of the project."""
    await engine.subscribe(**config)
    project_id = await new_units(engine.database, "A-1")
    await switch(engine.database, project_id, "A-1", times)
    return project_id


async def test_the_next_event_of_a_unit_waits_for_the_first_attempt_of_the_one_before(
    engine: Engine,
) -> None:
    await chain(engine, 3)
    for expected in (2, 3, 4):
        (claimed,) = await engine.claim()
        assert await version(engine, claimed) == expected
        assert await engine.claim() == []
        await engine.answer([claimed])
        await engine.make_due()


async def test_events_of_other_units_wait_for_nobody(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    project_id = await new_units(database, *CODES)
    for code in CODES:
        await switch(database, project_id, code, 2)
    claimed = await engine.claim()
    assert len({one.unit_id for one in claimed}) == len(claimed) == len(CODES)


async def test_a_failed_first_attempt_does_not_hold_back_the_next_event(engine: Engine) -> None:
    await chain(engine, 2)
    (first,) = await engine.claim()
    assert await engine.claim() == []
    await engine.answer([first], 500)
    await engine.execute("update pending_delivery set due_at = now() + interval '1 hour' where tried = 1")
    await eventually_claimed(engine, 3)


async def eventually_claimed(engine: Engine, expected_version: int) -> ClaimedDelivery:
    found: list[ClaimedDelivery] = []

    async def claim() -> bool:
        found.extend(await engine.claim())
        return bool(found)

    await eventually(claim, 1)
    (claimed,) = found
    assert await version(engine, claimed) == expected_version
    return claimed


async def test_at_an_ordered_endpoint_it_holds_back_the_next_event_until_it_has_ended(
    engine: Engine,
) -> None:
    await chain(engine, 2, ordered=True)
    for _ in range(engine.schedule.attempts):
        (first,) = await engine.claim()
        assert await version(engine, first) == 2
        assert await engine.claim() == []
        await engine.answer([first], 500)
        await engine.make_due()
    await eventually_claimed(engine, 3)


async def test_at_an_ordered_endpoint_a_retry_of_a_later_event_waits_for_the_earlier_one(
    engine: Engine, database: Database
) -> None:
    """It was plain when the later event was first sent."""
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    await engine.answer(await engine.claim(), 500)
    await eventually_claimed(engine, 3)
    await engine.execute("delete from in_flight")
    await engine.change(endpoint, ordered=True)
    await engine.make_due()
    (claimed,) = await engine.claim()
    assert await version(engine, claimed) == 2


async def test_who_waits_is_told_at_once_when_its_turn_has_come(engine: Engine) -> None:
    await chain(engine, 2)
    (first,) = await engine.claim()
    assert await engine.claim() == []
    assert await engine.value("select count(*) from pending_delivery where postponed") == 1
    await engine.answer([first])
    assert await engine.value("select count(*) from pending_delivery where postponed") == 0
    await eventually_claimed(engine, 3)


async def test_an_earlier_event_that_is_cancelled_holds_nobody_back_for_long(engine: Engine) -> None:
    endpoint = (await engine.subscribe(ordered=True)).endpoint
    project_id = await new_units(engine.database, "A-1")
    await switch(engine.database, project_id, "A-1", 2)
    (first,) = await engine.claim()
    assert await engine.claim() == []
    await engine.answer([first], 500)
    await engine.change(endpoint, events=("unit.available",))
    await eventually_claimed(engine, 3)


async def test_a_first_attempt_never_overlaps_one_that_is_sent_anew_while_it_is_on_its_way(
    engine: Engine,
) -> None:
    await chain(engine, 2)
    (first,) = await engine.claim()
    await engine.resend(first.delivery_id)
    await engine.tidying.run()
    await engine.make_due()
    assert await engine.claim() == []
    await engine.answer([first])
    await engine.tidying.run()
    await engine.make_due()
    assert {await version(engine, one) for one in await engine.claim()} == {2, 3}


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_resend_neither_waits_nor_holds_back(engine: Engine, ordered: bool) -> None:
    project_id = await chain(engine, 1, ordered=ordered)
    (delivered,) = await engine.claim()
    await engine.answer([delivered])
    await engine.resend(delivered.delivery_id)
    (resent,) = await engine.claim()
    assert resent.delivery_id == delivered.delivery_id
    await store(engine.database, replacement(project_id, "A-1", status=ON))
    (next_one,) = await engine.claim()
    assert next_one.delivery_id != resent.delivery_id
    await engine.answer([resent], 500)
    await engine.make_due()
    (again,) = await engine.claim()
    assert again.delivery_id == resent.delivery_id


async def test_a_waiting_event_that_fails_keeps_the_gap_of_its_schedule(database: Database) -> None:
    """Though it was claimed because its own time had come, and not because it was told."""
    async with an_engine(database, schedule=Schedule(3600, 3)) as engine:
        await chain(engine, 2)
        (first,) = await engine.claim()
        assert await engine.claim() == []
        await engine.resend(first.delivery_id)
        await engine.answer([first])
        await engine.execute("update pending_delivery set due_at = now() - interval '1 ms', postponed = true")
        second = next(one for one in await engine.claim() if one.delivery_id != first.delivery_id)
        await engine.answer([second], 500)
        await engine.tidying.run()
        found = await engine.find(second.delivery_id)
        assert found.next_attempt_at is not None
        left = found.next_attempt_at - await engine.value("select clock_timestamp()")
    assert left.total_seconds() > 3500
