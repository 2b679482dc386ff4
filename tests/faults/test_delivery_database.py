"""The database restarts, hangs up, commits late and changes its tables; workers go on, and lose nothing."""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

from tests.support.clusters import Cluster
from tests.support.delivery_journal import Slowly
from tests.support.delivery_scene import Scene, delivery_scene
from tests.support.workers import Pace

PACE = Pace(timeout_seconds=1.0, first_gap_seconds=0.4, lease_seconds=2.0)
CODES = [f"A-{number}" for number in range(40)]
SHUTDOWN_SECONDS = 30
TURN = 4711

LISTENERS = """
    select pid from pg_stat_activity
    where datname = current_database() and application_name = 'holdfast background'
        and (query ilike 'listen %' or query = 'select')
"""
IS_ANYBODY_LISTENING = f"select exists ({LISTENERS} and pid <> all ($1))"

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
IS_LATE = f"select exists (select from pg_locks where objid = {TURN} and not granted)"

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("restarted")) as own:
        yield own


@pytest.fixture
def restarted_url(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.fixture
async def scene(postgres_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    async with delivery_scene(postgres_url, tmp_path, PACE) as made:
        await made.endpoint("hook")
        await made.add_units(CODES)
        yield made


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


def on_its_way(scene: Scene) -> int:
    return sum(arrival.answered_at is None for arrival in scene.journal.arrivals)


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT], ids=["smart", "fast", "immediate"]
)
async def test_no_event_is_lost_when_the_database_is_restarted_in_mid_flight(
    how: signal.Signals, cluster: Cluster, restarted_url: str, tmp_path: Path
) -> None:
    async with delivery_scene(restarted_url, tmp_path, PACE) as scene:
        await scene.endpoint("hook")
        await scene.endpoint("ordered", ordered=True)
        await scene.add_units(CODES)
        scene.journal.behave = Slowly(0.2)
        await scene.start_workers("one", "two")
        async with changing(scene):
            await scene.journal.arrived(60)
            await scene.journal.until(lambda: on_its_way(scene) > 5)
            await restart(cluster, how, scene)
            await scene.journal.arrived(len(scene.journal.arrivals) + 60)
        await scene.assert_sound()
        assert all(worker.lives for worker in scene.workers)


async def restart(cluster: Cluster, how: signal.Signals, scene: Scene) -> None:
    postmaster = cluster.postmaster()
    postmaster.send_signal(how)
    if how is signal.SIGTERM:
        # It waits for those who are connected, and they go on.
        await scene.journal.arrived(len(scene.journal.arrivals) + 20)
        postmaster.send_signal(signal.SIGINT)
    await asyncio.to_thread(postmaster.wait, SHUTDOWN_SECONDS)
    await asyncio.to_thread(cluster.start)


async def test_a_worker_whose_listening_connection_is_killed_looks_by_itself_and_listens_again(
    scene: Scene,
) -> None:
    (worker,) = await scene.start_workers("worker")
    await scene.until(IS_ANYBODY_LISTENING, [])
    killed = [row["pid"] for row in await scene.rows(LISTENERS)]
    await scene.rows("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", killed)
    await scene.change("A-1")
    await scene.journal.arrived(1)
    assert not await scene.value(IS_ANYBODY_LISTENING, killed), "it arrived by a hint"
    await scene.until(IS_ANYBODY_LISTENING, killed)
    assert worker.said("the connection that listens for new deliveries was lost")
    # One after the other, each would wait for the next look.
    async with asyncio.timeout(2.0):
        for number in range(2, 12):
            await scene.change("A-1")
            await scene.journal.arrived(number)
    await scene.assert_sound()


async def test_an_event_that_commits_after_a_later_one_is_sent_too(scene: Scene) -> None:
    await scene.start_workers("one", "two")
    unit_id = await scene.value("select id from unit where code = 'A-1'")
    await scene.execute(COMMIT_LATE.format(unit_id=unit_id))
    async with scene.aside() as turn:
        await turn.execute(f"select pg_advisory_lock({TURN})")
        late = asyncio.create_task(scene.change("A-1"))
        await scene.until(IS_LATE)
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


async def test_no_event_is_lost_when_the_tables_are_migrated_while_workers_run(scene: Scene) -> None:
    await scene.endpoint("ordered", ordered=True)
    scene.journal.behave = Slowly(0.1)
    await scene.start_workers("one", "two")
    async with changing(scene):
        await scene.journal.arrived(100)
        await migrate(scene)
        await scene.journal.arrived(len(scene.journal.arrivals) + 100)
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
