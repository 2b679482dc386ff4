"""Run loops until the process stops. Each loop does one round and returns how long it may sleep.

Most loops are periodic jobs: what each calls, how often, and how it is paced while there is more to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple, Protocol

from holdfast.domain.email import REMINDED_BEFORE
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.operations import delivery_queue
from holdfast.operations.delivery_queue import DeliveryQueue, QueueCleanup
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import sum_up
from holdfast.settings import Settings
from holdfast.storage import audit, bookings, emails, events
from holdfast.storage.database import Database, execute_and_count

RESCUE_SECONDS = CLEANUP_SECONDS = 1.0
TRIMMED_AT_ONCE = 5_000
BOOKINGS_TRIMMED_AT_ONCE = 500
"""Few, since writers wait for their units."""
PAUSE_AFTER_FAILURE_SECONDS = 1.0
LAST_ROUND_SECONDS = 8.0
"""The time that a round has to finish when the process stops."""

logger = logging.getLogger("holdfast.background")


class Loop(Protocol):
    @property
    def name(self) -> str: ...

    async def run_once(self) -> float:
        """Do what is due; return the seconds until there may be more to do."""
        ...


async def run_loops(loops: Sequence[Loop], stop: asyncio.Event) -> None:
    """Run until ``stop`` is set. A round that fails is logged and tried again."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_run(loop, stop))


async def _run(loop: Loop, stop: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            pause = await delivery_queue.run_until_stopped(
                stopping, partial(_run_once, loop), LAST_ROUND_SECONDS
            )
            await asyncio.wait((stopping,), timeout=pause)
    finally:
        stopping.cancel()


async def _run_once(loop: Loop) -> float:
    try:
        return await loop.run_once()
    except DatabaseUnavailable:
        logger.warning("%s: the database is unavailable", loop.name)
    except Exception:
        logger.exception("%s failed", loop.name)
    return PAUSE_AFTER_FAILURE_SECONDS


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


def database_jobs(database: Database, settings: Settings) -> list[PeriodicJob]:
    feed, keep_log = EventFeed(database), timedelta(days=settings.delivery_retention_days)
    trims = (
        ("event trimming", events.TRIM, settings.event_retention_days, TRIMMED_AT_ONCE),
        ("booking trimming", bookings.TRIM, settings.lapsed_hold_retention_days, BOOKINGS_TRIMMED_AT_ONCE),
        ("audit trimming", audit.TRIM, settings.audit_retention_days, TRIMMED_AT_ONCE),
        ("e-mail trimming", emails.TRIM, settings.delivery_retention_days, TRIMMED_AT_ONCE),
    )
    remind = partial(database.write, execute_and_count, emails.REMIND, REMINDED_BEFORE)
    return [
        *([PeriodicJob("reminders", 60.0, remind)] if settings.smtp_url else []),
        # So that the first reader of the feed after a long time need not number the events.
        PeriodicJob("event numbering", 1.0, feed.number),
        PeriodicJob("event totals", 20.0, partial(sum_up, database)),
        PeriodicJob("log partitions", 3600.0, partial(delivery_queue.maintain_log, database, keep_log)),
        PeriodicJob(
            "delivery hours",
            5.0,
            partial(delivery_queue.count_delivery_hours, database),
            more_after_seconds=0.0,
        ),
        *(
            PeriodicJob(name, 3600.0, partial(trim, database, statement, days, limit), more_after_seconds=0.2)
            for name, statement, days, limit in trims
            if days is not None
        ),
    ]


async def trim(database: Database, statement: str, days: float, limit: int) -> int:
    """Delete the oldest rows of one kind; return how many."""
    return await database.write(execute_and_count, statement, timedelta(days=days), limit)


def queue_jobs(queue: DeliveryQueue, cleanup: QueueCleanup) -> list[PeriodicJob]:
    return [
        PeriodicJob("expired leases", RESCUE_SECONDS, queue.rescue, more_after_seconds=0.0),
        # A safety net: a long round is followed by a longer rest.
        PeriodicJob("queue cleanup", CLEANUP_SECONDS, cleanup.run, rest_ratio=20.0),
    ]
