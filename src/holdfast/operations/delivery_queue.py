"""The queue of deliveries: claims, records, leases and cleanup, and the partitions of the log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Literal
from uuid import UUID

from holdfast.domain import delivery
from holdfast.domain.delivery import OUTCOME_UNKNOWN, AttemptRecord, AttemptResult, EndpointHealth
from holdfast.domain.endpoint import MAX_IN_FLIGHT
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.event import EventName
from holdfast.observability.metrics import count_attempts
from holdfast.storage import deliveries, delivery_log, delivery_queue, log_partitions
from holdfast.storage.database import Connection, ConstraintViolated, Database, TransactionConflict
from holdfast.storage.delivery_queue import FIRST_UNIT_QUEUE, Claims, UnitQueue

RESCUED_AT_ONCE = 500
CLAIMS_IN_A_ROW = 4
"""Then the results of other attempts are recorded."""
_NO_LANE = UUID(int=0)
_CANCEL_SECONDS = 0.25

_log = logging.getLogger(__name__)


class DeliveryQueue:
    def __init__(self, database: Database, schedule: delivery.Schedule, lease_seconds: float) -> None:
        self._database = database
        self.schedule = schedule
        self.lease_seconds = lease_seconds
        self._last_lane = _NO_LANE
        self._health = HealthMonitor()
        self._is_log_ready = False
        self.held: set[tuple[UUID, int]] = set()
        """Deliveries that this process sends or has results of, with the tokens of their claims."""

    async def claim(self, budget: int, lane_cap: int = MAX_IN_FLIGHT) -> list[delivery.ClaimedDelivery]:
        """Claim at most ``budget`` deliveries; again if all that were found had to be postponed."""
        await self._ensure_log()
        for _ in range(CLAIMS_IN_A_ROW):
            claims = await self._claim(budget, lane_cap)
            self._last_lane = claims.last_lane if claims.last_lane != self._last_lane else _NO_LANE
            if claims.claimed or not claims.has_others:
                return claims.claimed
        return []

    async def _claim(self, budget: int, lane_cap: int) -> Claims:
        lease = timedelta(seconds=self.lease_seconds)
        try:
            async with self._database.writing() as connection:
                claims = await delivery_queue.claim(connection, self._last_lane, budget, lease, lane_cap)
        except TransactionConflict:
            return Claims([], set(), False, self._last_lane)
        except ConstraintViolated:
            self._is_log_ready = False
            raise
        if claims.postponed:
            # The deliveries that they wait for may have ended before these were postponed.
            with suppress(DatabaseUnavailable):
                await self._database.write(delivery_queue.unblock_next_delivery, claims.postponed)
        return claims

    async def record(self, records: Sequence[AttemptRecord]) -> set[UUID]:
        """Log the attempts whose claim is still valid; return the ids of their deliveries."""
        await self._ensure_log()
        try:
            return await self._record(records)
        except ConstraintViolated as error:
            # A day of the log may be missing, or one response cannot be stored: it never fails the others.
            self._is_log_ready = False
            if len(records) == 1:
                return await self._record_without_response(records[0], error)
        return {delivery_id for record in records for delivery_id in await self.record([record])}

    async def _record_without_response(self, record: AttemptRecord, error: ConstraintViolated) -> set[UUID]:
        """If that fails too, the delivery is sent again after its lease."""
        _warn("what a receiver answered could not be stored", record, why=error.constraint)
        await self._ensure_log()
        bare = record.result._replace(response_headers=(), response_body=b"", response_clipped=True)
        try:
            return await self._record([record._replace(result=bare)])
        except ConstraintViolated as again:
            _warn("an attempt could not be recorded", record, why=again.constraint)
            return set()

    async def _record(self, records: Sequence[AttemptRecord]) -> set[UUID]:
        recorded = await self._database.write(deliveries.record_attempts, records)
        own = [record for record in records if record.claim.delivery_id in recorded.ids]
        self._health.add(own, has_any_recovered=recorded.has_any_recovered)
        # Other loops do this too, a little later: a failure must not make the record look undone.
        with suppress(DatabaseUnavailable):
            async with self._database.writing_autocommit() as connection:
                # An attempt that is not recorded now may have been before, if the response to that was lost.
                if recorded.is_any_postponed or len(recorded.ids) < len(records):
                    claims = [record.claim for record in records]
                    queues = [(one.endpoint_id, one.unit_id) for one in claims if one.unit_id is not None]
                    await delivery_queue.unblock_next_delivery(connection, queues)
                await self._health.save(connection)
        count_attempts(
            Counter(record.decision.outcome for record in own),
            [record.result.duration_ms / 1000 for record in own],
        )
        for record in records:
            if record.claim.delivery_id not in recorded.ids:
                _warn("an attempt ended after its lease and was not recorded", record)
        return recorded.ids

    async def load_secret(self, endpoint_id: UUID) -> delivery.SealedSecret | None:
        return await self._database.read(delivery_queue.load_secret, endpoint_id)

    async def seconds_until_next(self, lane_cap: int = MAX_IN_FLIGHT) -> float | None:
        return await self._database.read(delivery_queue.seconds_until_next_due, lane_cap)

    async def give_back(self, claimed: Sequence[delivery.ClaimedDelivery]) -> None:
        await self._database.write(delivery_queue.give_back, claimed)

    async def rescue(self) -> int:
        """Send again what another, stopped worker has kept beyond its lease; return how many there were."""
        # What is recorded meanwhile is held no more, and may still be in the list.
        held = self.held.copy()
        listed = await self._database.read(delivery_queue.list_expired_leases, RESCUED_AT_ONCE)
        held |= self.held
        expired = [lease for lease in listed if (lease.delivery_id, lease.token) not in held]
        if not expired:
            await self._database.write(delivery_queue.delete_void_leases)
            return 0
        recorded = await self.record([self._lost_attempt(lease) for lease in expired])
        self._database.notify_workers()
        return len(recorded)

    async def _ensure_log(self) -> None:
        """Once; a periodic job creates the partitions of the days to come."""
        if not self._is_log_ready:
            await ensure_log_partitions(self._database)
            self._is_log_ready = True

    def _lost_attempt(self, lease: delivery.ExpiredLease) -> AttemptRecord:
        fields = {"deliveryId": lease.delivery_id}
        _log.warning("a delivery was lost with its worker", extra={"fields": fields})
        result = AttemptResult((lease.now - lease.claimed_at).total_seconds() * 1000, cause=OUTCOME_UNKNOWN)
        decision = delivery.decide_after_lost(lease.progress, self.schedule)
        return AttemptRecord(lease, lease.claimed_at, result, decision)


def _warn(message: str, record: AttemptRecord, **more: object) -> None:
    fields = {"deliveryId": record.claim.delivery_id, "statusCode": record.result.status_code, **more}
    _log.warning(message, extra={"fields": fields})


HEALTH_REPEAT_SECONDS = 5.0
"""A failure of an endpoint that was saved is saved again only after this time."""


class HealthMonitor:
    """Collects the health of endpoints from the attempts of this process, and saves what is new."""

    def __init__(self) -> None:
        self._unsaved: dict[UUID, EndpointHealth] = {}
        self._saved: dict[UUID, tuple[EndpointHealth, float]] = {}
        self._has_any_recovered = False

    def add(self, records: Sequence[AttemptRecord], *, has_any_recovered: bool) -> None:
        self._merge(
            (record.claim.endpoint_id, EndpointHealth(result.cause, result.is_gone, result.cause is None))
            for record in records
            if (result := record.result).cause not in delivery.INTERNAL_CAUSES
        )
        self._has_any_recovered |= has_any_recovered

    async def save(self, connection: Connection) -> None:
        """If it fails, because an endpoint is locked or the database is unavailable, save it next time."""
        unsaved, has_any_recovered = self._unsaved, self._has_any_recovered
        self._unsaved, self._has_any_recovered = {}, False
        if not has_any_recovered and not self._is_new(unsaved):
            return
        try:
            await deliveries.update_health(connection, unsaved)
        except BaseException:
            later, self._unsaved = self._unsaved, unsaved
            self._merge(later.items())
            self._has_any_recovered |= has_any_recovered
            raise
        now = time.monotonic()
        self._saved.update((endpoint_id, (health, now)) for endpoint_id, health in unsaved.items())

    def _merge(self, later: Iterable[tuple[UUID, EndpointHealth]]) -> None:
        for endpoint_id, health in later:
            before = self._unsaved.get(endpoint_id)
            self._unsaved[endpoint_id] = before.merge(health) if before else health

    def _is_new(self, unsaved: Mapping[UUID, EndpointHealth]) -> bool:
        earliest = time.monotonic() - HEALTH_REPEAT_SECONDS
        for endpoint_id, health in unsaved.items():
            before, saved_at = self._saved.get(endpoint_id, (None, 0.0))
            if health.cause is not None and (health != before or saved_at < earliest):
                return True
        return False


# Changes of an endpoint that affect its queue, in small steps.

CANCELLED_AT_ONCE = UNBLOCKED_AT_ONCE = 1000
REQUEST_SECONDS = 5.0
"""A request waits for this time at most; the workers do the rest."""


async def cancel_all(
    database: Database, endpoint_id: UUID, events: Sequence[str] = (), *, resent_too: bool = True
) -> None:
    """Cancel all of a removed endpoint; of another one, the ``events`` that it does not select any more."""
    deadline = time.monotonic() + REQUEST_SECONDS
    while time.monotonic() < deadline:
        async with database.writing() as connection:
            count = await deliveries.cancel_batch(
                connection, endpoint_id, events, CANCELLED_AT_ONCE, resent_too=resent_too
            )
        if count < CANCELLED_AT_ONCE:
            return


async def unblock_all(database: Database, endpoint_id: UUID) -> None:
    """Unblock the deliveries of an endpoint that need not wait any more."""
    after: UnitQueue | None = (endpoint_id, UUID(int=0))
    deadline = time.monotonic() + REQUEST_SECONDS
    while after is not None and time.monotonic() < deadline:
        async with database.writing_autocommit() as connection:
            batch = await delivery_queue.unblock_batch(connection, after, UNBLOCKED_AT_ONCE, of_endpoint=True)
        after = batch.last


REPLANNED_AT_FACTOR = 4
"""A table that is this many times larger, or smaller, needs other plans."""
FEW_PAGES = 16
UNITS_AT_ONCE = 2000
UNBLOCKING_SECONDS = 1.0


class QueueCleanup:
    """A safety net: finishes what was interrupted, or what two concurrent changes have missed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._planned_pages = FEW_PAGES
        self._after = FIRST_UNIT_QUEUE

    async def run(self) -> None:
        await ensure_log_partitions(self._database)
        for step in (
            self._discard_plans_if_resized,
            self._cancel_of_removed_endpoints,
            self._cancel_unselected_events,
            self._unblock,
        ):
            try:
                await step()
            except TransactionConflict:
                continue
            except ConstraintViolated:
                _log.exception("tidying the queue was refused")

    async def _discard_plans_if_resized(self) -> None:
        """A plan for an almost empty table is ruinous for a huge one, and would be kept until the statistics
        are renewed. Planning each statement again would delay deliveries."""
        pages = max(await self._database.read(delivery_queue.count_pages), FEW_PAGES)
        if not self._planned_pages / REPLANNED_AT_FACTOR < pages < self._planned_pages * REPLANNED_AT_FACTOR:
            self._planned_pages = pages
            await self._database.replace_connections()

    async def _cancel_of_removed_endpoints(self) -> None:
        for endpoint_id in await self._database.read(deliveries.list_removed_endpoints_with_pending):
            await cancel_all(self._database, endpoint_id)

    async def _cancel_unselected_events(self) -> None:
        """Include paused endpoints, from which nothing is claimed. Deliveries resent since then are kept."""
        for endpoint_id, selected in await self._database.read(deliveries.list_endpoints_with_unselected):
            unselected = [name for name in EventName if name not in selected]
            await cancel_all(self._database, endpoint_id, unselected, resent_too=False)
            await self._database.write(deliveries.clear_unselected_mark, endpoint_id)

    async def _unblock(self) -> None:
        """Continue where the last round ended, for a limited time: there may be very many."""
        deadline = time.monotonic() + UNBLOCKING_SECONDS
        while True:
            async with self._database.writing() as connection:
                result = await delivery_queue.unblock_batch(connection, self._after, UNITS_AT_ONCE)
            self._after = result.last or FIRST_UNIT_QUEUE
            if result.unblocked:
                self._database.notify_workers()
            if result.last is None or time.monotonic() > deadline:
                return


# The log has a partition for each day: created ahead, dropped when it is no longer kept.


async def ensure_log_partitions(database: Database) -> None:
    """Call this before writing to the log: today's partition exists even if no worker runs."""
    if await database.read(log_partitions.are_ready):
        return
    async with database.writing() as connection:
        await log_partitions.create_upcoming(connection)


async def drop_old_log_partitions(database: Database, keep: timedelta) -> list[str]:
    return await database.write(log_partitions.drop_before, keep)


async def maintain_log(database: Database, keep: timedelta) -> None:
    await ensure_log_partitions(database)
    await drop_old_log_partitions(database, keep)


# Ended deliveries are counted by hour for the pages.

SETTLED_AFTER = timedelta(seconds=5)
LONGEST_PERIOD = timedelta(hours=1)


async def count_delivery_hours(database: Database, settled_after: timedelta = SETTLED_AFTER) -> bool:
    """Count what ended since the last time, an hour at most; return whether there is more."""
    async with database.writing() as connection:
        period = await delivery_log.lock_uncounted(connection, settled_after)
        if period is None or period[1] <= period[0]:
            return False
        start, settled = period
        end = min(settled, start + LONGEST_PERIOD)
        await delivery_log.count_hours(connection, start, end)
        return end < settled


async def run_until_stopped(
    stopping: asyncio.Future[Literal[True]], work: Callable[[], Awaitable[float]], grace_seconds: float
) -> float:
    """Return the result of a round, or 0.0 if it was cancelled ``grace_seconds`` after ``stopping``: a
    database that does not answer must not keep the process from stopping."""
    task = asyncio.ensure_future(work())
    await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        await asyncio.wait((task,), timeout=grace_seconds)
        task.cancel()
        await asyncio.wait((task,), timeout=_CANCEL_SECONDS)
    return task.result() if task.done() and not task.cancelled() else 0.0
