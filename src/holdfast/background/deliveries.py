"""Counts the deliveries that ended, hour by hour, so that no page has to."""

import time
from datetime import timedelta

from holdfast.operations.delivery_queue import (
    DeliveryHours,
    DeliveryQueue,
    QueueCleanup,
    drop_old_log_partitions,
    ensure_log_partitions,
)
from holdfast.storage.database import Database

COUNT_EVERY_SECONDS = 5.0


class DeliveryHourCounter:
    name = "hour counter"

    def __init__(self, hours: DeliveryHours) -> None:
        self._hours = hours

    async def run_once(self) -> float:
        return 0.0 if await self._hours.count_on() else COUNT_EVERY_SECONDS


# Brings back what a stopped worker has kept.

RESCUE_EVERY_SECONDS = 1.0


class LeaseRescuer:
    name = "lease rescuer"

    def __init__(self, dispatching: DeliveryQueue) -> None:
        self._dispatching = dispatching

    async def run_once(self) -> float:
        return 0.0 if await self._dispatching.rescue() else RESCUE_EVERY_SECONDS


# Makes the days of the log ahead, and drops those that are no longer kept.

KEEP_LOG_EVERY_SECONDS = 3600.0


class LogPartitionKeeper:
    name = "log keeper"

    def __init__(self, database: Database, keep: timedelta) -> None:
        self._database = database
        self._keep = keep

    async def run_once(self) -> float:
        await ensure_log_partitions(self._database)
        await drop_old_log_partitions(self._database, self._keep)
        return KEEP_LOG_EVERY_SECONDS


# Keeps the queue of deliveries tidy.

KEEP_QUEUE_EVERY_SECONDS = 1.0
REST_PER_WORK = 20.0


class QueueCleaner:
    name = "queue keeper"

    def __init__(self, tidying: QueueCleanup) -> None:
        self._tidying = tidying

    async def run_once(self) -> float:
        """A long look is followed by a longer rest: it is a safety net, not the way things go."""
        started_at = time.monotonic()
        await self._tidying.tidy()
        return max(KEEP_QUEUE_EVERY_SECONDS, REST_PER_WORK * (time.monotonic() - started_at))
