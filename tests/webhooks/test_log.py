"""The log: every delivery once, the latest first, by filters; and its partitions, which come and go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from holdfast.background import jobs
from holdfast.domain import delivery
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import Delivery, DeliveryStatus, FailedDeliveryFilter, ReconciliationCounts
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import CursorExpired, DatabaseUnavailable, UnknownDelivery, UnknownEndpoint
from holdfast.operations.delivery_queue import (
    QueueCleanup,
    drop_old_log_partitions,
    ensure_log_partitions,
    maintain_log,
)
from holdfast.operations.reports import sum_up
from holdfast.operations.units import Units
from holdfast.storage import delivery_log, events, log_partitions, recovery
from holdfast.storage.database import DISPATCHER_SETTINGS, Database
from tests.support.delivery_engine import ALWAYS, LATEST, NOWHERE, Engine, an_engine, eventually, made, switch
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import hold, new_units
from tests.support.sql import as_owner, connected

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


async def all_pages(engine: Engine, limit: int, hook: Callable[[], Any] | None = None) -> list[Delivery]:
    found: list[Delivery] = []
    before = LATEST
    while page := (await engine.deliveries.page(None, before, ALWAYS, limit))[:limit]:
        found += page
        before = (page[-1].created_at, page[-1].id)
        if hook is not None:
            await hook()
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
    before = DELIVERED if is_resent else PENDING
    if is_resent:
        await engine.answer(await engine.claim())
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


async def assert_unknown(engine: Engine, delivery_id: UUID, slugs: tuple[str, ...] | None) -> None:
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
    return [found for found, _ in await units.latest_deliveries(unit, limit)]


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


# Partitions: created ahead, dropped when they are old, and reconciled with the feed.

KEEP = timedelta(days=90)
TODAY = "select (clock_timestamp() at time zone 'UTC')::date"
ENDED = """
    insert into ended_delivery (id, endpoint_id, event, created_at, body, status, ended_at)
    values (gen_random_uuid(), gen_random_uuid(), 'ping', $1, '{}', 'delivered', $1)
"""
ATTEMPTED = """
    insert into attempt (delivery_id, number, trigger, started_at, ended_at, duration_ms, url,
        request_headers, response_headers, response_body, response_clipped)
    values (gen_random_uuid(), 1, 'first', $1, $1, 1, 'x', '[]', '[]', '', false)
"""
OLD = "interval '100 days'"
WAITING = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
DETACHING = "from pg_stat_activity where query like '%detach%' and wait_event_type = 'Lock'"


async def partitions(engine: Engine) -> list[str]:
    """Of the attempts."""
    partition = "select inhrelid::regclass::text from pg_inherits where inhparent = 'attempt'::regclass"
    return sorted(name for (name,) in await engine.rows(partition))


async def create_day(engine: Engine, days_ago: int) -> date:
    """With one delivery and one attempt."""
    day: date = await engine.value(TODAY) - timedelta(days=days_ago)
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    async with engine.database.writing() as connection:
        for table in log_partitions.TABLES:
            await log_partitions._create_day(connection, table, day)
        await connection.execute(ENDED, midnight)
        await connection.execute(ATTEMPTED, midnight)
    return day


@asynccontextmanager
async def reading_the_log(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A transaction that has read all of the log and stays open."""
    async with connected(postgres_url) as connection, connection.transaction():
        await connection.fetchval("select count(*) from ended_delivery")
        await connection.fetchval("select count(*) from attempt")
        yield connection


async def test_days_are_created_ahead_and_again_if_one_is_missing(engine: Engine, postgres_url: str) -> None:
    today: date = await engine.value(TODAY)
    names = [f"attempt_{today + timedelta(days=ahead):%Y%m%d}" for ahead in range(-1, 4)]
    assert await partitions(engine) == names
    await engine.execute(f"drop table {names[2]}")

    async def create() -> None:
        async with Database(postgres_url) as own:
            await ensure_log_partitions(own)

    await asyncio.gather(*(create() for _ in range(4)))
    assert await partitions(engine) == names


async def test_the_dispatcher_waits_for_another_loop_that_creates_the_days(
    database: Database, postgres_url: str
) -> None:
    """As at a first start. It does not wait for anything else that is locked."""
    impatient = {**DISPATCHER_SETTINGS, "lock_timeout": "1ms"}
    async with Database(postgres_url, settings=impatient) as own, connected(postgres_url) as look:
        async with database.writing() as connection:
            await log_partitions.create_upcoming(connection)
            waiting = asyncio.create_task(QueueCleanup(own).run())
            while not (waiting.done() or await look.fetch(WAITING)):
                pass
        await waiting
        async with own.writing() as connection:
            await log_partitions.create_upcoming(connection)
            assert await connection.fetchval("show lock_timeout") == "1ms"


async def test_what_ends_at_the_edge_of_a_day_has_its_place(engine: Engine) -> None:
    midnight = datetime.combine(await engine.value(TODAY), datetime.min.time(), UTC)
    for milliseconds in (0, 86_399_999, 86_400_000, -1):
        await engine.execute(ENDED, midnight + timedelta(milliseconds=milliseconds))
    assert await engine.value("select count(distinct tableoid) from ended_delivery") == 3


async def test_days_that_are_no_longer_kept_are_dropped_and_the_others_stay(engine: Engine) -> None:
    waiting = await engine.ping(await engine.endpoint())
    await engine.execute("update pending_delivery set created_at = now() - interval '200 days'")
    for days_ago in (200, 91, 90, 89):
        await create_day(engine, days_ago)
    dropped = await drop_old_log_partitions(engine.database, KEEP)
    assert len(dropped) == 4
    assert await engine.value("select count(*) from ended_delivery") == 2
    assert await engine.value("select count(*) from attempt") == 2
    for name in dropped:
        assert await engine.value("select to_regclass($1)", name) is None
    assert await drop_old_log_partitions(engine.database, KEEP) == []
    await maintain_log(engine.database, timedelta(days=3))
    assert len(await partitions(engine)) == 5
    # Pending deliveries are kept, however old they are.
    assert await engine.answer(await engine.claim()) == {waiting}


async def test_today_is_kept_however_short_the_log_is(engine: Engine) -> None:
    delivery_id = await engine.ping(await engine.endpoint())
    await engine.answer(await engine.claim())
    await drop_old_log_partitions(engine.database, timedelta(seconds=1))
    assert len(await engine.attempts(delivery_id)) == 1
    await engine.resend(delivery_id)
    assert await engine.answer(await engine.claim()) == {delivery_id}


async def test_while_a_day_is_detached_nobody_waits_and_the_next_process_finishes_it(
    engine: Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days_ago in (101, 100):
        await create_day(engine, days_ago)
    endpoint = await engine.endpoint()
    async with reading_the_log(postgres_url) as reader, Database(postgres_url) as stopped:
        dropping = asyncio.create_task(drop_old_log_partitions(stopped, KEEP))
        await eventually(lambda: engine.rows(f"select {DETACHING}"))
        async with asyncio.timeout(60):
            # Others read and write the log, the reader reads on, and days are created.
            delivery_id = await engine.ping(endpoint)
            await engine.answer(await engine.claim())
            assert len(await engine.attempts(delivery_id)) == 1
            assert (await engine.log())[0].id == delivery_id
            await engine.resend(delivery_id)
            await reader.fetchval("select count(*) from ended_delivery")
            monkeypatch.setattr(log_partitions, "DAYS_AHEAD", 5)
            async with engine.database.writing() as connection:
                await log_partitions.create_upcoming(connection)
        assert not dropping.done()
        await engine.execute(f"select pg_terminate_backend(pid) {DETACHING}")
        with pytest.raises(DatabaseUnavailable):
            await dropping
    assert await engine.value("select count(*) from pg_inherits where inhdetachpending") == 1
    assert len(await drop_old_log_partitions(engine.database, KEEP)) == 4
    assert len(await partitions(engine)) == 7


async def test_a_day_that_was_detached_but_not_dropped_is_dropped_by_the_next(engine: Engine) -> None:
    day = await create_day(engine, 100)
    await engine.execute(f"alter table attempt detach partition attempt_{day:%Y%m%d}")
    assert len(await drop_old_log_partitions(engine.database, KEEP)) == 2


async def test_processes_that_drop_at_once_drop_each_day_once(engine: Engine, postgres_url: str) -> None:
    for days_ago in (101, 100):
        await create_day(engine, days_ago)
    async with Database(postgres_url) as other:
        databases = (engine.database, other, engine.database)
        dropped = await asyncio.gather(*(drop_old_log_partitions(database, KEEP) for database in databases))
    # Whoever comes when all is done has nothing to do either.
    assert sorted(map(len, dropped)) == [0, 0, 4]


# The feed and the deliveries agree.


async def counts(engine: Engine) -> ReconciliationCounts:
    endpoint_id = await engine.value("select id from endpoint order by created_at limit 1")
    return (await engine.deliveries.reconcile(endpoint_id, None)).counts


async def test_each_event_is_counted_as_what_became_of_it(database: Database) -> None:
    async with an_engine(database, schedule=delivery.Schedule(0.01, 1)) as engine:
        endpoint = await engine.endpoint()
        await engine.queue_events(*(f"A-{number}" for number in range(6)))
        # Neither pings nor the events of others are counted.
        await engine.endpoint()
        await engine.ping(endpoint)
        await engine.answer([one for one in await engine.claim() if one.event == "ping"])
        await engine.execute("delete from in_flight")
        claimed = await engine.claim(3)
        await engine.answer(claimed[:2], 200)
        await engine.answer(claimed[2:], 500)
        expected = ReconciliationCounts(6, 2, pending=3, failed=1, cancelled=0, forgotten=0, missing=0)
        assert await counts(engine) == expected
        await engine.change(endpoint, events=("unit.sold",))
        expected = expected._replace(pending=0, cancelled=3)
        assert await counts(engine) == expected
        await engine.resend(claimed[0].delivery_id)
        expected = expected._replace(delivered=1, pending=1)
        assert await counts(engine) == expected
        await engine.remove(endpoint)
        expected = expected._replace(pending=0, cancelled=4)
        assert await counts(engine) == expected
        # A delivery that is gone without a trace is seen.
        await engine.execute("delete from ended_delivery where id = $1", claimed[0].delivery_id)
        assert await counts(engine) == expected._replace(cancelled=3, missing=1)


async def test_from_any_cursor_on_the_counts_are_those_of_the_feed(engine: Engine) -> None:
    endpoint = await engine.endpoint(events=("unit.available",))
    await engine.queue_events("A-1", "A-2", times=4)
    await engine.answer(await engine.claim())
    for after in range(9):
        feed = await engine.feed.read(after, 100, None, endpoint.id)
        found = await engine.deliveries.reconcile(endpoint.id, after)
        statuses = [(await engine.find(item.id)).status for item in feed.items]
        assert (found.after, found.upto) == (after, 8)
        assert found.counts.events == len(feed.items)
        assert found.counts.delivered == statuses.count(DELIVERED)
        assert found.counts.pending == statuses.count(PENDING)
        assert found.counts.missing == 0


async def test_a_recovery_leaves_no_gap_in_what_is_compared(engine: Engine, postgres_url: str) -> None:
    """Positions go on from the milliseconds since 2025: there are billions between two events."""
    endpoint = await engine.endpoint()
    project_id = await engine.queue_events("A-1", times=4)
    await engine.feed.number()
    async with connected(as_owner(postgres_url)) as owner:
        await owner.execute(recovery.ADVANCE)
    await switch(engine.database, project_id, "A-1")
    assert (await counts(engine)).pending == 5
    for latest, compared in ((1, 1), (2, 2), (4, 4), (100, 5)):
        found = await engine.deliveries.reconcile(endpoint.id, None, latest=latest)
        assert (found.compared, found.counts.pending) == (compared, compared)


async def test_a_long_feed_is_compared_in_parts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.endpoint()
    await engine.queue_events("A-1", times=5)
    for size in range(1, 7):
        monkeypatch.setattr(delivery_log, "EVENTS_AT_ONCE", size)
        assert (await counts(engine)).pending == 5


async def test_what_is_older_than_the_log_is_forgotten_not_missing(engine: Engine, postgres_url: str) -> None:
    await engine.endpoint()
    await engine.queue_events("old", "new")
    await engine.answer(await engine.claim())
    await create_day(engine, 100)
    old_unit = "(select id from unit where code = 'old')"
    await engine.execute(f"update event set created_at = created_at - {OLD} where unit_id = {old_unit}")
    older = f"created_at = created_at - {OLD}, ended_at = ended_at - {OLD}"
    await engine.execute(f"update ended_delivery set {older} where unit_id = {old_unit}")
    expected = ReconciliationCounts(2, 2, 0, 0, 0, 0, 0)
    assert await counts(engine) == expected
    async with reading_the_log(postgres_url):
        dropping = asyncio.create_task(drop_old_log_partitions(engine.database, KEEP))
        await eventually(lambda: engine.rows(f"select {DETACHING}"))
        meanwhile = await counts(engine)
    await dropping
    assert meanwhile.missing == 0
    assert meanwhile.delivered + meanwhile.forgotten == 2
    assert await counts(engine) == expected._replace(delivered=1, forgotten=1)


async def test_a_cursor_before_the_start_of_the_feed_is_refused(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.queue_events("A-1", times=2)
    await engine.feed.number()
    await engine.execute("update event set created_at = created_at - interval '401 days' where position = 1")
    await sum_up(engine.database)
    await jobs.trim(engine.database, events.TRIM, 400, 10)
    with pytest.raises(CursorExpired):
        await engine.deliveries.reconcile(endpoint.id, 0)
    assert (await counts(engine)).events == 1
