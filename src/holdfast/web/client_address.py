"""Where a request comes from: the peer, or whom a trusted proxy names in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from holdfast.setting_values import IPNetwork
from holdfast.web.call import Call

IPAddress = IPv4Address | IPv6Address

_FORWARDED_FOR = b"x-forwarded-for"
_WITH_PORT = re.compile(r"\[([^\[\]]*)\](?::\d+)?|([\d.]+):\d+")
_HOUSEHOLD_BITS = 64
_REMEMBERED = 2048


class Client(NamedTuple):
    address: IPAddress
    counted_as: str
    """Under which name it is counted: a household has 2^64 addresses of IPv6, and so one limit."""


class ClientAddresses:
    """Nothing of a connection is remembered: the same header lines come from different clients."""

    def __init__(self, trusted_proxies: Sequence[IPNetwork]) -> None:
        self._trusted = tuple(trusted_proxies)
        # Each request asks more than once, and clients come back.
        self._known = lru_cache(maxsize=_REMEMBERED)(self._read)

    def of(self, call: Call) -> str:
        return str(self.find(call).address)

    def find(self, call: Call) -> Client:
        return self._known(call.exchange.peer, _forwarded(call) if self._trusted else b"")

    def _read(self, peer: str, forwarded: bytes) -> Client:
        """From the right: what stands left of an address that is not trusted is its own invention."""
        address = _parsed(peer)
        for entry in _entries(forwarded) if self._trusts(address) else ():
            try:
                address = _parsed(entry)
            except ValueError:
                break
            if not self._trusts(address):
                break
        return Client(address, _counted(address))

    def _trusts(self, address: IPAddress) -> bool:
        return any(address in network for network in self._trusted)


def _counted(address: IPAddress) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((address, _HOUSEHOLD_BITS), strict=False))


def _forwarded(call: Call) -> bytes:
    """Lines of the same name are one list."""
    return b",".join(value for name, value in call.exchange.head.lines if name == _FORWARDED_FOR)


def _entries(forwarded: bytes) -> Iterator[str]:
    """The nearest first; empty places say nothing."""
    entries = forwarded.decode("latin-1").split(",")
    return filter(None, (entry.strip(' \t"') for entry in reversed(entries)))


def _parsed(text: str) -> IPAddress:
    found = _WITH_PORT.fullmatch(text)
    address = ip_address(text if found is None else found[1] or found[2])
    if isinstance(address, IPv4Address):
        return address
    # Without its zone, which means something only on the machine that wrote it.
    return address.ipv4_mapped or IPv6Address(int(address))
