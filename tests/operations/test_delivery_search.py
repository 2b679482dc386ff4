"""The log, looked through from now back."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryFilter, DeliveryStatus
from holdfast.domain.errors import UnknownEndpoint
from holdfast.operations.deliveries import END, NO_CURSOR, START, DeliverySearch, DeliverySearchPage
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine

EVERYTHING = DeliveryFilter(START, END)
UNANSWERED = EVERYTHING._replace(unanswered=True)
OLDER = "update pending_delivery set created_at = created_at - $2::interval where id = $1"


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database) as running:
        yield running


@pytest.fixture
def search(database: Database) -> DeliverySearch:
    return DeliverySearch(database, max_seconds=60)


@pytest.fixture
def hasty(database: Database) -> DeliverySearch:
    """One that gives up after its first step."""
    return DeliverySearch(database, max_seconds=0)


async def pending(engine: Engine, *ages: timedelta) -> list[UUID]:
    """Deliveries that were made so long ago."""
    endpoint = (await engine.subscribe()).endpoint
    made = [await engine.ping(endpoint) for _ in ages]
    for delivery_id, age in zip(made, ages, strict=True):
        await engine.execute(OLDER, delivery_id, age)
    return made


def ids(found: DeliverySearchPage) -> list[UUID]:
    return [one.id for one in found.deliveries]


async def test_the_latest_come_first_however_old_the_others_are(
    engine: Engine, search: DeliverySearch
) -> None:
    ages = [timedelta(days=900), timedelta(days=50), timedelta(hours=30), timedelta(minutes=1)]
    made = await pending(engine, *ages)
    found = await search.page(None, NO_CURSOR, EVERYTHING, 10)
    assert ids(found) == made[::-1]
    assert found.searched_back_to is None
    assert set(found.labels) == {found.deliveries[0].endpoint_id}


async def test_a_page_ends_with_one_more_than_was_asked_for_and_the_next_goes_on_behind_it(
    engine: Engine, search: DeliverySearch
) -> None:
    made = await pending(engine, *(timedelta(hours=hours) for hours in range(5)))
    first = await search.page(None, NO_CURSOR, EVERYTHING, 2)
    assert ids(first) == made[:3]
    last = first.deliveries[1]
    assert ids(await search.page(None, (last.created_at, last.id), EVERYTHING, 2)) == made[2:]


async def test_whoever_is_in_a_hurry_is_told_how_far_back_was_searched(
    engine: Engine, hasty: DeliverySearch
) -> None:
    near, far = await pending(engine, timedelta(minutes=1), timedelta(days=3))
    found = await hasty.page(None, NO_CURSOR, UNANSWERED, 10)
    assert ids(found) == [near]
    seen = []
    while found.searched_back_to is not None:
        found = await hasty.page(None, (found.searched_back_to, UUID(int=0)), UNANSWERED, 10)
        seen += ids(found)
    assert seen == [far]


async def test_a_time_that_is_asked_for_limits_the_search(engine: Engine, search: DeliverySearch) -> None:
    made = await pending(engine, timedelta(hours=1), timedelta(hours=20), timedelta(hours=80))
    now = await engine.value("select clock_timestamp()")
    within = DeliveryFilter(now - timedelta(hours=50), now - timedelta(hours=10))
    assert ids(await search.page(None, NO_CURSOR, within, 10)) == [made[1]]
    assert ids(await search.page(None, NO_CURSOR, DeliveryFilter(END, START), 10)) == []
    assert (
        ids(await search.page(None, NO_CURSOR, DeliveryFilter(START, START + timedelta(seconds=1)), 10)) == []
    )


async def test_pings_and_answers_are_found_by_what_they_are(engine: Engine, search: DeliverySearch) -> None:
    endpoint = (await engine.subscribe()).endpoint
    well, unwell = await engine.ping(endpoint), await engine.ping(endpoint)
    for claimed in await engine.claim():
        await engine.answer([claimed], 204 if claimed.delivery_id == well else 302)
    for filters, expected in [
        (EVERYTHING._replace(events=("ping",)), {well, unwell}),
        (EVERYTHING._replace(events=("unit.sold",)), set()),
        (EVERYTHING._replace(code_class=2), {well}),
        (EVERYTHING._replace(code_class=3), {unwell}),
        (EVERYTHING._replace(code_class=4), set()),
        (EVERYTHING._replace(status=DeliveryStatus.DELIVERED), {well}),
        (EVERYTHING._replace(status=DeliveryStatus.DELIVERED, events=("ping",)), {well}),
    ]:
        assert set(ids(await search.page(None, NO_CURSOR, filters, 10))) == expected


async def test_deliveries_of_a_removed_endpoint_are_still_found_under_its_name(
    engine: Engine, search: DeliverySearch
) -> None:
    endpoint = (await engine.subscribe(description="Old ERP")).endpoint
    delivery_id = await engine.ping(endpoint)
    await engine.subscribing.remove(endpoint.id, COMMAND)
    found = await search.page(endpoint.id, NO_CURSOR, EVERYTHING, 10)
    assert ids(found) == [delivery_id]
    assert found.labels[endpoint.id] == await search.label(endpoint.id)
    assert (found.labels[endpoint.id].name, found.labels[endpoint.id].is_removed) == ("Old ERP", True)
    assert [one.id for one in await search.labels()] == [endpoint.id]


async def test_an_endpoint_that_never_was_is_refused(search: DeliverySearch) -> None:
    with pytest.raises(UnknownEndpoint):
        await search.page(uuid4(), NO_CURSOR, EVERYTHING, 10)
    with pytest.raises(UnknownEndpoint):
        await search.label(uuid4())


async def test_an_endpoint_is_shown_with_its_latest_delivery_and_how_many_wait(
    engine: Engine, search: DeliverySearch
) -> None:
    busy, quiet, unused = [(await engine.subscribe()).endpoint for _ in range(3)]
    old = await engine.ping(quiet)
    await engine.execute(OLDER, old, timedelta(days=40))
    await engine.ping(busy)
    await engine.answer(await engine.claim(), 200)
    latest = await engine.ping(busy)
    traffic = await search.load_traffic([busy.id, quiet.id, unused.id])
    shown = {one: (it.latest and it.latest.id, it.pending) for one, it in traffic.items()}
    assert shown[busy.id] == (latest, 1)
    assert shown[quiet.id][0] == old
    assert shown[unused.id] == (None, 0)
