"""The days of the log: made ahead, dropped when they are old, and nobody is in anybody's way meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.operations.delivery_queue import drop_old_log_partitions, ensure_log_partitions, maintain_log
from holdfast.storage import log_partitions
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, eventually

KEEP = timedelta(days=90)
PARTS = """
    select inhrelid::regclass::text from pg_inherits where inhparent = $1::text::regclass order by 1
"""
DETACHING = "select count(*) from pg_inherits where inhdetachpending"
WAITING = "select count(*) from pg_stat_activity where query like '%detach%' and wait_event_type = 'Lock'"


async def parts(engine: Engine, table: str) -> list[str]:
    return [row[0] for row in await engine.rows(PARTS, table)]


async def add_day(engine: Engine, days_ago: int) -> date:
    """As it stands in the log since that day, with one delivery and its attempt in it."""
    today: date = await engine.value("select (clock_timestamp() at time zone 'UTC')::date")
    day = today - timedelta(days=days_ago)
    async with engine.database.writing() as connection:
        for table in log_partitions.TABLES:
            await log_partitions._create_day(connection, table, day)
        await connection.execute(
            """
            insert into ended_delivery (id, endpoint_id, event, created_at, body, status, ended_at)
            values (gen_random_uuid(), gen_random_uuid(), 'ping', $1, '{}', 'delivered', $1)
            """,
            datetime.combine(day, datetime.min.time(), UTC),
        )
        await connection.execute(
            """
            insert into attempt (delivery_id, number, trigger, started_at, ended_at, duration_ms, url,
                request_headers, response_headers, response_body, response_clipped)
            values (gen_random_uuid(), 1, 'first', $1, $1, 1, 'x', '[]', '[]', '', false)
            """,
            datetime.combine(day, datetime.min.time(), UTC),
        )
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


async def test_days_are_made_ahead_and_again_only_when_one_is_missing(
    engine: Engine, database: Database
) -> None:
    today: date = await engine.value("select (clock_timestamp() at time zone 'UTC')::date")
    names = [f"attempt_{today + timedelta(days=ahead):%Y%m%d}" for ahead in range(-1, 4)]
    assert await parts(engine, "attempt") == names
    assert len(await parts(engine, "ended_delivery")) == 5
    await engine.execute(f"drop table {names[2]}")
    await ensure_log_partitions(database)
    assert await parts(engine, "attempt") == names


async def test_many_processes_make_the_days_at_once(postgres_url: str) -> None:
    async def make() -> None:
        async with Database(postgres_url) as own:
            await ensure_log_partitions(own)

    await asyncio.gather(*(make() for _ in range(6)))
    async with Database(postgres_url) as database, database.reading() as connection:
        assert len(await connection.fetch(PARTS, "attempt")) == 5


async def test_what_ends_at_the_edge_of_a_day_has_its_place(engine: Engine) -> None:
    await engine.execute(
        """
        insert into ended_delivery (id, endpoint_id, event, created_at, body, status, ended_at)
        select gen_random_uuid(), gen_random_uuid(), 'ping', at, '{}', 'failed', at
        from (select (date_trunc('day', now() at time zone 'UTC') + edge) at time zone 'UTC' as at
            from unnest(array['0 ms', '86399999 ms', '86400000 ms', '-1 ms']::interval[]) as edge) as edges
        """
    )
    assert await engine.value("select count(distinct tableoid) from ended_delivery") == 3


async def test_days_that_are_no_longer_kept_are_dropped_and_the_others_stay(
    engine: Engine, database: Database
) -> None:
    for days_ago in (200, 91, 90, 89):
        await add_day(engine, days_ago)
    dropped = await drop_old_log_partitions(database, KEEP)
    assert len(dropped) == 4
    assert await engine.value("select count(*) from ended_delivery") == 2
    assert await engine.value("select count(*) from attempt") == 2
    for name in dropped:
        assert await engine.value("select to_regclass($1)", name) is None
    assert await drop_old_log_partitions(database, KEEP) == []


async def test_today_is_kept_however_short_the_log_is(engine: Engine, database: Database) -> None:
    delivery_id = await engine.ping((await engine.subscribe()).endpoint)
    await engine.answer(await engine.claim())
    await drop_old_log_partitions(database, timedelta(seconds=1))
    assert len(await engine.attempts(delivery_id)) == 1
    await engine.resend(delivery_id)
    await engine.make_due()
    assert await engine.answer(await engine.claim()) == {delivery_id}


async def test_while_somebody_reads_the_log_a_day_is_taken_out_and_nobody_waits_for_that(
    engine: Engine, database: Database, postgres_url: str
) -> None:
    await add_day(engine, 100)
    endpoint = (await engine.subscribe()).endpoint
    async with reading_the_log(postgres_url) as reader:
        dropping = asyncio.create_task(drop_old_log_partitions(database, KEEP))
        await eventually(lambda: is_waiting(engine))
        async with asyncio.timeout(3):
            # Others read and write the log, the reader reads on, and days are looked for.
            delivery_id = await engine.ping(endpoint)
            await engine.answer(await engine.claim())
            assert len(await engine.attempts(delivery_id)) == 1
            assert [one.id for one in await engine.log()] == [delivery_id]
            await engine.resend(delivery_id)
            await reader.fetchval("select count(*) from ended_delivery")
            await ensure_log_partitions(database)
        assert not dropping.done()
    assert len(await dropping) == 2


async def is_waiting(engine: Engine) -> bool:
    return bool(await engine.value(WAITING))


async def interrupt(engine: Engine, postgres_url: str) -> None:
    """A process that was stopped while it took a day out of the log."""
    async with reading_the_log(postgres_url), Database(postgres_url) as own:
        dropping = asyncio.create_task(drop_old_log_partitions(own, KEEP))
        await eventually(lambda: is_waiting(engine))
        await engine.execute(
            """
            select pg_terminate_backend(pid) from pg_stat_activity
            where query like '%detach%' and wait_event_type = 'Lock'
            """
        )
        with pytest.raises(DatabaseUnavailable):
            await dropping
    assert await engine.value(DETACHING) == 1


async def test_what_a_stopped_process_has_left_is_finished_by_the_next(
    engine: Engine, database: Database, postgres_url: str
) -> None:
    for days_ago in (101, 100):
        await add_day(engine, days_ago)
    await interrupt(engine, postgres_url)
    assert len(await drop_old_log_partitions(database, KEEP)) == 4
    assert await engine.value(DETACHING) == 0
    assert len(await parts(engine, "attempt")) == 5


async def test_a_day_that_was_taken_out_but_not_dropped_is_dropped_by_the_next(
    engine: Engine, database: Database
) -> None:
    day = await add_day(engine, 100)
    await engine.execute(f"alter table attempt detach partition attempt_{day:%Y%m%d}")
    assert len(await drop_old_log_partitions(database, KEEP)) == 2


async def test_days_are_made_while_another_process_is_still_dropping(
    engine: Engine, database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that does not end keeps a day from being dropped; those to come need their parts meanwhile."""
    await add_day(engine, 100)
    monkeypatch.setattr(log_partitions, "DAYS_AHEAD", 5)
    async with reading_the_log(postgres_url):
        dropping = asyncio.create_task(drop_old_log_partitions(database, KEEP))
        await eventually(lambda: is_waiting(engine))
        async with Database(postgres_url) as other, asyncio.timeout(3), other.writing() as connection:
            await log_partitions.create_upcoming(connection)
    await dropping
    assert len(await parts(engine, "attempt")) == 7


async def test_two_keepers_at_once_drop_each_day_once(
    engine: Engine, database: Database, postgres_url: str
) -> None:
    for days_ago in (102, 101, 100):
        await add_day(engine, days_ago)
    async with Database(postgres_url) as other:
        dropped = await asyncio.gather(
            drop_old_log_partitions(database, KEEP),
            drop_old_log_partitions(other, KEEP),
            drop_old_log_partitions(database, KEEP),
        )
    assert sorted(map(len, dropped)) == [0, 0, 6]
    assert await drop_old_log_partitions(database, KEEP) == []


async def test_a_dropped_day_takes_the_deliveries_with_it_and_leaves_the_pending(
    database: Database, engine: Engine
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    waiting = await engine.ping(endpoint)
    await engine.execute("update pending_delivery set created_at = now() - interval '200 days'")
    await drop_old_log_partitions(database, KEEP)
    assert (await engine.find(waiting)).status == "pending"
    await engine.make_due()
    assert await engine.answer(await engine.claim()) == {waiting}


async def test_the_keeper_makes_and_drops_and_rests_for_an_hour(database: Database) -> None:
    async with an_engine(database) as engine:
        await add_day(engine, 100)
        await maintain_log(database, KEEP)
        assert len(await parts(engine, "attempt")) == 5
