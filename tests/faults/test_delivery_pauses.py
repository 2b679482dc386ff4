"""Workers that stand still for a while, or are told to leave, in the middle of what they do."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.domain.delivery import CUT_OFF, OUTCOME_UNKNOWN
from tests.support.delivery_journal import Arrival, Gate, Slowly, accept, refuse
from tests.support.delivery_scene import Scene, delivery_scene
from tests.support.workers import Pace, Worker

PACE = Pace(timeout_seconds=1.0, first_gap_seconds=0.4, lease_seconds=2.0)
PATIENCE_SECONDS = 25
TURN = 4711

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
STANDS_STILL = f"select exists (select from pg_locks where objid = {TURN} and not granted)"
IS_BUSY = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and application_name = 'holdfast background' and state <> 'idle'
    )
"""
IS_IN_ITS_CLAIM = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction' and query ~ 'with candidate as'
    )
"""


@pytest.fixture
async def scene(postgres_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    async with delivery_scene(postgres_url, tmp_path, PACE) as made:
        await made.endpoint("hook")
        await made.add_units(["A-1"])
        yield made


async def test_what_a_worker_that_stood_still_for_three_leases_has_to_record_is_refused(scene: Scene) -> None:
    """It comes back when its delivery is another worker's, and just on its way again."""
    first, later = Gate(), Gate()
    scene.journal.behave = first
    (paused,) = await scene.start_workers("paused")
    await scene.change("A-1")
    await scene.journal.arrived(1)
    await pause_between_rounds(scene, paused)
    stood_still_at = time.monotonic()
    scene.journal.behave = refuse
    (other,) = await scene.start_workers("other")
    await scene.journal.arrived(2)
    first.open()
    await asyncio.sleep(3 * PACE.lease_seconds - (time.monotonic() - stood_still_at))
    scene.journal.behave = later
    await scene.journal.arrived(len(scene.journal.arrivals) + 1)
    paused.go_on()
    await until_said(paused, "ended after its lease and was not recorded")
    assert await scene.value("select count(*) from in_flight") == 1, "the claim of the other is gone"
    assert [row["cause"] for row in await scene.rows("select cause from attempt where number = 1")] == [
        OUTCOME_UNKNOWN
    ]
    later.open()
    await scene.settled()
    other.kill()
    scene.journal.behave = accept
    await scene.change("A-1")
    await scene.assert_sound()
    assert paused.lives


async def test_a_worker_that_stood_still_in_its_claim_sends_nothing_that_is_given_up(scene: Scene) -> None:
    """Its lease was over before it knew of it."""
    scene.journal.behave = Slowly(0.9)
    paused = await stand_still_in_the_claim(scene)
    await scene.start_workers("other")
    await asyncio.sleep(PACE.lease_seconds)
    paused.go_on()
    await scene.assert_sound()


async def test_a_worker_that_stands_still_in_its_claim_keeps_nobody_from_sending(scene: Scene) -> None:
    paused = await stand_still_in_the_claim(scene)
    await scene.start_workers("other")
    await scene.journal.until(lambda: len(scene.journal.arrivals) > 1, PATIENCE_SECONDS)
    paused.go_on()
    await scene.assert_sound()
    assert paused.lives


async def pause_between_rounds(scene: Scene, worker: Worker) -> None:
    """With no transaction of its own open; what it keeps then is its claim alone."""
    worker.pause()
    while await scene.value(IS_BUSY):
        worker.go_on()
        await asyncio.sleep(0.005)
        worker.pause()
        await asyncio.sleep(0.005)


async def stand_still_in_the_claim(scene: Scene) -> Worker:
    """Between its last statement and the commit."""
    (paused,) = await scene.start_workers("paused")
    await scene.change("A-1")
    await scene.settled()
    await scene.execute(STAND_STILL)
    async with scene.aside() as turn:
        await turn.execute(f"select pg_advisory_lock({TURN})")
        await scene.change("A-1")
        await scene.until(STANDS_STILL)
        paused.pause()
    await scene.until(IS_IN_ITS_CLAIM)
    return paused


async def until_said(worker: Worker, text: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not worker.said(text):  # noqa: ASYNC110 - its file tells nobody
            await asyncio.sleep(0.02)


async def test_a_worker_that_is_told_to_stop_finishes_or_cuts_off_what_it_has_within_15_seconds(
    postgres_url: str, tmp_path: Path
) -> None:
    pace = Pace(timeout_seconds=30.0, first_gap_seconds=0.5, lease_seconds=35.0)
    slowly, never = Slowly(1.5), Gate()

    async def behave(arrival: Arrival) -> int:
        return await (slowly if arrival.path == "slow" else never)(arrival)

    async with delivery_scene(postgres_url, tmp_path, pace) as scene:
        scene.journal.behave = behave
        await scene.endpoint("slow", max_in_flight=10)
        await scene.endpoint("hung", max_in_flight=10)
        codes = [f"A-{number}" for number in range(40)]
        await scene.add_units(codes)
        (leaving,) = await scene.start_workers("leaving")
        await scene.change(*codes)
        await scene.journal.arrived(30)
        assert await asyncio.to_thread(leaving.leave) < 15
        assert await scene.value("select count(*) from in_flight") == 0
        causes = {row["cause"] for row in await scene.rows("select distinct cause from attempt")}
        assert causes == {None, CUT_OFF}
        scene.journal.behave = accept
        await scene.start_workers("other")
        history = await scene.assert_sound()
        assert [attempt["cause"] for attempt in history.attempts].count(CUT_OFF) == 10
        assert [attempt["cause"] for attempt in history.attempts].count(None) == 80
