"""Keeps the feed numbered, so that the first reader after a long time does not have to."""

from datetime import timedelta

from holdfast.operations.events import EventFeed
from holdfast.operations.reports import Sums

NUMBER_EVERY_SECONDS = 1.0


class EventNumberer:
    name = "event numberer"

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    async def run_once(self) -> float:
        await self._feed.number()
        return NUMBER_EVERY_SECONDS


# Keeps the sums of events up to date, so that figures are there when somebody looks.

SUM_EVERY_SECONDS = 20.0


class EventSummer:
    name = "event summer"

    def __init__(self, sums: Sums) -> None:
        self._sums = sums

    async def run_once(self) -> float:
        await self._sums.sum_up()
        return SUM_EVERY_SECONDS


# Forgets events that are older than they are kept, a few at a time.

FORGOTTEN_AT_ONCE = 5_000
TRIM_EVERY_SECONDS = 3600.0
PAUSE_WITHIN_SECONDS = 0.2


class EventTrimmer:
    name = "event trimmer"

    def __init__(self, feed: EventFeed, keep: timedelta) -> None:
        self._feed = feed
        self._keep = keep

    async def run_once(self) -> float:
        forgotten = await self._feed.trim(self._keep, FORGOTTEN_AT_ONCE)
        return PAUSE_WITHIN_SECONDS if forgotten else TRIM_EVERY_SECONDS
