"""The engine: claims what is due, has it sent, records what came of it. No transaction is open meanwhile."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from holdfast.domain.delivery import (
    FAULTY,
    UNREADABLE,
    AttemptRecord,
    AttemptResult,
    ClaimedDelivery,
    SealedSecret,
    decide_after_attempt,
)
from holdfast.domain.endpoint import MAX_IN_FLIGHT, SECRET_FRESH_SECONDS
from holdfast.domain.errors import DatabaseUnavailable, SecretsUnreadable
from holdfast.operations.delivery_queue import DeliveryQueue, run_until_stopped
from holdfast.storage.database import TransactionConflict
from holdfast.storage.secrets import SecretBox
from holdfast.webhooks.attempt import Post, Secret
from holdfast.webhooks.sender import Sender

AT_ONCE = 512
"""Attempts in flight, of one process."""
KEPT_FREE = 256
"""Beyond that, for endpoints with hardly anything in flight: those that hang must not stop the others."""
HARDLY_ANYTHING = 4
POLL_SECONDS = 0.5
"""Hints can get lost; so late, at most, is what one of them was for."""
SHORTEST_PAUSE_SECONDS = 0.01
"""For what another process is claiming at this moment."""
PAUSE_FOR_OTHERS_SECONDS = 0.05
"""Who had something locked for too long."""
PAUSE_AFTER_FAILURE_SECONDS = 1.0
FINISH_SECONDS = 10.5
"""For which attempts may go on when the worker is told to stop."""
LAST_ROUND_SECONDS = CUT_OFF_SECONDS = LAST_RECORD_SECONDS = 1.0
SEALS_REMEMBERED = 4096


logger = logging.getLogger("holdfast.webhooks")


class Abandoned(Exception):
    """The delivery is not ours any more, or the endpoint is gone: nothing may be sent."""


class _HeldClaim(NamedTuple):
    """A claim, with the times at which this process requested and received it, by its own clock."""

    claim: ClaimedDelivery
    requested: float
    """The lease began after that."""
    received: float


class Dispatcher:
    def __init__(self, queue: DeliveryQueue, sender: Sender, box: SecretBox, timeout_seconds: float) -> None:
        self._queue = queue
        self._sender = sender
        self._open = lru_cache(SEALS_REMEMBERED)(box.open)
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._sending: dict[asyncio.Task[None], _HeldClaim] = {}
        self._records: list[AttemptRecord] = []
        self._unsent: list[ClaimedDelivery] = []

    def wake(self) -> None:
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``; then what is in flight is finished, or given back."""
        stopping = self._loop.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self.wake())
        try:
            while not stop.is_set():
                self._wake.clear()
                await self._sleep(await run_until_stopped(stopping, self._round, LAST_ROUND_SECONDS))
        finally:
            stopping.cancel()
        await self._finish()

    async def run_once(self) -> float:
        """Record what has ended, claim what is due and send it; the seconds until there may be more."""
        await self._flush()
        requested = self._loop.time()
        room, lane_cap = self._room()
        claimed = await self._queue.claim(room, lane_cap) if room > 0 else []
        received = self._loop.time()
        for one in claimed:
            self._start(_HeldClaim(one, requested, received))
        if self._records or self._wake.is_set():
            return 0.0
        return await self._pause()

    async def drain(self) -> None:
        """Wait for what is in flight, and record it."""
        while self._sending or self._records or self._unsent:
            if self._sending:
                await asyncio.wait(self._sending)
            await self._flush()

    def _room(self) -> tuple[int, int]:
        """For how many attempts in all, and in one lane."""
        room = AT_ONCE - len(self._sending)
        return (room, MAX_IN_FLIGHT) if room > 0 else (room + KEPT_FREE, HARDLY_ANYTHING)

    async def _round(self) -> float:
        try:
            return await self.run_once()
        except TransactionConflict:
            return PAUSE_FOR_OTHERS_SECONDS
        except DatabaseUnavailable:
            logger.warning("dispatcher: the database is away")
        except Exception:
            logger.exception("dispatcher failed")
        return PAUSE_AFTER_FAILURE_SECONDS

    async def _pause(self) -> float:
        room, lane_cap = self._room()
        seconds = await self._queue.seconds_until_next(lane_cap) if room > 0 else None
        if seconds is None:
            return POLL_SECONDS
        return min(max(seconds, SHORTEST_PAUSE_SECONDS), POLL_SECONDS)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _flush(self) -> None:
        """What could not be recorded is kept, and recorded when the database is back."""
        results, self._records = self._records, []
        returned, self._unsent = self._unsent, []
        try:
            if results:
                await self._queue.record(results)
                results = []
            if returned:
                await self._queue.give_back(returned)
                returned = []
        finally:
            self._records[:0] = results
            self._unsent[:0] = returned

    def _start(self, held: _HeldClaim) -> None:
        task = self._loop.create_task(self._send(held))
        self._sending[task] = held
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.pop(task, None)
        self._wake.set()

    async def _send(self, held: _HeldClaim) -> None:
        claimed = held.claim
        started = self._loop.time()
        try:
            if started - held.requested > self._queue.lease_seconds - self._timeout_seconds:
                raise Abandoned
            secret = self._opened(claimed.secret)
            result = await self._sender.send(self._post(held, secret))
        except SecretsUnreadable:
            result = AttemptResult(cause=UNREADABLE)
        except (Abandoned, DatabaseUnavailable):
            self._unsent.append(claimed)
            return
        except Exception:
            logger.exception(
                "a delivery could not be sent", extra={"fields": {"deliveryId": claimed.delivery_id}}
            )
            result = AttemptResult(cause=FAULTY)
        self._records.append(self._record(held, started, result))

    def _post(self, held: _HeldClaim, secret: Secret) -> Post:
        claimed = held.claim

        async def read_secret() -> Secret:
            age = self._loop.time() - held.requested
            if age <= SECRET_FRESH_SECONDS:
                return secret
            if age > self._queue.lease_seconds - SECRET_FRESH_SECONDS:
                raise Abandoned
            sealed = await self._queue.load_secret(claimed.endpoint_id)
            if sealed is None or not sealed.sealed:
                raise Abandoned
            return self._opened(sealed)

        def unix_time() -> float:
            """By the database's clock, as all our times: this machine's may be wrong."""
            return claimed.claimed_at.timestamp() + self._loop.time() - held.received

        body = claimed.body.encode()
        return Post(claimed.url, claimed.event, claimed.delivery_id, body, read_secret, unix_time)

    def _opened(self, sealed: SealedSecret) -> Secret:
        return Secret(sealed.id, self._open(sealed.sealed))

    def _record(self, held: _HeldClaim, started: float, result: AttemptResult) -> AttemptRecord:
        claim = held.claim
        decision = decide_after_attempt(claim.progress, result.cause is None, self._queue.schedule)
        started_at = claim.claimed_at + timedelta(seconds=started - held.received)
        return AttemptRecord(claim, started_at, result, decision)

    async def _finish(self) -> None:
        """What goes on for too long is cut off, and says so in the log."""
        deadline = self._loop.time() + FINISH_SECONDS
        await self._end_attempts(deadline)
        self._sender.cut_off()
        await self._end_attempts(deadline + CUT_OFF_SECONDS)
        await self._flush_until(max(deadline, self._loop.time()) + LAST_RECORD_SECONDS)

    async def _end_attempts(self, deadline: float) -> None:
        """Each is recorded soon after it ends: who stops us may lose patience."""
        while self._sending and (left := deadline - self._loop.time()) > 0:
            await asyncio.wait(self._sending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            await self._flush_until(min(deadline, self._loop.time() + LAST_RECORD_SECONDS))

    async def _flush_until(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._flush()
        except (DatabaseUnavailable, TimeoutError):
            logger.warning("the last attempts could not be recorded; they go out again after their lease")
        except Exception:
            logger.exception("the last attempts could not be recorded")
