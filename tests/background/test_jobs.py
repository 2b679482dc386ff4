"""Loops that run until their process stops, and the periodic jobs: event totals, expired leases, cleanup."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from holdfast.background import jobs
from holdfast.background.jobs import (
    CLEANUP_SECONDS,
    RESCUE_SECONDS,
    PeriodicJob,
    database_jobs,
    queue_jobs,
    run_loops,
)
from holdfast.domain.audit import CLOCK, AuditEntry, Change
from holdfast.operations import delivery_queue
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import COMPARED_EVERY, sum_up
from holdfast.settings import Settings
from holdfast.storage import audit, reports
from holdfast.storage.database import Database, current_time
from holdfast.wiring import LEASE_BEYOND_ATTEMPT_SECONDS
from tests.support.delivery_engine import Engine, switch
from tests.support.inventory import replacement, store
from tests.support.sales import new_units, sell
from tests.support.sql import value

QUEUE = "select due_at, postponed from pending_delivery order by unit_version"
NOTHING = Change(None, {})
POSTPONED = "select count(*) from pending_delivery where postponed"


async def test_a_round_may_fail_and_an_endless_one_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PAUSE_AFTER_FAILURE_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "LAST_ROUND_SECONDS", 0.0)
    stop, rounds = asyncio.Event(), []

    async def fail_once() -> None:
        rounds.append("failing once")
        if len(rounds) == 1:
            raise RuntimeError("the first round fails")
        if len(rounds) == 3:
            stop.set()

    async def wait_for_ever() -> None:
        stop.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            rounds.append("cancelled")
            raise

    await run_loops([PeriodicJob("failing once", 0.0, fail_once)], stop)
    assert len(rounds) == 3
    stop.clear()
    await run_loops([PeriodicJob("endless", 0.0, wait_for_ever)], stop)
    assert rounds[3:] == ["cancelled"]


# Event totals


async def totals(database: Database, project_id: UUID) -> tuple[int, int]:
    """How many units are counted, and steps summed."""
    steps = await value(database, "select coalesce(sum(steps), 0)::int from event_hour")
    return await database.read(reports.counted_units, project_id), steps


async def test_what_is_trimmed_and_for_how_long_it_is_kept_follows_from_the_settings(
    database: Database,
) -> None:
    by_default = {job.name for job in database_jobs(database, Settings())}
    settings = Settings(lapsed_hold_retention_days=7.5, audit_retention_days=0.5)
    limited = [job for job in database_jobs(database, settings) if job.name not in by_default]
    assert [job.name for job in limited] == ["booking trimming", "audit trimming"]
    for hours in (11, 13):
        now = await database.read(current_time)
        entry = AuditEntry(uuid4(), None, now - timedelta(hours=hours), CLOCK, f"{hours}", None, NOTHING)
        await database.write(audit.insert, entry)
    assert [await job.run() for job in limited] == [0, 1]
    assert await value(database, "select action from audit_entry") == "11"


async def test_a_round_sums_every_numbered_event_once_and_compares_units_seldom(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    await sell(database, (project_id, "A-1"))
    await EventFeed(database).number()
    await sum_up(database)
    assert await database.read(reports.unsummed) == 0
    await store(database, replacement(project_id, "A-2"))
    await sum_up(database)
    assert await totals(database, project_id) == (1, 3)
    compared = "update event_sums set units_compared_at = units_compared_at - $1::interval"
    async with database.writing() as connection:
        await connection.execute(compared, COMPARED_EVERY)
    await sum_up(database)
    assert await totals(database, project_id) == (2, 3)


async def test_a_loop_does_not_wait_for_another_that_sums(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    await sell(database, (project_id, "A-1"))
    await EventFeed(database).number()
    async with database.writing() as other:
        assert await reports.sum_events(other, 1) == 1
        await sum_up(database)
        assert await totals(database, project_id) == (0, 0)
    await sum_up(database)
    assert await totals(database, project_id) == (1, 3)


# Expired leases


async def lose_claims(engine: Engine, count: int) -> None:
    endpoint = (await engine.subscribe(max_in_flight=100)).endpoint
    for _ in range(count):
        await engine.ping(endpoint)
    assert len(await engine.claim()) == count
    await engine.let_leases_run_out()


async def test_deliveries_that_a_crashed_worker_had_claimed_are_sent_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_queue, "RESCUED_AT_ONCE", 2)
    rescue, _ = queue_jobs(engine.dispatching, engine.tidying)
    assert await rescue.run_once() == RESCUE_SECONDS
    await lose_claims(engine, 5)
    assert [await rescue.run_once() for _ in range(4)] == [0, 0, 0, RESCUE_SECONDS]
    assert await engine.value("select count(*) from attempt") == 5
    await engine.make_due()
    assert len(await engine.claim()) == 5
    lease_seconds = Settings.from_environment({}).attempt_timeout_seconds + LEASE_BEYOND_ATTEMPT_SECONDS
    assert lease_seconds + 2 * RESCUE_SECONDS < 60


async def test_a_claim_of_a_delivery_that_is_gone_does_not_keep_its_place(engine: Engine) -> None:
    await lose_claims(engine, 1)
    await engine.execute("delete from pending_delivery")
    assert await queue_jobs(engine.dispatching, engine.tidying)[0].run_once() == RESCUE_SECONDS
    assert await engine.value("select count(*) from in_flight") == 0


# Cleanup of the queue


async def lose_deliveries(engine: Engine) -> None:
    """Those that others wait for are gone."""
    await engine.execute("delete from pending_delivery where not postponed")
    await engine.execute("delete from in_flight")


async def test_a_delivery_waits_until_the_one_before_it_is_gone(engine: Engine, database: Database) -> None:
    await engine.subscribe()
    await switch(database, await new_units(database, "A-1"), "A-1", 2)
    assert len(await engine.claim()) == 1
    assert await engine.claim() == []
    before = await engine.rows(QUEUE)
    _, cleanup = queue_jobs(engine.dispatching, engine.tidying)
    assert await cleanup.run_once() >= CLEANUP_SECONDS
    assert await engine.rows(QUEUE) == before
    await lose_deliveries(engine)
    assert await engine.claim() == []
    await cleanup.run_once()
    assert len(await engine.claim()) == 1


@pytest.mark.parametrize("units_at_once", [1, 2, 5, 6])
async def test_all_are_found_however_few_are_looked_at_together(
    engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch, units_at_once: int
) -> None:
    monkeypatch.setattr(delivery_queue, "UNITS_AT_ONCE", units_at_once)
    for _ in range(2):
        await engine.subscribe()
    codes = [f"A-{number}" for number in range(3)]
    project_id = await new_units(database, *codes)
    for code in codes:
        await switch(database, project_id, code, 2)
    assert len(await engine.claim()) == 6
    assert await engine.value(POSTPONED) == 6
    await lose_deliveries(engine)
    await engine.tidying.run()
    assert await engine.value(POSTPONED) == 0
