"""The partitions of the log: created ahead, dropped when they are old, and reconciled with the feed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta

import asyncpg
import pytest

from holdfast.domain.delivery import DeliveryStatus, ReconciliationCounts, Schedule
from holdfast.domain.errors import CursorExpired, DatabaseUnavailable
from holdfast.operations.delivery_queue import drop_old_log_partitions, ensure_log_partitions, maintain_log
from holdfast.operations.reports import sum_up
from holdfast.storage import log_partitions
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, eventually

KEEP = timedelta(days=90)
TODAY = "select (clock_timestamp() at time zone 'UTC')::date"
DELIVERED = """
    insert into ended_delivery (id, endpoint_id, event, created_at, body, status, ended_at)
    values (gen_random_uuid(), gen_random_uuid(), 'ping', $1, '{}', 'delivered', $1)
"""
ATTEMPTED = """
    insert into attempt (delivery_id, number, trigger, started_at, ended_at, duration_ms, url,
        request_headers, response_headers, response_body, response_clipped)
    values (gen_random_uuid(), 1, 'first', $1, $1, 1, 'x', '[]', '[]', '', false)
"""
OLD = "interval '100 days'"
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
        await connection.execute(DELIVERED, midnight)
        await connection.execute(ATTEMPTED, midnight)
    return day


@asynccontextmanager
async def reading_the_log(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A transaction that has read all of the log and stays open."""
    connection = await asyncpg.connect(postgres_url)
    try:
        async with connection.transaction():
            await connection.fetchval("select count(*) from ended_delivery")
            await connection.fetchval("select count(*) from attempt")
            yield connection
    finally:
        await connection.close()


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


async def test_what_ends_at_the_edge_of_a_day_has_its_place(engine: Engine) -> None:
    midnight = datetime.combine(await engine.value(TODAY), datetime.min.time(), UTC)
    for milliseconds in (0, 86_399_999, 86_400_000, -1):
        await engine.execute(DELIVERED, midnight + timedelta(milliseconds=milliseconds))
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
    async with an_engine(database, schedule=Schedule(0.01, 1)) as engine:
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
        assert found.counts.delivered == statuses.count(DeliveryStatus.DELIVERED)
        assert found.counts.pending == statuses.count(DeliveryStatus.PENDING)
        assert found.counts.missing == 0


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
    await engine.feed.trim(timedelta(days=400), 10)
    with pytest.raises(CursorExpired):
        await engine.deliveries.reconcile(endpoint.id, 0)
    assert (await counts(engine)).events == 1
