"""Before the routes of the storefront, which need no key: nobody asks too often."""

from __future__ import annotations

from holdfast.web.authentication import bearer_token
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.rate_limit import RateLimit

ADDRESS_OVER_LIMIT = "This address has sent more requests than its limit allows."


class PublicGuard:
    """The machine itself is not limited; a proxy on it is a trusted one, and its clients are counted."""

    def __init__(self, addresses: ClientAddresses, rate_limit: RateLimit) -> None:
        self._addresses = addresses
        self._rate_limit = rate_limit

    async def __call__(self, call: Call) -> None:
        # Whether or not the route asks for a token: two are one too many.
        bearer_token(call)
        if self._rate_limit.is_off:
            return
        client = self._addresses.find(call)
        if not client.address.is_loopback:
            self._rate_limit.take(client.counted_as, ADDRESS_OVER_LIMIT)
