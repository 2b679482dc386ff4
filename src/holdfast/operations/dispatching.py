"""What a worker asks of the database: claims, records, and what became of others' claims."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from holdfast.domain.delivery import LOST, Schedule, after_lost
from holdfast.domain.endpoint import IN_FLIGHT
from holdfast.domain.errors import DatabaseAway
from holdfast.observability.metrics import note_attempts
from holdfast.operations.endpoint_health import EndpointHealth
from holdfast.operations.log_days import ready_log
from holdfast.storage import deliveries, delivery_queue
from holdfast.storage.database import Database, RefusedByDatabase, TryAgain
from holdfast.storage.deliveries import RecordedAttempts, Result
from holdfast.storage.delivery_queue import Claimed, Claims, ExpiredLease, Place, Sealed

RESCUED_AT_ONCE = 500
CLAIMS_IN_A_ROW = 4
"""Then it is time to record what others have sent."""
_NO_LANE = UUID(int=0)
_NO_PHASES = (None, None, None, None)

_log = logging.getLogger(__name__)

__all__ = ["Claimed", "Dispatching", "Result", "Sealed"]


class Dispatching:
    def __init__(self, database: Database, schedule: Schedule, lease_seconds: float) -> None:
        self._database = database
        self.schedule = schedule
        self.lease_seconds = lease_seconds
        self._last_lane = _NO_LANE
        self._health = EndpointHealth()
        self._is_log_ready = False

    async def claim(self, budget: int, most_of_a_lane: int = IN_FLIGHT[1]) -> list[Claimed]:
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
        except TryAgain:
            return Claims([], set(), False, self._last_lane)
        except RefusedByDatabase:
            self._is_log_ready = False
            raise
        with suppress(DatabaseAway):
            await self._look_again(found.put_aside)
        return found

    async def _look_again(self, put_aside: set[Place]) -> None:
        """Whom they wait for may have ended while they were put aside, and saw nobody who waited."""
        if put_aside:
            async with self._database.writing_at_once() as connection:
                await delivery_queue.unblock_next_delivery(connection, put_aside)

    async def record(self, results: Sequence[Result]) -> set[UUID]:
        """Log the attempts; gives those whose claim was still theirs. The others are not recorded."""
        await self._ready_log()
        try:
            return await self._record(results)
        except RefusedByDatabase as refused:
            # Perhaps for want of a day in the log, perhaps for one answer: it never fails its neighbours.
            self._is_log_ready = False
            if len(results) == 1:
                return await self._record_bare(results[0], refused)
        return {one for result in results for one in await self.record([result])}

    async def _record_bare(self, result: Result, refused: RefusedByDatabase) -> set[UUID]:
        """Without what the receiver sent, if that is what cannot be stored.

        If even that is refused it is given up, and goes out again after its lease.
        """
        _warn("what a receiver answered could not be stored", result, why=refused.constraint)
        await self._ready_log()
        bare = result._replace(response_headers=(), response_body=b"", response_clipped=True)
        try:
            return await self._record([bare])
        except RefusedByDatabase as again:
            _warn("an attempt could not be recorded", result, why=again.constraint)
            return set()

    async def _record(self, results: Sequence[Result]) -> set[UUID]:
        async with self._database.writing_at_once() as connection:
            recorded = await deliveries.record(connection, results)
        own = [result for result in results if result.delivery_id in recorded.ids]
        # What follows is done by others too, a little later: it must not make the record look undone.
        self._health.hear(own, somebody_recovered=recorded.somebody_recovered)
        with suppress(DatabaseAway):
            await self._tell_others(results, recorded)
        note_attempts(Counter(result.outcome for result in own), [one.duration_ms / 1000 for one in own])
        for result in results:
            if result.delivery_id not in recorded.ids:
                _warn("an attempt ended after its lease and was not recorded", result)
        return recorded.ids

    async def _tell_others(self, results: Sequence[Result], recorded: RecordedAttempts) -> None:
        """Who is not recorded now may have been before, if only the answer to that was lost."""
        somebody_may_wait = recorded.somebody_waits or len(recorded.ids) < len(results)
        async with self._database.writing_at_once() as connection:
            if somebody_may_wait:
                places = ((one.endpoint_id, one.unit_id) for one in results if one.unit_id is not None)
                await delivery_queue.unblock_next_delivery(connection, places)
            await self._health.note(connection)

    async def secret_now(self, endpoint_id: UUID) -> Sealed | None:
        async with self._database.reading() as connection:
            return await delivery_queue.secret_now(connection, endpoint_id)

    async def seconds_until_next(self, most_of_a_lane: int = IN_FLIGHT[1]) -> float | None:
        async with self._database.reading() as connection:
            return await delivery_queue.seconds_until_next_due(connection, most_of_a_lane)

    async def give_back(self, claimed: Sequence[Claimed]) -> None:
        async with self._database.writing_at_once() as connection:
            await delivery_queue.give_back(connection, claimed)

    async def rescue(self) -> int:
        """What a stopped worker has kept beyond its lease goes out again; says how many there were."""
        async with self._database.reading() as connection:
            found = await delivery_queue.expired_leases(connection, RESCUED_AT_ONCE)
        if not found:
            async with self._database.writing_at_once() as connection:
                await delivery_queue.forget_void_leases(connection)
            return 0
        recorded = await self.record([self._lost(one) for one in found])
        self._database.hint_at_deliveries()
        return len(recorded)

    async def _ready_log(self) -> None:
        """Once; days to come are made ahead by the log keeper."""
        if not self._is_log_ready:
            await ready_log(self._database)
            self._is_log_ready = True

    def _lost(self, one: ExpiredLease) -> Result:
        decided = after_lost(one.progress, self.schedule)
        _log.warning("a delivery was lost with its worker", extra={"fields": {"deliveryId": one.delivery_id}})
        return Result(
            one.delivery_id, one.endpoint_id, one.unit_id, one.token, one.progress,
            one.claimed_at, one.now, (one.now - one.claimed_at).total_seconds() * 1000, _NO_PHASES,
            one.url, (), None, None, None, (), b"", False, LOST, False, decided.outcome, decided.gap,
        )  # fmt: skip


def _warn(message: str, result: Result, **more: object) -> None:
    fields = {"deliveryId": result.delivery_id, "statusCode": result.status_code, **more}
    _log.warning(message, extra={"fields": fields})
