"""The log: every delivery once, the latest first, by filters, on pages that writes do not disturb."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest

from holdfast.domain.delivery import Delivery, DeliveryFilter, DeliveryStatus
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import UnknownDelivery, UnknownEndpoint
from holdfast.operations.deliveries import Deliveries
from holdfast.storage.database import Connection, Database
from tests.support.delivery_engine import ALWAYS, LATEST, Engine, switch
from tests.support.inventory import new_project, replacement, store
from tests.support.sales import hold, new_units

Hook = Callable[[], Awaitable[None]]
PENDING, DELIVERED, FAILED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED


async def with_outcomes(engine: Engine, codes: dict[str, int | None]) -> Endpoint:
    """An endpoint, and a delivery for each unit: answered so; 0 is one that was not tried yet."""
    endpoint = (await engine.subscribe()).endpoint
    project_id = await new_units(engine.database, *codes)
    for code in codes:
        await switch(engine.database, project_id, code)
    by_unit = dict(await engine.rows("select id, code from unit"))
    for one in await engine.claim():
        status_code = codes[by_unit[one.unit_id]]
        if status_code != 0:
            await engine.answer([one], status_code)
    await engine.execute("delete from in_flight")
    return endpoint


async def codes(engine: Engine, **filters: Any) -> set[str | None]:
    return {one.unit_code for one in await engine.log(ALWAYS._replace(**filters))}


async def test_each_filter_finds_what_it_names_and_nothing_else(engine: Engine) -> None:
    await with_outcomes(engine, {"ok": 200, "no": 404, "broken": 503, "refused": None, "new": 0})
    await engine.execute(
        """
        with gone as (delete from pending_delivery where unit_code = 'broken' returning *)
        insert into ended_delivery (id, endpoint_id, event, unit_code, created_at, body, attempts,
            last_status_code, last_cause, status, ended_at)
        select id, endpoint_id, event, unit_code, created_at, body, 8, 503, 'x', 'failed', now() from gone
        """
    )
    assert await codes(engine) == {"ok", "no", "broken", "refused", "new"}
    assert await codes(engine, status=DELIVERED) == {"ok"}
    assert await codes(engine, status=FAILED) == {"broken"}
    assert await codes(engine, status=PENDING) == {"no", "refused", "new"}
    assert await codes(engine, status=DeliveryStatus.CANCELLED) == set()
    assert await codes(engine, code_class=2) == {"ok"}
    assert await codes(engine, code_class=4) == {"no"}
    assert await codes(engine, code_class=5) == {"broken"}
    assert await codes(engine, unanswered=True) == {"refused", "new"}
    assert await codes(engine, unanswered=False) == {"ok", "no", "broken"}
    assert await codes(engine, unit_code="ok") == {"ok"}
    assert await codes(engine, unit_code="OK") == set()
    assert await codes(engine, events=("unit.held",)) == set()
    assert await codes(engine, events=("unit.held", "unit.unavailable"), code_class=5) == {"broken"}


async def test_a_time_is_from_and_including_to_and_excluding(engine: Engine) -> None:
    await with_outcomes(engine, {"A-1": 200, "A-2": 0})
    by_code = {one.unit_code: one.created_at for one in await engine.log()}
    await engine.execute("update pending_delivery set created_at = created_at + interval '1 minute'")
    first = by_code["A-1"]
    later = first + timedelta(seconds=30)
    assert await codes(engine, since=first, until=later) == {"A-1"}
    assert await codes(engine, since=first + timedelta(milliseconds=1)) == {"A-2"}
    assert await codes(engine, until=first) == set()


async def all_pages(engine: Engine, limit: int, filters: DeliveryFilter = ALWAYS) -> list[Delivery]:
    found: list[Delivery] = []
    before = LATEST
    while page := (await engine.deliveries.page(None, before, filters, limit))[:limit]:
        found += page
        before = (page[-1].created_at, page[-1].id)
    return found


@pytest.mark.parametrize("limit", [1, 3, 7])
async def test_pages_show_everything_once_the_latest_first(engine: Engine, limit: int) -> None:
    await engine.subscribe()
    await with_outcomes(engine, {f"A-{number}": (200, 500, 0)[number % 3] for number in range(12)})
    # Some at the very same moment, so that the id has to tell them apart.
    await engine.execute("update pending_delivery set created_at = '2026-01-01'")
    pages = await all_pages(engine, limit)
    assert len(pages) == 24
    keys = [(one.created_at, one.id) for one in pages]
    assert keys == sorted(set(keys), reverse=True)


async def test_a_page_says_whether_there_is_another(engine: Engine) -> None:
    await with_outcomes(engine, {f"A-{number}": 200 for number in range(4)})
    assert len(await engine.log(limit=3)) == 4
    assert len(await engine.log(limit=4)) == 4


async def test_what_is_written_while_somebody_turns_pages_is_neither_skipped_nor_shown_twice(
    engine: Engine, database: Database
) -> None:
    endpoint = await with_outcomes(engine, {f"A-{number:02}": 0 for number in range(10)})
    expected = {one.id for one in await engine.log()}
    found: list[UUID] = []
    before = LATEST
    while page := (await engine.deliveries.page(None, before, ALWAYS, 2))[:2]:
        found += [one.id for one in page]
        before = (page[-1].created_at, page[-1].id)
        await engine.ping(endpoint)
        await engine.answer((await engine.claim(3))[:3], 200)
        await engine.resend(page[0].id)
    assert len(found) == len(set(found))
    assert expected <= set(found)


class Between:
    """A connection on which something happens after its first look at what is pending."""

    def __init__(self, connection: Connection, hook: Hook) -> None:
        self._connection = connection
        self._hooks = [hook]

    async def execute(self, statement: str) -> None:
        await self._connection.execute(statement)

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        rows = await self._connection.fetch(statement, *arguments)
        if "pending_delivery" in statement and self._hooks:
            await self._hooks.pop()()
        return list(rows)


class Interrupted(Database):
    def __init__(self, database: Database, hook: Hook) -> None:
        self._database = database
        self._hook = hook

    @asynccontextmanager
    async def reading_snapshot(self) -> AsyncIterator[Connection]:
        async with self._database.reading_snapshot() as connection:
            yield cast(Connection, Between(connection, self._hook))


async def page_during(engine: Engine, hook: Hook) -> list[UUID]:
    deliveries = Deliveries(Interrupted(engine.database, hook), engine.feed)
    return [one.id for one in await deliveries.page(None, LATEST, ALWAYS, 10)]


async def test_what_ends_between_the_looks_of_one_page_is_shown_once(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)

    async def end() -> None:
        await engine.answer(await engine.claim())

    assert await page_during(engine, end) == [delivery_id]


async def test_what_is_sent_anew_between_the_looks_of_one_page_is_still_shown(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    await engine.answer(await engine.claim())

    async def send_anew() -> None:
        await engine.resend(delivery_id)

    assert await page_during(engine, send_anew) == [delivery_id]


async def test_the_log_of_one_endpoint_is_its_own_and_outlives_it(engine: Engine, database: Database) -> None:
    one, other = (await engine.subscribe()).endpoint, (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    page = await engine.deliveries.page(one.id, LATEST, ALWAYS, 10)
    assert [found.endpoint_id for found in page] == [one.id]
    await engine.execute("update endpoint set removed_at = now() where id = $1", other.id)
    assert len(await engine.deliveries.page(other.id, LATEST, ALWAYS, 10)) == 1
    with pytest.raises(UnknownEndpoint):
        await engine.deliveries.page(UUID(int=5), LATEST, ALWAYS, 10)


async def test_a_key_that_is_limited_to_projects_sees_the_deliveries_of_endpoints_within_them(
    engine: Engine, database: Database
) -> None:
    project_id = await new_units(database, "A-1")
    await new_project(database, "other-court")
    for_all = (await engine.subscribe()).endpoint
    within = (await engine.subscribe(project_slugs=("palm-court",))).endpoint
    beyond = (await engine.subscribe(project_slugs=("palm-court", "other-court"))).endpoint
    await switch(database, project_id, "A-1")
    assert len(await engine.log()) == 3
    own = await engine.deliveries.page(None, LATEST, ALWAYS, 10, ("palm-court",))
    assert [one.endpoint_id for one in own] == [within.id]
    assert (await engine.deliveries.find(own[0].id, ("palm-court",)))[0] == own[0]
    for endpoint in (for_all, beyond):
        with pytest.raises(UnknownEndpoint):
            await engine.deliveries.page(endpoint.id, LATEST, ALWAYS, 10, ("palm-court",))
        (foreign,) = await engine.deliveries.page(endpoint.id, LATEST, ALWAYS, 10)
        with pytest.raises(UnknownDelivery):
            await engine.deliveries.find(foreign.id, ("palm-court",))


async def test_a_delivery_shows_when_it_is_tried_next_and_when_it_ended(engine: Engine) -> None:
    await with_outcomes(engine, {"ok": 200, "no": 500})
    now: datetime = await engine.value("select clock_timestamp()")
    found = {one.unit_code: one for one in await engine.log()}
    ok, no = found["ok"], found["no"]
    assert (ok.next_attempt_at, no.ended_at) == (None, None)
    assert ok.ended_at is not None
    assert no.next_attempt_at is not None
    assert ok.created_at <= ok.ended_at <= now
    assert (no.attempts, no.last_status_code, str(no.last_cause)) == (1, 500, "The receiver answered 500.")


async def test_what_waits_for_an_earlier_event_may_be_sent_before_the_time_that_it_shows(
    engine: Engine, database: Database
) -> None:
    """That is only when it looks again at the latest."""
    await engine.subscribe()
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    (first,) = await engine.claim()
    waiting, _ = await engine.log()
    await engine.answer([first])
    (claimed,) = await engine.claim()
    assert waiting.next_attempt_at is not None
    assert claimed.delivery_id == waiting.id
    assert claimed.claimed_at < waiting.next_attempt_at


async def test_the_time_that_a_delivery_of_a_paused_endpoint_shows_may_be_past(engine: Engine) -> None:
    delivery_id = await engine.ping((await engine.subscribe(paused=True)).endpoint)
    due_at = (await engine.find(delivery_id)).next_attempt_at
    assert due_at is not None
    assert due_at <= await engine.value("select clock_timestamp()")


async def test_the_events_of_one_unit_are_told_apart(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    project_id = await new_units(database, "A-1", "A-2")
    await hold(database, (project_id, "A-1"))
    await store(database, replacement(project_id, "A-2", price=4))
    assert await codes(engine, events=("unit.held",)) == {"A-1"}
