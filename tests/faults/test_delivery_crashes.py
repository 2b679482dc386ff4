"""Workers are killed, all of them are away, `serve` is killed: every event arrives all the same."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from holdfast.domain.delivery import OUTCOME_UNKNOWN
from holdfast.webhooks.dispatcher import AT_ONCE
from tests.support import server as servers
from tests.support.concurrent_requests import open_lines
from tests.support.delivery_journal import Gate, Slowly, accept
from tests.support.delivery_scene import Scene, delivery_scene
from tests.support.sales_project import Market, expect, new_market, stock_up
from tests.support.server import RunningServer
from tests.support.workers import Pace

PACE = Pace(timeout_seconds=1.0, first_gap_seconds=0.4, lease_seconds=2.0)
HAS_CLAIMS = "select exists (select from in_flight join claim_note using (token) where worker = $1)"


@pytest.fixture
async def scene(postgres_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    async with delivery_scene(postgres_url, tmp_path, PACE) as made:
        yield made


async def test_what_a_worker_had_sent_when_it_was_killed_goes_out_again_after_its_lease(scene: Scene) -> None:
    scene.journal.behave = Gate()
    await scene.endpoint("hook")
    await scene.add_units(["A-1", "A-2"])
    (killed,) = await scene.start_workers("killed")
    await scene.change("A-1", "A-2")
    await scene.journal.arrived(2)
    killed.kill()
    scene.journal.behave = accept
    await scene.start_workers("other")
    history = await scene.assert_sound()
    causes = [[attempt["cause"] for attempt in own] for own in history.attempts_of().values()]
    assert causes == [[OUTCOME_UNKNOWN, None], [OUTCOME_UNKNOWN, None]]
    assert len(scene.journal.arrivals) == 4


async def test_a_units_next_event_waits_for_the_one_that_was_lost_with_its_worker(scene: Scene) -> None:
    scene.journal.behave = Gate()
    await scene.endpoint("hook")
    await scene.endpoint("ordered", ordered=True)
    await scene.add_units(["A-1"])
    for _ in range(3):
        await scene.change("A-1")
    killed, other = await scene.start_workers("killed", "other")
    await scene.journal.arrived(2)
    killed.kill()
    other.kill()
    scene.journal.behave = accept
    await scene.start_workers("successor")
    await scene.assert_sound()
    # Of each endpoint, one twice and two once.
    assert sorted(len(own) for own in scene.journal.by_delivery().values()) == [1, 1, 1, 1, 2, 2]


@pytest.fixture
async def busy_scene(postgres_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    """With so much to send at a time that a second is not enough for an attempt on a busy machine."""
    pace = Pace(timeout_seconds=10.0, first_gap_seconds=0.4, lease_seconds=15.0)
    async with delivery_scene(postgres_url, tmp_path, pace) as made:
        yield made


async def test_one_of_two_workers_is_killed_in_the_middle_of_a_large_backlog(busy_scene: Scene) -> None:
    """More may be on its way at a time than one worker takes upon itself."""
    scene = busy_scene
    codes = [f"A-{number}" for number in range(300)]
    for number in range(3):
        await scene.endpoint(f"hook-{number}", max_in_flight=AT_ONCE // 2)
    await scene.endpoint("ordered", ordered=True, max_in_flight=AT_ONCE // 2)
    await scene.add_units(codes)
    scene.journal.behave = Slowly(0.3)
    killed, _ = await scene.start_workers("killed", "other")
    for _ in range(2):
        await scene.change(*codes)
    await scene.until("select count(distinct worker) = 2 from claim_note")
    await scene.until(HAS_CLAIMS, "killed")
    killed.kill()
    left = await scene.value("select count(*) from pending_delivery")
    assert 200 < left <= 2400, "the kill did not come in the middle"
    history = await scene.assert_sound()
    assert len(history.deliveries) == 2400
    assert {delivery["status"] for delivery in history.deliveries} == {"delivered"}
    assert OUTCOME_UNKNOWN in {attempt["cause"] for attempt in history.attempts}


async def test_what_is_committed_while_no_worker_is_there_is_sent_when_one_is_back(scene: Scene) -> None:
    codes = [f"A-{number}" for number in range(50)]
    await scene.endpoint("hook")
    await scene.add_units(codes)
    first, second = await scene.start_workers("first", "second")
    await scene.change(*codes)
    await scene.journal.arrived(1)
    first.kill()
    second.kill()
    for _ in range(3):
        await scene.change(*codes)
    assert len(scene.journal.arrivals) <= 50, "somebody was still there"
    await scene.start_workers("third", "fourth")
    history = await scene.assert_sound()
    assert len(history.deliveries) == 200
    assert {delivery["status"] for delivery in history.deliveries} == {"delivered"}


async def test_each_crash_costs_an_attempt_and_there_is_none_beyond_the_last(
    postgres_url: str, tmp_path: Path
) -> None:
    pace = Pace(timeout_seconds=0.3, first_gap_seconds=0.1, lease_seconds=1.3, attempts=2)
    async with delivery_scene(postgres_url, tmp_path, pace) as scene:
        scene.journal.behave = Gate()
        await scene.endpoint("hook")
        await scene.add_units(["A-1"])
        await scene.change("A-1")
        for number in (1, 2):
            (worker,) = await scene.start_workers(f"worker-{number}")
            await scene.journal.arrived(number)
            worker.kill()
        await scene.start_workers("last")
        history = await scene.assert_sound()
        assert [delivery["status"] for delivery in history.deliveries] == ["failed"]
        assert len(scene.journal.arrivals) == 2


async def test_serve_is_killed_and_started_again_and_every_event_arrives(scene: Scene) -> None:
    scene.journal.behave = Gate()
    await scene.endpoint("hook")
    codes = [f"A-{number}" for number in range(20)]
    server = await asyncio.to_thread(servers.start, scene.folder, scene.settings)
    try:
        market = await asyncio.to_thread(new_market, server.address, scene.settings["HOLDFAST_DATABASE_URL"])
        await stock_up(market, codes)
        await set_status(market, codes, "unavailable")
        await scene.journal.arrived(20)
    finally:
        kill_all_of(server)
    scene.journal.behave = accept
    successor = await asyncio.to_thread(servers.start, scene.folder, scene.settings)
    try:
        await set_status(Market(successor.address, market.key, market.slug), codes, "available")
        history = await scene.assert_sound()
    finally:
        await asyncio.to_thread(successor.stop)
    assert len(history.deliveries) == 40
    assert [attempt["cause"] for attempt in history.attempts].count(OUTCOME_UNKNOWN) == 20


async def set_status(market: Market, codes: list[str], status: str) -> None:
    async with open_lines(market.address, 1) as (line,):
        for code in codes:
            expect(await line.ask(market.patch(code, status=status)), 200)


def kill_all_of(server: RunningServer) -> None:
    """The supervisor and its children, without a word of warning."""
    children = psutil.Process(server.process.pid).children(True)
    for pid in (server.process.pid, *(child.pid for child in children)):
        with suppress(ProcessLookupError):  # It may have gone with its parent.
            os.kill(pid, signal.SIGKILL)
    server.process.wait()
    psutil.wait_procs(children)
