"""Limits of one process: requests of a caller in a second, wrong keys, and clients that watch live."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from functools import partial

from holdfast.domain.errors import TooManyRequests
from holdfast.web.client_address import Client

LIVE_PER_ADDRESS = 200
"""Many phones share the address of their network."""
LIVE_IN_ALL = 2_000

_MAX_CALLERS = 10_000
_MINUTE_SECONDS = 60.0
_TOO_MANY_WRONG_KEYS = "This address has sent more wrong keys than its limit allows."
_LIVE_RETRY_SECONDS = 60
_ADDRESS_LIVE_TAKEN = (
    "This address watches as many pages live as it may. Close some of them, or try again later."
)
_ALL_LIVE_TAKEN = "So many watch live now that there is no place for more. Reload the page in a minute."


class RateLimit:
    """A bucket of one second's requests for each caller, refilled steadily, for one process."""

    def __init__(self, per_second: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._monotonic = monotonic
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def take(self, caller: Hashable, detail: str | None = None) -> None:
        """``detail`` replaces the message of the error that is raised over the limit."""
        now = self._monotonic()
        left, since = self._buckets.get(caller, (self._capacity, now))
        left = min(self._capacity, left + (now - since) * self._per_second)
        if left < 1:
            self._buckets[caller] = (left, now)
            raise TooManyRequests((1 - left) / self._per_second, detail)
        if len(self._buckets) >= _MAX_CALLERS:
            self._buckets.clear()
        self._buckets[caller] = (left - 1, now)


class WrongKeyLimit:
    """Limit the wrong keys of an address in any 60 seconds, for one process. Valid keys do not count."""

    def __init__(self, per_minute: int, monotonic: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._monotonic = monotonic
        self._failures: dict[str, deque[float]] = {}

    def count(self, client: Client) -> None:
        now = self._monotonic()
        failures = self._failures.get(client.counted_as) or deque(maxlen=self._per_minute)
        if len(failures) == self._per_minute and (left := failures[0] + _MINUTE_SECONDS - now) > 0:
            raise TooManyRequests(left, _TOO_MANY_WRONG_KEYS)
        if len(self._failures) >= _MAX_CALLERS:
            self._failures.clear()
        failures.append(now)
        self._failures[client.counted_as] = failures


class LiveLimits:
    """Limit the clients that watch live at a time: each keeps a connection of this process open."""

    def __init__(self, per_address: int = LIVE_PER_ADDRESS, in_all: int = LIVE_IN_ALL) -> None:
        self._per_address = per_address
        self._in_all = in_all
        self._taken: Counter[str] = Counter()

    def take(self, client: Client) -> Callable[[], None]:
        """Return the function that gives the place back."""
        if self._taken.total() >= self._in_all:
            raise TooManyRequests(_LIVE_RETRY_SECONDS, _ALL_LIVE_TAKEN)
        if not client.address.is_loopback and self._taken[client.counted_as] >= self._per_address:
            raise TooManyRequests(_LIVE_RETRY_SECONDS, _ADDRESS_LIVE_TAKEN)
        self._taken[client.counted_as] += 1
        return partial(self._release, client.counted_as)

    def _release(self, counted_as: str) -> None:
        self._taken[counted_as] -= 1
        if not self._taken[counted_as]:
            del self._taken[counted_as]
