"""The play: everybody at once, until the buyers are through, time is up, or somebody stops it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import httpx

from holdfast.simulation import sales_desk
from holdfast.simulation.buyer import Buyer
from holdfast.simulation.calling import Caller
from holdfast.simulation.erp import Erp
from holdfast.simulation.ground import Ground
from holdfast.simulation.histories import Histories
from holdfast.simulation.ledger import Claim
from holdfast.simulation.plan import longest_seconds, plan_buyers
from holdfast.simulation.refused import SimulationRefused, Stopped
from holdfast.simulation.sales_desk import SalesDesk
from holdfast.simulation.stage import Pace, Stage
from holdfast.simulation.story import Story, Tone
from holdfast.simulation.totals import Totals

# Waits that the other side asks for are not shortened by the pace.
_PATIENCE_SECONDS = 120.0
_LAST_ANSWERS_SECONDS = 5.0
_TIDYING_SECONDS = 10.0


class SimulationOptions(NamedTuple):
    buyers: int
    seed: int
    pace: float

    @property
    def at_most_seconds(self) -> float:
        return 2 * longest_seconds(plan_buyers(self.buyers, self.seed)) / self.pace + _PATIENCE_SECONDS


class Play:
    def __init__(self, caller: Caller, ground: Ground, wishes: SimulationOptions) -> None:
        self._began = time.monotonic()
        self.wishes = wishes
        self.ground = ground
        self.caller = caller
        self.story = Story(self.elapsed)
        pace = Pace(wishes.pace)
        self.stage = Stage(caller, ground.slug, self.story, pace, ground.available, ground.keep)
        self._desk = SalesDesk(self.stage, ground.codes, Random(f"desk {wishes.seed}"))  # noqa: S311
        self._erp = Erp(self.stage, ground.codes, Random(f"erp {wishes.seed}"))  # noqa: S311
        self._ended = "finished"
        self._failure: str | None = None
        self._histories = Histories(self.stage)

    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def stop(self, why: str = "stopped") -> None:
        if not self.stage.pace.is_over:
            self._ended = why
            self.stage.pace.end()

    async def run(self) -> Totals:
        self._began = time.monotonic()
        self.caller.wait = self.stage.pace.wait
        self.caller.on_failure = self.stage.ledger.break_promise
        time_is_up = asyncio.get_running_loop().call_later(self.wishes.at_most_seconds, self.stop, "too-long")
        try:
            await self._play()
        finally:
            time_is_up.cancel()
            self.caller.wait = asyncio.sleep
            await self._within(_TIDYING_SECONDS, self._tidy)
        await self._within(_TIDYING_SECONDS, self._histories.check)
        return self._totals()

    async def _play(self) -> None:
        plans = plan_buyers(self.wishes.buyers, self.wishes.seed)
        buyers = [self._enter(Buyer(self.stage, plan).live()) for plan in plans]
        others = [self._enter(self._desk.work()), self._enter(self._erp.work())]
        closing = asyncio.create_task(self._end_after(buyers))
        await self.stage.pace.until_over()
        through, late = await asyncio.wait([*buyers, *others], timeout=_LAST_ANSWERS_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, closing, return_exceptions=True)
        for task in through:
            task.result()

    async def _end_after(self, buyers: list[asyncio.Task[None]]) -> None:
        await asyncio.wait(buyers)
        self.stop("finished")

    def _enter(self, part: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(self._until_the_end(part))

    async def _until_the_end(self, part: Coroutine[Any, Any, None]) -> None:
        try:
            await part
        except Stopped:
            return
        except SimulationRefused as refusal:
            self._fail(refusal)

    def _fail(self, refusal: SimulationRefused) -> None:
        if self._failure is None:
            self._failure = str(refusal)
        self.stop("failed")

    async def _within(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What is left of a server that has gone cannot be tidied up, and holds end by themselves."""
        with suppress(TimeoutError, SimulationRefused, httpx.HTTPError):
            async with asyncio.timeout(seconds):
                await work()

    async def _tidy(self) -> None:
        self.story.now.clear()
        await asyncio.gather(*(self._give_back(claim) for claim in self.stage.ledger.held()))
        await self._desk.put_back()
        for claim in self.stage.ledger.with_status("refund-due"):
            await sales_desk.mark_refunded(self.stage, claim)

    async def _give_back(self, claim: Claim) -> None:
        answer = await sales_desk.give_back(self.stage, claim)
        if answer.is_good:
            self.story.tell(claim.buyer, f"gives {claim.code} back", "givenBack", Tone.PLAIN)

    def _totals(self) -> Totals:
        meter, ledger = self.caller.meter, self.stage.ledger
        return Totals(
            url=self.caller.url,
            project=self.ground.slug,
            buyers=self.wishes.buyers,
            seed=self.wishes.seed,
            seconds=self.elapsed(),
            ended=self._ended,
            counts=dict(self.story.counts),
            refusals=dict(sorted(self.story.refusals.items())),
            bookings=ledger.by_status(),
            requests=meter.requests,
            slowest_ms=meter.slowest_ms,
            units_checked=self._histories.units_checked,
            broken=ledger.broken,
            failure=self._failure,
        )
