"""Counts open connections by client address."""

from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

CONNECTIONS_PER_ADDRESS = 1000

_IPV6_PREFIX_BITS = 64  # what one subscriber is given


class ConnectionCounts:
    """The limit does not apply to this machine, nor to trusted proxies, which connect for many clients."""

    def __init__(
        self,
        per_address: int = CONNECTIONS_PER_ADDRESS,
        trusted: Sequence[IPv4Network | IPv6Network] = (),
    ) -> None:
        """Allow any number if ``per_address`` is 0."""
        self._per_address = per_address
        self._trusted = tuple(trusted)
        self._counts: Counter[str] = Counter()

    def add(self, client: tuple[str, int] | None) -> bool:
        """Count a connection, and return whether it is within the limit."""
        key = self._key(client)
        if key is None:
            return True
        self._counts[key] += 1
        return self._counts[key] <= self._per_address

    def remove(self, client: tuple[str, int] | None) -> None:
        key = self._key(client)
        if key is not None:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

    def _key(self, client: tuple[str, int] | None) -> str | None:
        if client is None or not self._per_address:
            return None
        address = ip_address(client[0].partition("%")[0])
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        if address.is_loopback or any(address in network for network in self._trusted):
            return None
        if isinstance(address, IPv6Address):
            return str(IPv6Network((address, _IPV6_PREFIX_BITS), strict=False))
        return str(address)
