"""Where a request comes from: the peer, or whom a trusted proxy names in its place."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from starlette.types import Scope

from holdfast.domain.addresses import IPNetwork

_FORWARDED_FOR = b"x-forwarded-for"
_UNKNOWN = IPv4Address(0)

IPAddress = IPv4Address | IPv6Address

_WITH_PORT = re.compile(r"\[([^\[\]]*)\](?::\d+)?|([\d.]+):\d+")
_HOUSEHOLD_BITS = 64
_REMEMBERED = 2048


class Client(NamedTuple):
    address: IPAddress
    text: str
    counted_as: str
    """Under which name it is counted: a household has 2^64 addresses of IPv6, and so one limit."""


class ClientAddresses:
    """Which client a request comes from."""

    def __init__(self, trusted_proxies: Sequence[IPNetwork]) -> None:
        self._trusted = tuple(trusted_proxies)
        # Clients come back; of peers there are few.
        self._known = lru_cache(maxsize=_REMEMBERED)(self._read)
        self._known_peer = lru_cache(maxsize=_REMEMBERED)(self._read_peer)

    def find(self, scope: Scope) -> Client:
        peer = scope.get("client")
        # A unix socket has no address: its peer is on this machine.
        address = "127.0.0.1" if peer is None else peer[0]
        return self._known(address, _forwarded(scope) if self._trusted else b"")

    def _read(self, peer: str, forwarded: bytes) -> Client:
        """From the right: what stands left of an address that is not trusted is its own invention."""
        client, is_trusted = self._known_peer(peer)
        if not is_trusted or not forwarded:
            return client
        address = client.address
        for entry in _entries(forwarded):
            try:
                address = _parsed(entry)
            except ValueError:
                break
            if not self._trusts(address):
                break
        return _client(address)

    def _read_peer(self, peer: str) -> tuple[Client, bool]:
        try:
            address = _parsed(peer)
        except ValueError:
            # A test client, or a server that believes a header: nobody whom we know.
            return _client(_UNKNOWN), False
        return _client(address), self._trusts(address)

    def _trusts(self, address: IPAddress) -> bool:
        return any(address in network for network in self._trusted)


def _client(address: IPAddress) -> Client:
    if isinstance(address, IPv4Address):
        return Client(address, str(address), str(address))
    return Client(address, str(address), str(IPv6Network((address, _HOUSEHOLD_BITS), strict=False)))


def _forwarded(scope: Scope) -> bytes:
    """Lines of the same name are one list."""
    return b",".join(value for name, value in scope["headers"] if name == _FORWARDED_FOR)


def _entries(forwarded: bytes) -> Iterator[str]:
    """The nearest first; empty places say nothing."""
    entries = forwarded.decode("latin-1").split(",")
    return filter(None, (entry.strip(' \t"') for entry in reversed(entries)))


def _parsed(text: str) -> IPAddress:
    try:
        # Most are plain, and every buyer brings another one: this takes a third of the time.
        return IPv4Address(socket.inet_pton(socket.AF_INET, text))
    except OSError:
        return _parsed_in_full(text)


def _parsed_in_full(text: str) -> IPAddress:
    found = _WITH_PORT.fullmatch(text)
    address = ip_address(text if found is None else found[1] or found[2])
    if isinstance(address, IPv4Address):
        return address
    # Without its zone, which means something only on the machine that wrote it.
    return address.ipv4_mapped or IPv6Address(int(address))
