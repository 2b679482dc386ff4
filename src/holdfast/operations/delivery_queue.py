"""What a change of an endpoint means for its queue, a few deliveries at a time."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from holdfast.domain.delivery import INTERNAL_CAUSES, LOST, Schedule, Signs, after_lost, signs_of
from holdfast.domain.endpoint import MAX_IN_FLIGHT
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.event import EventName
from holdfast.observability.metrics import count_attempts
from holdfast.storage import deliveries, delivery_log, delivery_queue, log_partitions
from holdfast.storage.database import Connection, ConstraintViolated, Database, TransactionConflict
from holdfast.storage.deliveries import AttemptRecord, RecordedAttempts
from holdfast.storage.delivery_queue import (
    FIRST_PLACE,
    ClaimedDelivery,
    Claims,
    ExpiredLease,
    Place,
    SealedSecret,
)

__all__ = ["AttemptRecord", "ClaimedDelivery", "DeliveryQueue", "SealedSecret"]


CANCELLED_AT_ONCE = 1000
UNBLOCKED_AT_ONCE = 1000
LONGEST_SECONDS = 5.0
"""So long somebody may wait for it; the rest is done by the workers."""


async def cancel_all(
    database: Database, endpoint_id: UUID, events: Sequence[str] = (), *, resent_too: bool = True
) -> None:
    """All of an endpoint that is removed; of another one those of the ``events`` that it wants no more."""
    started_at = time.monotonic()
    while time.monotonic() - started_at < LONGEST_SECONDS:
        async with database.writing() as connection:
            count = await deliveries.cancel_some(
                connection, endpoint_id, events, CANCELLED_AT_ONCE, resent_too=resent_too
            )
        if count < CANCELLED_AT_ONCE:
            return


async def unblock_all(database: Database, endpoint_id: UUID) -> None:
    """Of an endpoint: whoever need not wait any more."""
    place: Place | None = (endpoint_id, UUID(int=0))
    started_at = time.monotonic()
    while place is not None and time.monotonic() - started_at < LONGEST_SECONDS:
        async with database.writing_autocommit() as connection:
            place = (
                await delivery_queue.unblock_some_of_endpoint(connection, place, UNBLOCKED_AT_ONCE)
            ).place


# How endpoints have fared in the last day, hour by hour.

SETTLED_AFTER = timedelta(seconds=5)
LONGEST_STRETCH = timedelta(hours=1)


class DeliveryHours:
    def __init__(self, database: Database, settled_after: timedelta = SETTLED_AFTER) -> None:
        self._database = database
        self._settled_after = settled_after

    async def count_on(self) -> bool:
        """Count what ended since the last time, an hour's worth at most; whether there is more."""
        async with self._database.writing() as connection:
            found = await delivery_log.lock_uncounted(connection, self._settled_after)
            if found is None or found.settled <= found.since:
                return False
            upto = min(found.settled, found.since + LONGEST_STRETCH)
            await delivery_log.count_hours(connection, found.since, upto)
            return upto < found.settled


# How endpoints fare, as the attempts of this process tell it; written down when it is news.

NOTED_AGAIN_SECONDS = 5.0


class EndpointHealth:
    def __init__(self) -> None:
        self._heard: dict[UUID, Signs] = {}
        self._noted: dict[UUID, tuple[Signs, float]] = {}
        self._has_recovered = False

    def hear(self, results: Sequence[AttemptRecord], *, somebody_recovered: bool) -> None:
        self._add(
            (result.endpoint_id, signs_of(result.cause, result.is_gone))
            for result in results
            if result.cause not in INTERNAL_CAUSES
        )
        self._has_recovered |= somebody_recovered

    async def note(self, connection: Connection) -> None:
        """What cannot be noted, because somebody has an endpoint locked or the database is away, is noted
        with the next."""
        heard, has_recovered = self._heard, self._has_recovered
        self._heard, self._has_recovered = {}, False
        if not has_recovered and not self._are_news(heard):
            return
        try:
            await deliveries.note_health(connection, heard)
        except BaseException:
            later, self._heard = self._heard, heard
            self._add(later.items())
            self._has_recovered |= has_recovered
            raise
        now = time.monotonic()
        self._noted.update((endpoint_id, (one, now)) for endpoint_id, one in heard.items())

    def _add(self, later: Iterable[tuple[UUID, Signs]]) -> None:
        for endpoint_id, one in later:
            before = self._heard.get(endpoint_id)
            self._heard[endpoint_id] = before.followed_by(one) if before else one

    def _are_news(self, signs: Mapping[UUID, Signs]) -> bool:
        """What was noted a moment ago need not be noted again, each time that a dead endpoint is tried."""
        earliest = time.monotonic() - NOTED_AGAIN_SECONDS
        for endpoint_id, one in signs.items():
            before, noted_at = self._noted.get(endpoint_id, (None, 0.0))
            if one.cause is not None and (one != before or noted_at < earliest):
                return True
        return False


# The log has a part for each day: made ahead, dropped when it is no longer kept.


async def ensure_log_partitions(database: Database) -> None:
    """Before something is written to the log: today has its part, whatever the workers do."""
    async with database.reading() as connection:
        if await log_partitions.are_ready(connection):
            return
    async with database.writing() as connection:
        await log_partitions.make(connection)


async def drop_old_log_partitions(database: Database, keep: timedelta) -> list[str]:
    async with database.writing_autocommit() as connection:
        return await log_partitions.drop_before(connection, keep)


# What a worker asks of the database: claims, records, and what became of others' claims.

RESCUED_AT_ONCE = 500
CLAIMS_IN_A_ROW = 4
"""Then it is time to record what others have sent."""
_NO_LANE = UUID(int=0)
_NO_PHASES = (None, None, None, None)

_log = logging.getLogger(__name__)


class DeliveryQueue:
    def __init__(self, database: Database, schedule: Schedule, lease_seconds: float) -> None:
        self._database = database
        self.schedule = schedule
        self.lease_seconds = lease_seconds
        self._last_lane = _NO_LANE
        self._health = EndpointHealth()
        self._is_log_ready = False

    async def claim(self, budget: int, most_of_a_lane: int = MAX_IN_FLIGHT) -> list[ClaimedDelivery]:
        """What is sent now, at most ``budget``; again if all that was found had to be put aside."""
        await self._ready_log()
        for _ in range(CLAIMS_IN_A_ROW):
            found = await self._claim(budget, most_of_a_lane)
            self._last_lane = found.last_lane if found.last_lane != self._last_lane else _NO_LANE
            if found.claimed or not found.has_others:
                return found.claimed
        return []

    async def _claim(self, budget: int, most_of_a_lane: int) -> Claims:
        lease = timedelta(seconds=self.lease_seconds)
        try:
            async with self._database.writing() as connection:
                found = await delivery_queue.claim(connection, self._last_lane, budget, lease, most_of_a_lane)
        except TransactionConflict:
            return Claims([], set(), False, self._last_lane)
        except ConstraintViolated:
            self._is_log_ready = False
            raise
        with suppress(DatabaseUnavailable):
            await self._look_again(found.put_aside)
        return found

    async def _look_again(self, put_aside: set[Place]) -> None:
        """Whom they wait for may have ended while they were put aside, and saw nobody who waited."""
        if put_aside:
            async with self._database.writing_autocommit() as connection:
                await delivery_queue.unblock_next_delivery(connection, put_aside)

    async def record(self, results: Sequence[AttemptRecord]) -> set[UUID]:
        """Log the attempts; gives those whose claim was still theirs. The others are not recorded."""
        await self._ready_log()
        try:
            return await self._record(results)
        except ConstraintViolated as refused:
            # Perhaps for want of a day in the log, perhaps for one answer: it never fails its neighbours.
            self._is_log_ready = False
            if len(results) == 1:
                return await self._record_bare(results[0], refused)
        return {one for result in results for one in await self.record([result])}

    async def _record_bare(self, result: AttemptRecord, refused: ConstraintViolated) -> set[UUID]:
        """Without what the receiver sent, if that is what cannot be stored.

        If even that is refused it is given up, and goes out again after its lease.
        """
        _warn("what a receiver answered could not be stored", result, why=refused.constraint)
        await self._ready_log()
        bare = result._replace(response_headers=(), response_body=b"", response_clipped=True)
        try:
            return await self._record([bare])
        except ConstraintViolated as again:
            _warn("an attempt could not be recorded", result, why=again.constraint)
            return set()

    async def _record(self, results: Sequence[AttemptRecord]) -> set[UUID]:
        async with self._database.writing_autocommit() as connection:
            recorded = await deliveries.record(connection, results)
        own = [result for result in results if result.delivery_id in recorded.ids]
        # What follows is done by others too, a little later: it must not make the record look undone.
        self._health.hear(own, somebody_recovered=recorded.somebody_recovered)
        with suppress(DatabaseUnavailable):
            await self._tell_others(results, recorded)
        count_attempts(Counter(result.outcome for result in own), [one.duration_ms / 1000 for one in own])
        for result in results:
            if result.delivery_id not in recorded.ids:
                _warn("an attempt ended after its lease and was not recorded", result)
        return recorded.ids

    async def _tell_others(self, results: Sequence[AttemptRecord], recorded: RecordedAttempts) -> None:
        """Who is not recorded now may have been before, if only the answer to that was lost."""
        somebody_may_wait = recorded.somebody_waits or len(recorded.ids) < len(results)
        async with self._database.writing_autocommit() as connection:
            if somebody_may_wait:
                places = ((one.endpoint_id, one.unit_id) for one in results if one.unit_id is not None)
                await delivery_queue.unblock_next_delivery(connection, places)
            await self._health.note(connection)

    async def secret_now(self, endpoint_id: UUID) -> SealedSecret | None:
        async with self._database.reading() as connection:
            return await delivery_queue.secret_now(connection, endpoint_id)

    async def seconds_until_next(self, most_of_a_lane: int = MAX_IN_FLIGHT) -> float | None:
        async with self._database.reading() as connection:
            return await delivery_queue.seconds_until_next_due(connection, most_of_a_lane)

    async def give_back(self, claimed: Sequence[ClaimedDelivery]) -> None:
        async with self._database.writing_autocommit() as connection:
            await delivery_queue.give_back(connection, claimed)

    async def rescue(self) -> int:
        """What a stopped worker has kept beyond its lease goes out again; says how many there were."""
        async with self._database.reading() as connection:
            found = await delivery_queue.expired_leases(connection, RESCUED_AT_ONCE)
        if not found:
            async with self._database.writing_autocommit() as connection:
                await delivery_queue.forget_void_leases(connection)
            return 0
        recorded = await self.record([self._lost(one) for one in found])
        self._database.notify_workers()
        return len(recorded)

    async def _ready_log(self) -> None:
        """Once; days to come are made ahead by the log keeper."""
        if not self._is_log_ready:
            await ensure_log_partitions(self._database)
            self._is_log_ready = True

    def _lost(self, one: ExpiredLease) -> AttemptRecord:
        decided = after_lost(one.progress, self.schedule)
        _log.warning("a delivery was lost with its worker", extra={"fields": {"deliveryId": one.delivery_id}})
        return AttemptRecord(
            one.delivery_id, one.endpoint_id, one.unit_id, one.token, one.progress,
            one.claimed_at, one.now, (one.now - one.claimed_at).total_seconds() * 1000, _NO_PHASES,
            one.url, (), None, None, None, (), b"", False, LOST, False, decided.outcome, decided.gap,
        )  # fmt: skip


def _warn(message: str, result: AttemptRecord, **more: object) -> None:
    fields = {"deliveryId": result.delivery_id, "statusCode": result.status_code, **more}
    _log.warning(message, extra={"fields": fields})


# What fell in between: deliveries that nobody wants any more, and those that wait for nothing.

GROWN = 4
"""So many times larger, or smaller, a table is another one to the planner."""
FEW_PAGES = 16
UNITS_AT_ONCE = 2000
LOOKING_SECONDS = 1.0


class QueueCleanup:
    """All of it is done at once as a rule; this is for what was interrupted, or happened at the same time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._planned_for = FEW_PAGES
        self._place = FIRST_PLACE

    async def tidy(self) -> None:
        await ensure_log_partitions(self._database)
        for step in (
            self._plan_anew_if_grown,
            self._cancel_of_removed_endpoints,
            self._cancel_of_unselected_events,
            self._let_waiting_go,
        ):
            try:
                await step()
            except TransactionConflict:
                continue
            except ConstraintViolated:
                _log.exception("tidying the queue was refused")

    async def _plan_anew_if_grown(self) -> None:
        """A plan for an almost empty table is ruinous for a huge one, and would be kept until the statistics
        are renewed; to plan anew all the time would make some deliveries late."""
        async with self._database.reading() as connection:
            pages = max(await delivery_queue.pages(connection), FEW_PAGES)
        if not self._planned_for / GROWN < pages < self._planned_for * GROWN:
            self._planned_for = pages
            await self._database.replace_connections()

    async def _cancel_of_removed_endpoints(self) -> None:
        async with self._database.reading() as connection:
            removed = await deliveries.removed_endpoints_with_pending(connection)
        for endpoint_id in removed:
            await cancel_all(self._database, endpoint_id)

    async def _cancel_of_unselected_events(self) -> None:
        """Even if nobody may claim for it, because it is paused. What was resent since then is left."""
        async with self._database.reading() as connection:
            found = await deliveries.endpoints_with_unselected(connection)
        for endpoint_id, wanted in found:
            unselected = [name for name in EventName if name not in wanted]
            await cancel_all(self._database, endpoint_id, unselected, resent_too=False)
            async with self._database.writing_autocommit() as connection:
                await deliveries.note_none_unselected(connection, endpoint_id)

    async def _let_waiting_go(self) -> None:
        """From where the last look ended, and not for too long: there may be very many."""
        until = time.monotonic() + LOOKING_SECONDS
        while True:
            async with self._database.writing() as connection:
                looked = await delivery_queue.unblock_some(connection, self._place, UNITS_AT_ONCE)
            self._place = looked.place or FIRST_PLACE
            if looked.freed:
                self._database.notify_workers()
            if looked.place is None or time.monotonic() > until:
                return
