"""Run the simulation until all buyers have finished, the time is up, or the user stops it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import httpx

from holdfast.simulation.actors import Buyer, Erp, SalesStaff, act_as_staff
from holdfast.simulation.client import ApiClient, SimulationError, SimulationStopped
from holdfast.simulation.plans import plan_buyers
from holdfast.simulation.report import COUNTS
from holdfast.simulation.state import Booking, Project, SimulationState, find_history_errors

# The pace does not shorten waits that the server asks for.
_SPARE_SECONDS = 120.0
_LAST_RESPONSES_SECONDS = 5.0
_CLEANUP_SECONDS = 10.0
_HISTORY_ENTRIES = 1000


class SimulationOptions(NamedTuple):
    buyers: int
    seed: int
    pace: float

    @property
    def max_seconds(self) -> float:
        longest = max(plan.seconds for plan in plan_buyers(self.buyers, self.seed))
        return 2 * longest / self.pace + _SPARE_SECONDS


class Simulation:
    def __init__(self, client: ApiClient, project: Project, options: SimulationOptions) -> None:
        self.options = options
        self.state = SimulationState(client, project, options.pace)
        self._staff = SalesStaff(self.state, Random(f"desk {options.seed}"))  # noqa: S311
        self._erp = Erp(self.state, Random(f"erp {options.seed}"))  # noqa: S311
        self._ended = "finished"
        self._failure: str | None = None
        self._units_checked = 0

    def stop(self, reason: str = "stopped") -> None:
        if not self.state.stopped.is_set():
            self._ended = reason
            self.state.stopped.set()

    async def run(self) -> dict[str, Any]:
        """Return the totals, as `--json` prints them."""
        client = self.state.client
        client.sleep = self.state.sleep
        client.on_server_error = self.state.add_violation
        timer = asyncio.get_running_loop().call_later(self.options.max_seconds, self.stop, "too-long")
        try:
            await self._run_actors()
        finally:
            timer.cancel()
            client.sleep = asyncio.sleep
            await _attempt(self._clean_up())
        codes = sorted({booking.code for booking in self.state.bookings.values()})
        await _attempt(asyncio.gather(*map(self._check_history, codes)))
        return self._totals()

    async def _run_actors(self) -> None:
        plans = plan_buyers(self.options.buyers, self.options.seed)
        buyers = [Buyer(self.state, plan) for plan in plans]
        actors: list[Buyer | SalesStaff | Erp] = [*buyers, self._staff, self._erp]
        tasks = [asyncio.create_task(self._run_actor(actor)) for actor in actors]
        finished = asyncio.create_task(asyncio.wait(tasks[: len(buyers)]))
        finished.add_done_callback(lambda _: self.stop("finished"))
        await self.state.stopped.wait()
        done, pending = await asyncio.wait(tasks, timeout=_LAST_RESPONSES_SECONDS)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, finished, return_exceptions=True)
        for task in done:
            task.result()

    async def _run_actor(self, actor: Buyer | SalesStaff | Erp) -> None:
        try:
            await actor.run()
        except SimulationStopped:
            return
        except SimulationError as error:
            self._failure = self._failure or str(error)
            self.stop("failed")

    async def _clean_up(self) -> None:
        self.state.current.clear()
        await asyncio.gather(*(self._cancel_hold(booking) for booking in self.state.held_bookings()))
        await self._staff.put_on_sale()
        for booking in self.state.bookings.values():
            if booking.status == "refund-due":
                await act_as_staff(self.state, booking, "mark-refunded")

    async def _cancel_hold(self, booking: Booking) -> None:
        response = await self.state.cancel_hold(booking)
        if response.is_success:
            self.state.record(booking.buyer, f"releases {booking.code}", "releasedAtEnd")

    async def _check_history(self, code: str) -> None:
        path = f"{self.state.unit_path('backoffice', code)}/history?limit={_HISTORY_ENTRIES}"
        response = await self.state.client.request("GET", path)
        if not response.is_success:
            return
        self._units_checked += 1
        is_complete = response.document["nextCursor"] is None
        expected = [booking.reference for booking in self.state.bookings.values() if booking.code == code]
        entries = list(reversed(response.document["entries"]))
        for error in find_history_errors(code, entries, expected if is_complete else ()):
            self.state.add_violation(error)

    def _totals(self) -> dict[str, Any]:
        state, client = self.state, self.state.client
        statuses = Counter(booking.status for booking in state.bookings.values())
        return {
            "url": client.url,
            "project": state.project.slug,
            "buyers": self.options.buyers,
            "seed": self.options.seed,
            "ended": self._ended,
            "seconds": round(state.elapsed(), 1),
            **{name: state.counts[name] for name in COUNTS},
            "refusals": dict(sorted(state.errors.items())),
            "bookings": dict(sorted(statuses.items())),
            "requests": client.requests,
            "slowestMs": round(client.slowest_ms, 1),
            "unitsChecked": self._units_checked,
            "brokenPromises": state.violations,
            "failure": self._failure,
        }


async def _attempt(work: Awaitable[object]) -> None:
    """Await what cannot be done if the server has gone; holds then expire by themselves."""
    with suppress(TimeoutError, SimulationError, httpx.HTTPError):
        async with asyncio.timeout(_CLEANUP_SECONDS):
            await work
