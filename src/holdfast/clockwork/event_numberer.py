"""Keeps the feed numbered, so that the first reader after a long time does not have to."""

from holdfast.operations.events import EventFeed

PAUSE_SECONDS = 1.0


class EventNumberer:
    name = "event numberer"

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    async def run_once(self) -> float:
        await self._feed.number()
        return PAUSE_SECONDS
