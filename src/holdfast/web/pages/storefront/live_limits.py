"""How many may watch live at a time: each has a connection of this process for as long as they like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from holdfast.domain.errors import TooManyRequests
from holdfast.web.client_address import ClientAddresses
from holdfast.web.request import Request

GiveBack = Callable[[], None]

PER_ADDRESS = 200
"""Many phones share the address of their network."""
IN_ALL = 2_000

_AGAIN_AFTER_SECONDS = 60
_ADDRESS_HAS_ALL = (
    "This address watches as many pages live as it may. Close some of them, or try again later."
)
_NO_SEAT_LEFT = "So many watch live now that there is no place for more. Reload the page in a minute."


class LiveLimits:
    """The machine itself has no limit of its own, as with the limit of requests."""

    def __init__(
        self, addresses: ClientAddresses, per_address: int = PER_ADDRESS, in_all: int = IN_ALL
    ) -> None:
        self._addresses = addresses
        self._per_address = per_address
        self._in_all = in_all
        self._taken: Counter[str] = Counter()

    def take(self, request: Request) -> GiveBack:
        client = self._addresses.find(request.scope)
        counted_as = client.counted_as
        if self._taken.total() >= self._in_all:
            raise TooManyRequests(_AGAIN_AFTER_SECONDS, _NO_SEAT_LEFT)
        if not client.address.is_loopback and self._taken[counted_as] >= self._per_address:
            raise TooManyRequests(_AGAIN_AFTER_SECONDS, _ADDRESS_HAS_ALL)
        self._taken[counted_as] += 1
        return partial(self._give_back, counted_as)

    def _give_back(self, counted_as: str) -> None:
        self._taken[counted_as] -= 1
        if not self._taken[counted_as]:
            del self._taken[counted_as]
