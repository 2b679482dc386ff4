"""Where a request comes from: the peer, or whom a trusted proxy names in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from holdfast.setting_values import IPNetwork
from holdfast.web.call import Call

IPAddress = IPv4Address | IPv6Address

_FORWARDED_FOR = b"x-forwarded-for"
_WITH_PORT = re.compile(r"\[([^\[\]]*)\](?::\d+)?|([\d.]+):\d+")
_HOUSEHOLD_BITS = 64
# Each request asks more than once, and clients come back.
_REMEMBERED = 2048


class ClientAddresses:
    """Nothing is remembered of a request: the same header lines come from different clients."""

    def __init__(self, trusted_proxies: Sequence[IPNetwork]) -> None:
        self._trusted = tuple(trusted_proxies)
        self._trusts = lru_cache(maxsize=_REMEMBERED)(self._is_trusted)

    def of(self, call: Call) -> str:
        return str(self.find(call))

    def find(self, call: Call) -> IPAddress:
        """Read from the right: what stands left of an address that is not trusted is its own invention."""
        address = _read(call.exchange.peer)
        if not self._trusts(address):
            return address
        for entry in _forwarded(call):
            try:
                address = _read(entry)
            except ValueError:
                break
            if not self._trusts(address):
                break
        return address

    def _is_trusted(self, address: IPAddress) -> bool:
        return any(address in network for network in self._trusted)


@lru_cache(maxsize=_REMEMBERED)
def counted_as(address: IPAddress) -> str:
    """Under which name an address is counted: a household has 2^64 addresses of IPv6, and so one limit."""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((address, _HOUSEHOLD_BITS), strict=False))


def _forwarded(call: Call) -> Iterator[str]:
    """The nearest first; lines of the same name are one list, and its empty places say nothing."""
    lines = [value for name, value in call.exchange.head.lines if name == _FORWARDED_FOR]
    entries = b",".join(lines).decode("latin-1").split(",")
    return filter(None, (entry.strip(' \t"') for entry in reversed(entries)))


@lru_cache(maxsize=_REMEMBERED)
def _read(text: str) -> IPAddress:
    found = _WITH_PORT.fullmatch(text)
    address = ip_address(text if found is None else found[1] or found[2])
    if isinstance(address, IPv4Address):
        return address
    # Without its zone, which means something only on the machine that wrote it.
    return address.ipv4_mapped or IPv6Address(int(address))
