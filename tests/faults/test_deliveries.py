"""Workers are killed or stand still, the database restarts or commits late, and every event arrives."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

from holdfast.domain.delivery import OUTCOME_UNKNOWN
from tests.support.clusters import Cluster
from tests.support.delivery_journal import Gate, Slowly, accept
from tests.support.delivery_scene import Scene, delivery_scene
from tests.support.workers import Pace, Worker

CODES = [f"A-{number}" for number in range(20)]
TURN = 4711
IS_KEPT_WAITING = f"select exists (select from pg_locks where objid = {TURN} and not granted)"

# A worker of that name stands still in the middle of its claim, for as long as somebody else has the turn.
STAND_STILL = f"""
    create function stand_still() returns trigger language plpgsql as $$
        begin
            if current_setting('tests.worker', true) = 'paused' then
                perform pg_advisory_lock_shared({TURN});
                perform pg_advisory_unlock_shared({TURN});
            end if;
            return null;
        end $$;
    create trigger stand_still after insert on in_flight for each statement execute function stand_still();
"""
IS_IN_ITS_CLAIM = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction' and query ~ 'with candidate as'
    )
"""

# Between the statement of a writer and its commit.
COMMIT_LATE = f"""
    create function commit_late() returns trigger language plpgsql as $$
        begin
            perform pg_advisory_xact_lock({TURN});
            return null;
        end $$;
    create constraint trigger commit_late after insert on event deferrable initially deferred
        for each row when (new.unit_id = '{{unit_id}}') execute function commit_late();
"""
ALL_NUMBERED = "select not exists (select from event where position is null)"

MIGRATION = """
    alter table pending_delivery add column priority integer not null default 0;
    alter table pending_delivery alter column tried type integer;
    create index pending_by_priority on pending_delivery (endpoint_id, priority, due_at);
    alter table endpoint add column labels text[] not null default '{}';
    alter table in_flight add column worker text;
    alter table ended_delivery add column priority integer not null default 0;
    alter table attempt add column size integer
"""
ARE_WORKERS_KEPT_WAITING = """
    select count(distinct pid) >= 2 from pg_locks join pg_stat_activity using (pid)
    where application_name = 'holdfast background' and not granted
"""


@pytest.fixture
async def scene(postgres_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    async with delivery_scene(postgres_url, tmp_path, Pace()) as made:
        await made.endpoint("hook")
        await made.add_units(CODES)
        yield made


async def test_what_a_killed_worker_had_sent_and_what_came_while_there_was_none_is_sent_by_the_next(
    scene: Scene,
) -> None:
    """What it had sent goes out again after its lease, and the later events of the unit wait for that."""
    scene.journal.behave = Gate()
    await scene.endpoint("ordered", ordered=True)
    for _ in range(3):
        await scene.change("A-1")
    (killed,) = await scene.start_workers("killed")
    await scene.journal.arrived(2)
    killed.kill()
    await scene.change("A-2")
    scene.journal.behave = accept
    await scene.start_workers("successor")
    history = await scene.assert_sound()
    causes = sorted(str([attempt["cause"] for attempt in own]) for own in history.attempts_of().values())
    # Of each endpoint, one twice and three once.
    assert causes == sorted([str([OUTCOME_UNKNOWN, None])] * 2 + ["[None]"] * 6)
    assert len(scene.journal.arrivals) == 10


@pytest.mark.slow
async def test_a_worker_that_stands_still_in_its_claim_keeps_nobody_from_sending(scene: Scene) -> None:
    """And what is no longer its own it does not send when it goes on."""
    paused = await stand_still_in_the_claim(scene)
    (other,) = await scene.start_workers("other")
    await scene.journal.arrived(2)
    await scene.settled()
    paused.go_on()
    other.kill()
    await scene.change("A-1")
    await scene.assert_sound()
    assert paused.lives


async def stand_still_in_the_claim(scene: Scene) -> Worker:
    """Between its last statement and the commit."""
    (paused,) = await scene.start_workers("paused")
    await scene.change("A-1")
    await scene.settled()
    await scene.execute(STAND_STILL)
    async with scene.aside() as turn:
        await turn.execute(f"select pg_advisory_lock({TURN})")
        await scene.change("A-1")
        await scene.until(IS_KEPT_WAITING)
        paused.pause()
    await scene.until(IS_IN_ITS_CLAIM)
    return paused


@asynccontextmanager
async def changing(scene: Scene) -> AsyncIterator[None]:
    """Units change all the time."""

    async def change() -> None:
        for code in itertools.cycle(CODES):
            await scene.change(code)

    task = asyncio.create_task(change())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "restarted") as own:
        yield own


@pytest.fixture
def restarted_url(cluster: Cluster) -> str:
    return cluster.new_database()


async def test_no_event_is_lost_when_the_database_crashes_in_mid_flight(
    cluster: Cluster, restarted_url: str, tmp_path: Path
) -> None:
    async with delivery_scene(restarted_url, tmp_path, Pace()) as scene:
        await scene.endpoint("hook")
        await scene.endpoint("ordered", ordered=True)
        await scene.add_units(CODES)
        scene.journal.behave = Slowly(0.2)
        await scene.start_workers("one", "two")
        async with changing(scene):
            await scene.journal.arrived(30)
            await scene.journal.until(lambda: scene.journal.arrivals[-1].answered_at is None)
            await asyncio.to_thread(cluster.crash)
            await asyncio.to_thread(cluster.start)
            await scene.journal.arrived(len(scene.journal.arrivals) + 30)
        await scene.assert_sound()
        assert all(worker.lives for worker in scene.workers)


@pytest.mark.slow
async def test_an_event_that_commits_after_a_later_one_is_sent_too(scene: Scene) -> None:
    await scene.start_workers("one", "two")
    unit_id = await scene.value("select id from unit where code = 'A-1'")
    await scene.execute(COMMIT_LATE.format(unit_id=unit_id))
    async with scene.aside() as turn:
        await turn.execute(f"select pg_advisory_lock({TURN})")
        late = asyncio.create_task(scene.change("A-1"))
        await scene.until(IS_KEPT_WAITING)
        for number in range(1, 4):
            await scene.change("A-2")
            await scene.journal.arrived(number)
        await scene.settled()
        await scene.until(ALL_NUMBERED)
        assert not late.done()
    await late
    await scene.journal.arrived(4)
    await scene.assert_sound()
    await scene.until(ALL_NUMBERED)
    events = await scene.rows("select position, created_at from event order by created_at")
    assert [event["position"] for event in events] == [4, 1, 2, 3]


@pytest.mark.slow
async def test_no_event_is_lost_when_the_tables_are_migrated_while_workers_run(scene: Scene) -> None:
    await scene.endpoint("ordered", ordered=True)
    scene.journal.behave = Slowly(0.1)
    await scene.start_workers("one", "two")
    async with changing(scene):
        await scene.journal.arrived(60)
        await migrate(scene)
        await scene.journal.arrived(len(scene.journal.arrivals) + 60)
    await scene.assert_sound(foreseen="cached statement plan is invalid")
    assert all(worker.lives for worker in scene.workers)


async def migrate(scene: Scene) -> None:
    """As a later release's migration does it: one transaction, which takes its locks as they come."""
    async with scene.aside() as connection:
        while True:
            try:
                async with connection.transaction():
                    await connection.execute(MIGRATION)
                    await scene.until(ARE_WORKERS_KEPT_WAITING)
                return
            except asyncpg.DeadlockDetectedError:
                continue
