"""The feed and the deliveries agree: what an endpoint got, is to get, or failed to get is what was for it."""

import asyncio
from datetime import timedelta

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import DeliveryStatus, ReconciliationCounts, Schedule
from holdfast.domain.errors import CursorExpired
from holdfast.operations.delivery_queue import drop_old_log_partitions
from holdfast.operations.reports import sum_up
from holdfast.storage import log_partitions
from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine, eventually, switch
from tests.support.sales import new_units
from tests.webhooks.test_log_days import KEEP, is_waiting, reading_the_log

NOTHING = ReconciliationCounts(0, 0, 0, 0, 0, 0, 0)


async def test_each_event_is_counted_as_what_became_of_it(database: Database) -> None:
    async with an_engine(database, schedule=Schedule(0.01, 1)) as engine:
        endpoint = (await engine.subscribe()).endpoint
        codes = [f"A-{number}" for number in range(6)]
        project_id = await new_units(database, *codes)
        for code in codes:
            await switch(database, project_id, code)
        claimed = await engine.claim(3)
        await engine.answer(claimed[:2], 200)
        await engine.answer(claimed[2:], 500)
        assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
            6, 2, 3, 1, 0, 0, 0
        )
        await engine.change(endpoint, events=("unit.sold",))
        assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
            6, 2, 0, 1, 3, 0, 0
        )
        await engine.resend(claimed[0].delivery_id)
        assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
            6, 1, 1, 1, 3, 0, 0
        )


async def test_from_any_cursor_on_the_numbers_are_those_of_the_feed(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe(events=("unit.available",))).endpoint
    project_id = await new_units(database, "A-1", "A-2")
    for code in ("A-1", "A-2"):
        await switch(database, project_id, code, 6)
    await engine.answer(await engine.claim())
    for after in range(13):
        feed = await engine.feed.read(after, 100, None, endpoint.id)
        found = await engine.deliveries.reconcile(endpoint.id, after)
        statuses = [(await engine.find(item.id)).status for item in feed.items]
        assert (found.after, found.upto) == (after, 12)
        assert found.counts.events == len(feed.items)
        assert found.counts.delivered == statuses.count(DeliveryStatus.DELIVERED)
        assert found.counts.pending == statuses.count(DeliveryStatus.PENDING)
        assert found.counts.missing == 0


async def test_pings_and_the_events_of_others_are_not_counted(engine: Engine, database: Database) -> None:
    endpoint = (await engine.subscribe(events=("unit.sold",))).endpoint
    await engine.subscribe()
    await engine.ping(endpoint)
    await switch(database, await new_units(database, "A-1"), "A-1")
    assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == NOTHING


async def test_a_removed_endpoint_is_reconciled_still(engine: Engine, database: Database) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    await engine.subscribing.remove(endpoint.id, COMMAND)
    assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
        1, 0, 0, 0, 1, 0, 0
    )


async def old_and_new(engine: Engine, days_ago: int) -> None:
    """One event of long ago and one of now, both delivered."""
    project_id = await new_units(engine.database, "old", "new")
    for code in ("old", "new"):
        await switch(engine.database, project_id, code)
    await engine.answer(await engine.claim())
    past = timedelta(days=days_ago)
    async with engine.database.writing() as connection:
        today = await connection.fetchval(log_partitions._TODAY)
        for table in log_partitions.TABLES:
            await log_partitions._create_day(connection, table, today - past)
        await connection.execute(
            """
            update event set created_at = created_at - $1::interval
            where unit_id = (select id from unit where code = 'old')
            """,
            past,
        )
        await connection.execute(
            """
            update ended_delivery
            set created_at = created_at - $1::interval, ended_at = ended_at - $1::interval
            where unit_code = 'old'
            """,
            past,
        )


async def test_what_is_older_than_the_log_is_forgotten_and_not_missing(
    engine: Engine, database: Database
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await old_and_new(engine, 100)
    assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
        2, 2, 0, 0, 0, 0, 0
    )
    await drop_old_log_partitions(database, KEEP)
    assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
        2, 1, 0, 0, 0, 1, 0
    )


async def test_while_a_day_is_being_taken_out_nothing_of_it_is_missing(
    engine: Engine, database: Database, postgres_url: str
) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await old_and_new(engine, 100)
    async with reading_the_log(postgres_url):
        dropping = asyncio.create_task(drop_old_log_partitions(database, KEEP))
        await eventually(lambda: is_waiting(engine))
        tally = (await engine.deliveries.reconcile(endpoint.id, None)).counts
    await dropping
    assert tally.missing == 0
    assert tally.delivered + tally.forgotten == 2


async def test_a_delivery_that_is_gone_without_a_trace_is_missing(engine: Engine, database: Database) -> None:
    """The number is there to be seen: it can be other than 0."""
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1")
    await engine.execute("delete from pending_delivery")
    assert (await engine.deliveries.reconcile(endpoint.id, None)).counts == ReconciliationCounts(
        1, 0, 0, 0, 0, 0, 1
    )


async def test_a_cursor_behind_the_start_of_the_feed_is_refused(engine: Engine, database: Database) -> None:
    endpoint = (await engine.subscribe()).endpoint
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    await engine.feed.number()
    await engine.execute("update event set created_at = created_at - interval '401 days' where position = 1")
    await sum_up(database)
    await engine.feed.trim(timedelta(days=400), 10)
    with pytest.raises(CursorExpired):
        await engine.deliveries.reconcile(endpoint.id, 0)
    assert (await engine.deliveries.reconcile(endpoint.id, None)).counts.events == 1
