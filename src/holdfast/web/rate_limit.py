"""Limits of this process: requests per second for each key or address, and live connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial

from holdfast.domain.errors import KEY_OVER_LIMIT, TooManyRequests
from holdfast.web.client_address import Client

LIVE_PER_ADDRESS = 200
"""Many phones share the address of their network."""
LIVE_IN_ALL = 2_000

_CALLERS_AT_MOST = 10_000
_LIVE_RETRY_SECONDS = 60
_ADDRESS_LIVE_TAKEN = (
    "This address watches as many pages live as it may. Close some of them, or try again later."
)
_ALL_LIVE_TAKEN = "So many watch live now that there is no place for more. Reload the page in a minute."


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


class LiveLimits:
    """How many clients may watch live at a time: each keeps a connection of this process open.

    Loopback has only the limit of all, as with the rate of requests.
    """

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
