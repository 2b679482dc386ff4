"""An endpoint that is for fewer projects than before: who is limited to these sees nothing of the others."""

from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryStatus, FailedDeliveryFilter
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import UnknownDelivery
from tests.support.delivery_engine import ALWAYS, LATEST, Engine, switch
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import new_units

OWN = (SLUG,)
ALL = FailedDeliveryFilter(ALWAYS.since)
# Of each project one for each way to look it up. The codes are the same: they are unique in a project only.
CODES = ("delivered", "failed", "pending")
FAIL = """
    with gone as (delete from pending_delivery where unit_code = 'failed' returning *)
    insert into ended_delivery (
        id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, body, attempts,
        last_status_code, status, ended_at
    )
    select id, endpoint_id, event, project_id, unit_id, unit_version, unit_code, created_at, body, 8,
        500, 'failed', now()
    from gone
"""


@pytest.fixture(params=[None, (SLUG, "other-court")], ids=["for all", "for two"])
async def narrowed(engine: Engine, request: pytest.FixtureRequest) -> Endpoint:
    own = await new_units(engine.database, *CODES)
    other = await new_project(engine.database, "other-court")
    await store(engine.database, *(replacement(other, code) for code in CODES))
    endpoint = (await engine.subscribe(project_slugs=request.param)).endpoint
    for project_id in (own, other):
        for code in CODES:
            await switch(engine.database, project_id, code)
    by_unit = dict(await engine.rows("select id, code from unit"))
    await engine.answer([one for one in await engine.claim() if by_unit[one.unit_id] == "delivered"])
    await engine.execute("delete from in_flight")
    await engine.execute(FAIL)
    await engine.ping(endpoint)
    return await engine.change(endpoint, project_slugs=OWN)


async def ids_of(engine: Engine, slug: str) -> set[UUID]:
    return {one.id for one in await engine.log() if f'"projectSlug":"{slug}"' in one.body}


async def ping_id(engine: Engine) -> UUID:
    (only,) = await engine.log(ALWAYS._replace(events=("ping",)))
    return only.id


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({}, 4),
        ({"status": DeliveryStatus.PENDING}, 2),
        ({"status": DeliveryStatus.DELIVERED}, 1),
        ({"status": DeliveryStatus.FAILED}, 1),
        ({"unit_code": "delivered"}, 1),
        ({"code_class": 5}, 1),
    ],
)
async def test_the_log_has_pings_and_what_is_of_the_projects_of_the_caller(
    engine: Engine, narrowed: Endpoint, filters: dict[str, Any], count: int
) -> None:
    seen = {*await ids_of(engine, SLUG), await ping_id(engine)}
    page = await engine.deliveries.page(narrowed.id, LATEST, ALWAYS._replace(**filters), 10, OWN)
    assert len(page) == count
    assert {one.id for one in page} <= seen
    assert page == await engine.deliveries.page(None, LATEST, ALWAYS._replace(**filters), 10, OWN)


async def test_a_delivery_of_another_project_is_neither_shown_nor_sent_again(
    engine: Engine, narrowed: Endpoint
) -> None:
    for delivery_id in await ids_of(engine, "other-court"):
        before = await engine.find(delivery_id)
        with pytest.raises(UnknownDelivery):
            await engine.deliveries.find(delivery_id, OWN)
        with pytest.raises(UnknownDelivery):
            await engine.deliveries.resend(delivery_id, COMMAND, OWN)
        assert await engine.find(delivery_id) == before


async def test_pings_and_what_is_of_its_projects_are_shown_and_sent_again(
    engine: Engine, narrowed: Endpoint
) -> None:
    for delivery_id in (*await ids_of(engine, SLUG), await ping_id(engine)):
        assert (await engine.deliveries.find(delivery_id, OWN))[0].id == delivery_id
        assert (await engine.deliveries.resend(delivery_id, COMMAND, OWN))[0].id == delivery_id


async def test_a_recovery_counts_and_sends_what_is_of_the_projects_of_the_caller(
    engine: Engine, narrowed: Endpoint
) -> None:
    assert await engine.deliveries.count_failed(narrowed.id, ALL) == 2
    assert await engine.deliveries.count_failed(narrowed.id, ALL, OWN) == 1
    assert await engine.deliveries.recover(narrowed.id, ALL, COMMAND, OWN) == 1
    (failed,) = await engine.log(ALWAYS._replace(status=DeliveryStatus.FAILED))
    assert failed.id in await ids_of(engine, "other-court")


async def test_the_deliveries_are_held_against_the_feed_that_the_caller_sees(
    engine: Engine, narrowed: Endpoint
) -> None:
    for slugs, count in ((OWN, 3), (None, 6)):
        feed = await engine.feed.read(None, 100, slugs, narrowed.id)
        tally = (await engine.deliveries.reconcile(narrowed.id, None, slugs)).counts
        assert tally.events == len(feed.items) == count
        assert tally.delivered == tally.failed == tally.pending == count // 3
        assert tally.missing == 0
