"""The periodic jobs: what each calls, how often, and how it is paced while there is more to do."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple

from holdfast.operations.delivery_queue import DeliveryHours, DeliveryQueue, QueueCleanup, maintain_log
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import Sums
from holdfast.storage.database import Database

RESCUE_SECONDS = CLEANUP_SECONDS = 1.0
TRIMMED_AT_ONCE = 5_000


class PeriodicJob(NamedTuple):
    name: str
    interval_seconds: float
    run: Callable[[], Awaitable[object]]
    more_after_seconds: float | None = None
    """The pause after a round that returned a true value, because there is more to do."""
    rest_ratio: float = 0.0
    """The pause is at least so many times as long as the round took."""

    async def run_once(self) -> float:
        started_at = monotonic()
        has_more = await self.run()
        if has_more and self.more_after_seconds is not None:
            return self.more_after_seconds
        return max(self.interval_seconds, self.rest_ratio * (monotonic() - started_at))


def database_jobs(database: Database, keep_events: timedelta, keep_log: timedelta) -> list[PeriodicJob]:
    feed = EventFeed(database)
    trim_feed = partial(feed.trim, keep_events, TRIMMED_AT_ONCE)
    return [
        # So that the first reader of the feed after a long time need not number the events.
        PeriodicJob("event numberer", 1.0, feed.number),
        PeriodicJob("event summer", 20.0, Sums(database).sum_up),
        PeriodicJob("event trimmer", 3600.0, trim_feed, more_after_seconds=0.2),
        PeriodicJob("log keeper", 3600.0, partial(maintain_log, database, keep_log)),
        PeriodicJob("hour counter", 5.0, DeliveryHours(database).count_next, more_after_seconds=0.0),
    ]


def queue_jobs(queue: DeliveryQueue, cleanup: QueueCleanup) -> list[PeriodicJob]:
    return [
        PeriodicJob("lease rescuer", RESCUE_SECONDS, queue.rescue, more_after_seconds=0.0),
        # A safety net: a long round is followed by a longer rest.
        PeriodicJob("queue keeper", CLEANUP_SECONDS, cleanup.run, rest_ratio=20.0),
    ]
