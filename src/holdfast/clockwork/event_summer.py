"""Keeps the sums of events up to date, so that figures are there when somebody looks."""

from holdfast.operations.reports import Sums

PAUSE_SECONDS = 20.0


class EventSummer:
    name = "event summer"

    def __init__(self, sums: Sums) -> None:
        self._sums = sums

    async def run_once(self) -> float:
        await self._sums.sum_up()
        return PAUSE_SECONDS
