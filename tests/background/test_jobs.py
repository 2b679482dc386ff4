"""Loops go round until their process is told to stop, and then end soon."""

import asyncio

import pytest

from holdfast.background import jobs
from holdfast.background.jobs import run_loops


class Counting:
    name = "counting"

    def __init__(self, stop_after: int, stop: asyncio.Event) -> None:
        self.rounds = 0
        self._stop_after = stop_after
        self._stop = stop

    async def run_once(self) -> float:
        self.rounds += 1
        if self.rounds == self._stop_after:
            self._stop.set()
        if self.rounds == 1:
            raise RuntimeError("the first round fails")
        return 0.0


class Endless:
    name = "endless"

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.given_up = False

    async def run_once(self) -> float:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise
        return 0.0


async def test_a_failing_round_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PAUSE_AFTER_FAILURE_SECONDS", 0.0)
    stop = asyncio.Event()
    loop = Counting(3, stop)
    async with asyncio.timeout(5):
        await run_loops([loop], stop)
    assert loop.rounds == 3


async def test_a_round_that_does_not_end_is_given_up_when_its_process_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "LAST_ROUND_SECONDS", 0.0)
    loop, stop = Endless(), asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(run_loops([loop], stop))
        await loop.begun.wait()
        stop.set()
    assert loop.given_up
