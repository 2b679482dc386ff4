"""Requests per second, for each key or address."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from holdfast.domain.errors import KEY_OVER_LIMIT, TooManyRequests

_CALLERS_AT_MOST = 10_000


class RateLimit:
    """A bucket of one second's requests for each caller, refilled steadily.

    ``per_second`` is this process's share: the limit divided by the number of web processes.
    """

    def __init__(self, per_second: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._monotonic = monotonic
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    @property
    def is_off(self) -> bool:
        return not self._per_second

    def take(self, caller: Hashable, detail: str = KEY_OVER_LIMIT) -> None:
        """``detail`` is what a caller is told who has had enough."""
        if not self._per_second:
            return
        now = self._monotonic()
        left, since = self._buckets.get(caller, (self._capacity, now))
        left = min(self._capacity, left + (now - since) * self._per_second)
        if left < 1:
            self._buckets[caller] = (left, now)
            raise TooManyRequests((1 - left) / self._per_second, detail)
        if len(self._buckets) >= _CALLERS_AT_MOST:
            self._buckets.clear()
        self._buckets[caller] = (left - 1, now)
