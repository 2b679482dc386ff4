"""Limits of one process: requests of a caller in a second, wrong keys, and clients that watch live."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
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
_EVERYBODY = ""
_ADDRESS_LIVE_TAKEN = (
    "Too many pages with live updates are open from this address. Close some of them, or try again later."
)
_ALL_LIVE_TAKEN = "Too many pages with live updates are open on this server. Reload the page in a minute."


class RateLimit:
    """A bucket of one second's requests for each caller, refilled steadily, for one process."""

    def __init__(self, per_second: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._monotonic = monotonic
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def take(self, caller: Hashable, detail: str | None = None, times: int = 1) -> None:
        """``detail`` replaces the message of the error that is raised over so many times the limit."""
        now, capacity, per_second = self._monotonic(), self._capacity * times, self._per_second * times
        left, since = self._buckets.get(caller, (capacity, now))
        left = min(capacity, left + (now - since) * per_second)
        if left < 1:
            self._buckets[caller] = (left, now)
            raise TooManyRequests((1 - left) / per_second, detail)
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
        if not self._per_minute:
            return
        now = self._monotonic()
        if len(self._failures) >= _MAX_CALLERS:
            self._failures.clear()
        counted = {
            network: self._failures.get(network) or deque[float](maxlen=self._per_minute * times)
            for network, times in client.counted
        }
        for failures in counted.values():
            if len(failures) == failures.maxlen and (left := failures[0] + _MINUTE_SECONDS - now) > 0:
                raise TooManyRequests(left, _TOO_MANY_WRONG_KEYS)
        for failures in counted.values():
            failures.append(now)
        self._failures |= counted


class LiveLimits:
    """Limit the clients that watch live at a time: each keeps a connection of this process open."""

    def __init__(self, per_address: int = LIVE_PER_ADDRESS, in_all: int = LIVE_IN_ALL) -> None:
        self._per_address = per_address
        self._in_all = in_all
        self._taken: Counter[str] = Counter()
        """For each network, and for everybody."""

    def take(self, client: Client) -> Callable[[], None]:
        """Return the function that gives the place back."""
        if self._taken[_EVERYBODY] >= self._in_all:
            raise TooManyRequests(_LIVE_RETRY_SECONDS, _ALL_LIVE_TAKEN)
        if not client.address.is_loopback:
            for network, times in client.counted:
                if self._taken[network] >= self._per_address * times:
                    raise TooManyRequests(_LIVE_RETRY_SECONDS, _ADDRESS_LIVE_TAKEN)
        networks = [_EVERYBODY, *(network for network, _ in client.counted)]
        self._taken.update(networks)
        return partial(release, self._taken, networks)


def release(counts: Counter[str], names: Iterable[str]) -> None:
    """Count one less of each. The operators of a Counter would look at all names."""
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]
