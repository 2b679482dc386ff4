"""Which deliveries were processed already. A retry and a resend carry the id of the first attempt."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from enum import Enum
from typing import Callable, Protocol


class Claim(Enum):
    TAKEN = "taken"  # yours: act on it, then remember or release it
    BUSY = "busy"  # being acted on at this moment, by another thread or process
    DONE = "done"  # processed before


class SeenIds(Protocol):
    """A store of your own needs these three; a receiver may call them from any thread."""

    def claim(self, delivery_id: str, token: str) -> Claim:
        """Must be atomic: of any number at the same time, one alone gets TAKEN."""

    def remember(self, delivery_id: str, token: str) -> None:
        """It is processed, for good, even if the claim was lost meanwhile."""

    def release(self, delivery_id: str, token: str) -> None:
        """It is not processed. Releases nothing if the claim is by now another's (another token)."""


class SeenInMemory:
    """For one process. A restart forgets all, so the handler must bear a repeated event now and then."""

    def __init__(
        self,
        at_most: int = 100_000,
        keep_seconds: float = 86_400,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at_most, self._keep_seconds, self._clock = at_most, keep_seconds, clock
        self._lock = threading.Lock()
        self._busy: dict[str, str] = {}
        self._done_at: OrderedDict[str, float] = OrderedDict()

    def claim(self, delivery_id: str, token: str) -> Claim:
        with self._lock:
            self._forget_old()
            if delivery_id in self._done_at:
                return Claim.DONE
            return Claim.TAKEN if self._busy.setdefault(delivery_id, token) == token else Claim.BUSY

    def remember(self, delivery_id: str, token: str) -> None:
        with self._lock:
            self._busy.pop(delivery_id, None)
            self._done_at[delivery_id] = self._clock()
            self._done_at.move_to_end(delivery_id)
            self._forget_old()

    def release(self, delivery_id: str, token: str) -> None:
        with self._lock:
            if self._busy.get(delivery_id) == token:
                del self._busy[delivery_id]

    def _forget_old(self) -> None:
        """Oldest first; what is being acted on at this moment is never forgotten."""
        since = self._clock() - self._keep_seconds
        while self._done_at:
            oldest = next(iter(self._done_at))
            if len(self._done_at) <= self._at_most and self._done_at[oldest] > since:
                return
            del self._done_at[oldest]


class SeenElsewhere:
    """Your handler remembers `event.id` itself, together with its effect: it is given every delivery."""

    def claim(self, delivery_id: str, token: str) -> Claim:
        return Claim.TAKEN

    def remember(self, delivery_id: str, token: str) -> None:
        """The handler did."""

    def release(self, delivery_id: str, token: str) -> None:
        """The handler's own transaction was rolled back."""
