"""Requests per second and key."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from holdfast.domain.refusals import TooManyRequests

_KEYS_AT_MOST = 10_000


class RateLimit:
    """A bucket of one second's requests for each key, refilled steadily.

    ``per_second`` is this process's share: the limit divided by the number of web processes.
    """

    def __init__(self, per_second: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._monotonic = monotonic
        self._buckets: dict[UUID, tuple[float, float]] = {}

    def take(self, key_id: UUID) -> None:
        if not self._per_second:
            return
        now = self._monotonic()
        left, since = self._buckets.get(key_id, (self._capacity, now))
        left = min(self._capacity, left + (now - since) * self._per_second)
        if left < 1:
            self._buckets[key_id] = (left, now)
            raise TooManyRequests((1 - left) / self._per_second)
        if len(self._buckets) >= _KEYS_AT_MOST:
            self._buckets.clear()
        self._buckets[key_id] = (left - 1, now)
