"""Forgets events that are older than they are kept, a few at a time."""

from datetime import timedelta

from holdfast.operations.events import EventFeed

FORGOTTEN_AT_ONCE = 5_000
PAUSE_SECONDS = 3600.0
PAUSE_WITHIN_SECONDS = 0.2


class EventTrimmer:
    name = "event trimmer"

    def __init__(self, feed: EventFeed, keep: timedelta) -> None:
        self._feed = feed
        self._keep = keep

    async def run_once(self) -> float:
        forgotten = await self._feed.trim(self._keep, FORGOTTEN_AT_ONCE)
        return PAUSE_WITHIN_SECONDS if forgotten else PAUSE_SECONDS
