"""The log: every delivery once, the latest first, by filters, on pages that writes do not disturb."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import Delivery, DeliveryStatus, FailedDeliveryFilter
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import UnknownDelivery, UnknownEndpoint
from holdfast.operations.units import Units
from tests.support.delivery_engine import ALWAYS, LATEST, NOWHERE, Engine, made, switch
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import hold, new_units

Hook = Callable[[], Awaitable[object]]
PENDING, DELIVERED, FAILED, CANCELLED = DeliveryStatus
OTHER = "other-court"
OWN = (SLUG,)


async def answer_each(engine: Engine, status_codes: dict[str, int | None]) -> None:
    """Answer the delivery of each unit, for the last time with 503; 0 is one that was not tried yet."""
    by_unit = dict(await engine.rows("select id, code from unit"))
    for one in await engine.claim():
        assert one.unit_id is not None
        status_code = status_codes[by_unit[one.unit_id]]
        if status_code != 0:
            schedule = engine.schedule._replace(attempts=1 if status_code == 503 else 3)
            await engine.dispatching.record([made(one, schedule, status_code)])
    await engine.execute("delete from in_flight")


async def endpoint_with_outcomes(engine: Engine, **status_codes: int | None) -> Endpoint:
    endpoint = await engine.endpoint()
    await engine.queue_events(*status_codes)
    await answer_each(engine, status_codes)
    return endpoint


async def codes(engine: Engine, **filters: Any) -> set[str | None]:
    return {one.unit_code for one in await engine.log(ALWAYS._replace(**filters))}


async def test_each_filter_finds_what_it_names_and_nothing_else(engine: Engine) -> None:
    await endpoint_with_outcomes(engine, ok=200, no=404, broken=503, refused=None, new=0)
    assert await codes(engine) == {"ok", "no", "broken", "refused", "new"}
    by_status = {DELIVERED: {"ok"}, FAILED: {"broken"}, PENDING: {"no", "refused", "new"}, CANCELLED: set()}
    for status, found in by_status.items():
        assert await codes(engine, status=status) == found
    for code_class, code in {2: "ok", 4: "no", 5: "broken"}.items():
        assert await codes(engine, code_class=code_class) == {code}
    assert await codes(engine, unanswered=True) == {"refused", "new"}
    assert await codes(engine, unanswered=False) == {"ok", "no", "broken"}
    assert await codes(engine, unit_code="ok") == {"ok"}
    assert await codes(engine, unit_code="OK") == set()
    assert await codes(engine, events=("unit.held",)) == set()
    assert await codes(engine, events=("unit.held", "unit.unavailable"), code_class=5) == {"broken"}
    project_id = await engine.value("select id from project")
    await store(engine.database, replacement(project_id, "held"))
    await hold(engine.database, (project_id, "held"))
    assert await codes(engine, events=("unit.held",)) == {"held"}


async def test_a_period_includes_its_start_and_not_its_end(engine: Engine) -> None:
    await endpoint_with_outcomes(engine, first=200, later=0)
    await engine.execute("update pending_delivery set created_at = created_at + interval '1 minute'")
    (start,) = [one.created_at for one in await engine.log() if one.unit_code == "first"]
    assert await codes(engine, since=start, until=start + timedelta(seconds=30)) == {"first"}
    assert await codes(engine, since=start + timedelta(milliseconds=1)) == {"later"}
    assert await codes(engine, until=start) == set()


async def all_pages(engine: Engine, limit: int, after_each: Hook | None = None) -> list[Delivery]:
    found: list[Delivery] = []
    before = LATEST
    while page := (await engine.deliveries.page(None, before, ALWAYS, limit))[:limit]:
        found += page
        before = (page[-1].created_at, page[-1].id)
        if after_each is not None:
            await after_each()
    return found


@pytest.mark.parametrize("limit", [1, 3, 7])
async def test_pages_show_everything_once_the_latest_first(engine: Engine, limit: int) -> None:
    await engine.endpoint()
    await endpoint_with_outcomes(engine, **{f"A-{number}": (200, 500, 0)[number % 3] for number in range(6)})
    # Some at the very same moment, so that the id has to tell them apart.
    await engine.execute("update pending_delivery set created_at = '2026-01-01'")
    keys = [(one.created_at, one.id) for one in await all_pages(engine, limit)]
    assert len(keys) == 12
    assert keys == sorted(set(keys), reverse=True)
    # One more than the limit says that there is another page.
    assert len(await engine.log(limit=11)) == 12 == len(await engine.log(limit=12))


async def test_what_is_written_between_two_pages_is_neither_skipped_nor_shown_twice(engine: Engine) -> None:
    endpoint = await endpoint_with_outcomes(engine, **{f"A-{number}": 0 for number in range(10)})
    expected = {one.id for one in await engine.log()}

    async def write() -> None:
        await engine.ping(endpoint)
        await engine.answer(await engine.claim(3), 200)
        await engine.resend((await engine.log(limit=1))[-1].id)

    found = [one.id for one in await all_pages(engine, 2, write)]
    assert len(found) == len(set(found))
    assert expected <= set(found)


@pytest.mark.parametrize("is_resent", [False, True])
async def test_what_moves_while_a_page_is_read_is_shown_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, is_resent: bool
) -> None:
    """It moves after the first look at pending deliveries."""
    delivery_id = await engine.ping(await engine.endpoint())
    before = PENDING
    if is_resent:
        await engine.answer(await engine.claim())
        before = DELIVERED
    fetch = asyncpg.Connection.fetch

    async def fetch_and_move(connection: asyncpg.Connection, statement: str, *arguments: object) -> Any:
        rows = await fetch(connection, statement, *arguments)
        if "pending_delivery" in statement:
            monkeypatch.undo()
            if is_resent:
                await engine.resend(delivery_id)
            else:
                await engine.answer(await engine.claim())
        return rows

    monkeypatch.setattr(asyncpg.Connection, "fetch", fetch_and_move)
    assert [(one.id, one.status) for one in await engine.log()] == [(delivery_id, before)]
    assert (await engine.find(delivery_id)).status is not before


async def test_the_log_of_one_endpoint_is_its_own_and_outlives_it(engine: Engine) -> None:
    one, other = await engine.endpoint(), await engine.endpoint()
    await engine.queue_events("A-1")
    page = await engine.deliveries.page(one.id, LATEST, ALWAYS, 10)
    assert [found.endpoint_id for found in page] == [one.id]
    await engine.execute("update endpoint set removed_at = now() where id = $1", other.id)
    assert len(await engine.deliveries.page(other.id, LATEST, ALWAYS, 10)) == 1
    with pytest.raises(UnknownEndpoint):
        await engine.deliveries.page(UUID(int=5), LATEST, ALWAYS, 10)


async def test_a_delivery_shows_when_it_is_tried_next_and_when_it_ended(engine: Engine) -> None:
    endpoint = await endpoint_with_outcomes(engine, ok=200, no=500)
    now: datetime = await engine.value("select clock_timestamp()")
    found = {one.unit_code: one for one in await engine.log()}
    ok, no = found["ok"], found["no"]
    assert (ok.next_attempt_at, no.ended_at) == (None, None)
    assert ok.ended_at is not None
    assert no.next_attempt_at is not None
    assert ok.created_at <= ok.ended_at <= now
    assert (no.attempts, no.last_status_code, str(no.last_cause)) == (1, 500, "The receiver answered 500.")
    # That of a paused endpoint may be past.
    await engine.change(endpoint, paused=True)
    due_at = (await engine.find(await engine.ping(endpoint))).next_attempt_at
    assert due_at is not None
    assert due_at <= await engine.value("select clock_timestamp()")


async def test_a_limited_caller_sees_the_deliveries_of_endpoints_within_its_projects(engine: Engine) -> None:
    await new_project(engine.database, OTHER)
    project_id = await new_units(engine.database, "A-1")
    for_all, beyond = await engine.endpoint(), await engine.endpoint(project_slugs=(SLUG, OTHER))
    within = await engine.endpoint(project_slugs=OWN)
    await switch(engine.database, project_id, "A-1")
    assert len(await engine.log()) == 3
    own = await engine.deliveries.page(None, LATEST, ALWAYS, 10, OWN)
    assert [one.endpoint_id for one in own] == [within.id]
    assert (await engine.deliveries.find(own[0].id, OWN))[0] == own[0]
    for endpoint in (for_all, beyond):
        with pytest.raises(UnknownEndpoint):
            await engine.deliveries.page(endpoint.id, LATEST, ALWAYS, 10, OWN)
        (foreign,) = await engine.deliveries.page(endpoint.id, LATEST, ALWAYS, 10)
        await assert_unknown(engine, foreign.id, OWN)
    await assert_unknown(engine, UUID(int=1), None)


async def assert_unknown(engine: Engine, delivery_id: UUID, slugs: Sequence[str] | None) -> None:
    find, resend = engine.deliveries.find, engine.deliveries.resend
    for refused in (find(delivery_id, slugs), resend(delivery_id, COMMAND, slugs)):
        with pytest.raises(UnknownDelivery):
            await refused


@pytest.fixture(params=[None, (SLUG, OTHER)], ids=["for all", "for two"])
async def narrowed(engine: Engine, request: pytest.FixtureRequest) -> Endpoint:
    """An endpoint that is for fewer projects than before, with deliveries of units and a ping."""
    # The codes are the same: they are unique in a project only.
    outcomes: dict[str, int | None] = {"delivered": 200, "failed": 503, "pending": 0}
    projects = await new_units(engine.database, *outcomes), await new_project(engine.database, OTHER)
    await store(engine.database, *(replacement(projects[1], code) for code in outcomes))
    endpoint = await engine.endpoint(project_slugs=request.param)
    for project_id in projects:
        for code in outcomes:
            await switch(engine.database, project_id, code)
    await answer_each(engine, outcomes)

    await engine.ping(endpoint)
    return await engine.change(endpoint, project_slugs=OWN)


async def test_a_limited_caller_sees_its_projects_and_pings(engine: Engine, narrowed: Endpoint) -> None:
    own = {one.id for one in await engine.log() if f'"{OTHER}"' not in one.body}
    for selected, count in (
        (ALWAYS, 4),
        (ALWAYS._replace(status=PENDING), 2),
        *((ALWAYS._replace(status=status), 1) for status in (DELIVERED, FAILED)),
        (ALWAYS._replace(unit_code="delivered"), 1),
        (ALWAYS._replace(code_class=5), 1),
    ):
        page = await engine.deliveries.page(narrowed.id, LATEST, selected, 10, OWN)
        assert len(page) == count
        assert {one.id for one in page} <= own
        assert page == await engine.deliveries.page(None, LATEST, selected, 10, OWN)
    for slugs, count in ((OWN, 3), (None, 6)):
        feed = await engine.feed.read(None, 100, slugs, narrowed.id)
        counts = (await engine.deliveries.reconcile(narrowed.id, None, slugs)).counts
        assert counts.events == len(feed.items) == count
        assert counts.delivered == counts.failed == counts.pending == count // 3
        assert counts.missing == 0


async def test_a_limited_caller_resends_of_its_projects_and_pings(engine: Engine, narrowed: Endpoint) -> None:
    failed = FailedDeliveryFilter(ALWAYS.since)
    assert await engine.deliveries.count_failed(narrowed.id, failed) == 2
    assert await engine.deliveries.count_failed(narrowed.id, failed, OWN) == 1
    assert await engine.deliveries.recover(narrowed.id, failed, COMMAND, OWN) == 1
    for one in await engine.log():
        if f'"{OTHER}"' not in one.body:
            assert (await engine.deliveries.find(one.id, OWN))[0].id == one.id
            assert (await engine.deliveries.resend(one.id, COMMAND, OWN))[0].id == one.id
            continue
        await assert_unknown(engine, one.id, OWN)
        assert await engine.find(one.id) == one
    assert {one.status for one in await engine.log()} == {PENDING, DELIVERED, FAILED}


async def latest(engine: Engine, code: str = "A-1", limit: int = 10, slug: str = SLUG) -> list[Delivery]:
    units = Units(engine.database)
    unit, _ = await units.find(slug, code)
    return [delivery for delivery, _ in await units.latest_deliveries(unit, limit)]


async def test_the_latest_deliveries_of_a_unit_are_pending_and_ended_ones(engine: Engine) -> None:
    project_id = await new_units(engine.database, "A-1", "A-2")
    await switch(engine.database, project_id, "A-1", 2)
    assert await latest(engine) == []
    await engine.endpoint()
    await switch(engine.database, project_id, "A-2")
    elsewhere = await new_project(engine.database, OTHER)
    await store(engine.database, replacement(elsewhere, "A-1"))
    await switch(engine.database, elsewhere, "A-1")
    assert (await latest(engine), len(await latest(engine, slug=OTHER))) == ([], 1)
    await switch(engine.database, project_id, "A-1", 2)
    await engine.answer(await engine.claim(), 200)
    await engine.answer(await engine.claim(), 500)
    later, first = await latest(engine)
    assert (first.event, first.status) == ("unit.unavailable", DELIVERED)
    assert (later.status, later.attempts, later.last_status_code) == (PENDING, 1, 500)
    assert later.next_attempt_at is not None
    assert await latest(engine, limit=1) == [later]
    await engine.resend(first.id)
    assert [one.id for one in await latest(engine)] == [later.id, first.id]


async def test_each_delivery_of_a_unit_names_its_endpoint_even_if_that_was_removed(engine: Engine) -> None:
    endpoint = await engine.endpoint(description="Our CRM")
    await engine.queue_events("A-1")
    units = Units(engine.database)
    unit, _ = await units.find(SLUG, "A-1")
    ((_, label),) = await units.latest_deliveries(unit, 10)
    assert label == (endpoint.id, NOWHERE, "Our CRM", False)
    await engine.remove(endpoint)
    ((_, label),) = await units.latest_deliveries(unit, 10)
    assert label.is_removed is True
