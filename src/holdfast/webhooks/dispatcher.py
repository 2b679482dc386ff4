"""Claims deliveries that are due, sends them and records the results. No transaction is open meanwhile.

domain/delivery.py decides when to retry.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from holdfast.domain import delivery
from holdfast.domain.endpoint import MAX_IN_FLIGHT, SECRET_FRESH_SECONDS
from holdfast.domain.errors import DatabaseUnavailable, SecretsUnreadable
from holdfast.operations.delivery_queue import DeliveryQueue, run_until_stopped
from holdfast.storage.database import TransactionConflict
from holdfast.storage.secrets import SecretBox
from holdfast.webhooks.attempt import Post, Secret
from holdfast.webhooks.sender import Sender

AT_ONCE = 512
KEPT_FREE = 256
"""Further attempts, for endpoints with few in flight, so that endpoints that hang do not stop the others."""
FEW_IN_FLIGHT = 4
POLL_SECONDS = 0.5
"""Notifications can get lost; a delivery is late by this time at most."""
SHORTEST_PAUSE_SECONDS = 0.01
"""For deliveries that another process is claiming."""
PAUSE_AFTER_CONFLICT_SECONDS = 0.05
PAUSE_AFTER_FAILURE_SECONDS = 1.0
FINISH_SECONDS = 10.5
"""Attempts may go on for this time when the worker is stopped."""
LAST_ROUND_SECONDS = CUT_OFF_SECONDS = LAST_RECORD_SECONDS = 1.0
CACHED_SECRETS = 4096

logger = logging.getLogger("holdfast.webhooks")
_key = attrgetter("delivery_id", "token")


class Abandoned(Exception):
    """The lease may have expired, or the endpoint is removed: nothing may be sent."""


class _HeldClaim(NamedTuple):
    """A claim, with the times at which this process requested and received it, by its own clock."""

    claim: delivery.ClaimedDelivery
    requested: float
    """The lease began after that."""
    received: float


class Dispatcher:
    def __init__(self, queue: DeliveryQueue, sender: Sender, box: SecretBox, timeout_seconds: float) -> None:
        self._queue = queue
        self._sender = sender
        self._unseal = lru_cache(CACHED_SECRETS)(box.open)
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._sending: set[asyncio.Task[Any]] = set()
        self._records: list[delivery.AttemptRecord] = []
        self._unsent: list[delivery.ClaimedDelivery] = []

    def wake(self) -> None:
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; then finish what is in flight, or give it back."""
        stopping = self._loop.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self.wake())
        try:
            while not stop.is_set():
                self._wake.clear()
                pause = await run_until_stopped(stopping, self._round, LAST_ROUND_SECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
        finally:
            stopping.cancel()
        await self._finish()

    async def run_once(self) -> float:
        """Record what has ended, send what is due, and return the seconds until there may be more."""
        await self._flush()
        requested = self._loop.time()
        room, lane_cap = self._room()
        claimed = await self._claim(room, lane_cap) if room > 0 else []
        received = self._loop.time()
        self._queue.held.update(map(_key, claimed))
        for claim in claimed:
            task = self._loop.create_task(self._send(_HeldClaim(claim, requested, received)))
            self._sending.add(task)
            task.add_done_callback(self._end_task)
        if self._records or self._wake.is_set():
            return 0.0
        room, lane_cap = self._room()
        seconds = await self._queue.seconds_until_next(lane_cap) if room > 0 else None
        return POLL_SECONDS if seconds is None else min(max(seconds, SHORTEST_PAUSE_SECONDS), POLL_SECONDS)

    def _room(self) -> tuple[int, int]:
        """Return how many attempts may be added in all, and how many may be in flight to one endpoint."""
        room = AT_ONCE - len(self._sending)
        return (room, MAX_IN_FLIGHT) if room > 0 else (room + KEPT_FREE, FEW_IN_FLIGHT)

    async def _round(self) -> float:
        try:
            return await self.run_once()
        except TransactionConflict:
            return PAUSE_AFTER_CONFLICT_SECONDS
        except DatabaseUnavailable:
            logger.warning("dispatcher: the database is unavailable")
        except Exception:
            logger.exception("dispatcher failed")
        return PAUSE_AFTER_FAILURE_SECONDS

    async def _flush(self) -> None:
        """Record results. Those that cannot be recorded are kept until the database is back."""
        records, self._records = self._records, []
        unsent, self._unsent = self._unsent, []
        try:
            if records:
                await self._queue.record(records)
                self._queue.held.difference_update(_key(record.claim) for record in records)
                records = []
            if unsent:
                await self._queue.give_back(unsent)
                self._queue.held.difference_update(map(_key, unsent))
                unsent = []
        finally:
            self._records[:0] = records
            self._unsent[:0] = unsent

    async def _claim(self, room: int, lane_cap: int) -> list[delivery.ClaimedDelivery]:
        """A claim goes on if its round is cancelled, and is given back then: it was no attempt."""
        claiming = self._loop.create_task(self._queue.claim(room, lane_cap))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            self._sending.add(claiming)
            claiming.add_done_callback(self._end_task)
            raise

    def _end_task(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and not task.exception():
            self._unsent += task.result() or ()  # A claim whose round was cancelled has a result.
        self._sending.discard(task)
        self._wake.set()

    async def _send(self, held: _HeldClaim) -> None:
        claim = held.claim
        started = self._loop.time()
        try:
            if started - held.requested > self._queue.lease_seconds - self._timeout_seconds:
                raise Abandoned
            secret = Secret(claim.secret.id, self._unseal(claim.secret.sealed))
            result = await self._sender.send(self._build_post(held, secret))
        except SecretsUnreadable:
            result = delivery.AttemptResult(cause=delivery.SEALING_KEY_MISSING)
        except (Abandoned, DatabaseUnavailable):
            self._unsent.append(claim)
            return
        except Exception:
            fields = {"deliveryId": claim.delivery_id}
            logger.exception("a delivery could not be sent", extra={"fields": fields})
            result = delivery.AttemptResult(cause=delivery.INTERNAL_ERROR)
        started_at = claim.claimed_at + timedelta(seconds=started - held.received)
        decision = delivery.decide_after_attempt(claim.progress, result.cause is None, self._queue.schedule)
        self._records.append(delivery.AttemptRecord(claim, started_at, result, decision))

    def _build_post(self, held: _HeldClaim, secret: Secret) -> Post:
        claim = held.claim

        async def read_secret() -> Secret:
            age = self._loop.time() - held.requested
            if age <= SECRET_FRESH_SECONDS:
                return secret
            if age > self._queue.lease_seconds - SECRET_FRESH_SECONDS:
                raise Abandoned
            current = await self._queue.load_secret(claim.endpoint_id)
            if current is None or not current.sealed:
                raise Abandoned
            return Secret(current.id, self._unseal(current.sealed))

        def unix_time() -> float:
            """Follow the database's clock, as all times do: this machine's may be wrong."""
            return claim.claimed_at.timestamp() + self._loop.time() - held.received

        return Post(claim.url, claim.event, claim.delivery_id, claim.body.encode(), read_secret, unix_time)

    async def _finish(self) -> None:
        """Wait for attempts in flight; those that take too long are cut off, and the log says so."""
        deadline = self._loop.time() + FINISH_SECONDS
        await self._end_attempts(deadline)
        self._sender.cut_off()
        await self._end_attempts(deadline + CUT_OFF_SECONDS)
        await self._flush_until(max(deadline, self._loop.time()) + LAST_RECORD_SECONDS)

    async def _end_attempts(self, deadline: float) -> None:
        """Record each attempt soon after it ends: the process may be killed before the deadline."""
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
