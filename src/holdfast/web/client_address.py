"""The address of a client: the peer, or the address that a trusted proxy forwards."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from starlette.types import Scope

from holdfast.domain.addresses import IPAddress, IPNetwork, counted_networks

_WITH_PORT = re.compile(r"\[([^\[\]]*)\](?::\d+)?|([\d.]+):\d+")
_CACHED = 2048
_LONGEST_FORWARDED = 1024
"""Read from the right, and kept in memory."""


class Client(NamedTuple):
    address: IPAddress
    text: str
    counted: tuple[tuple[str, int], ...]
    """The networks by which it is limited, the narrowest first; see ``counted_networks``."""


class ClientAddresses:
    def __init__(self, trusted_proxies: Sequence[IPNetwork]) -> None:
        self._trusted = tuple(trusted_proxies)
        # Clients come back, and there are few peers.
        self._parse = lru_cache(maxsize=_CACHED)(self._parse_client)
        self._parse_peer = lru_cache(maxsize=_CACHED)(self._parse_trusted_peer)

    def find(self, scope: Scope) -> Client:
        peer, forwarded = scope.get("client"), b""
        if self._trusted:
            # Lines of the same name are one list.
            forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
            forwarded = forwarded[-_LONGEST_FORWARDED:]
        # A unix socket has no address: its peer is on this machine.
        return self._parse("127.0.0.1" if peer is None else peer[0], forwarded)

    def _parse_client(self, peer: str, forwarded: bytes) -> Client:
        """Read from the right: what is left of an address that is not trusted may be invented."""
        client, is_trusted = self._parse_peer(peer)
        if not is_trusted or not forwarded:
            return client
        address = client.address
        for entry in reversed(forwarded.decode("latin-1").split(",")):
            if not (text := entry.strip(' \t"')):
                continue
            try:
                address = _parse_address(text)
            except ValueError:
                break
            if not self.is_trusted(address):
                break
        return _client(address)

    def _parse_trusted_peer(self, peer: str) -> tuple[Client, bool]:
        try:
            address = _parse_address(peer)
        except ValueError:
            # A test client, or a server that believes a header.
            return _client(IPv4Address(0)), False
        return _client(address), self.is_trusted(address)

    def is_trusted(self, address: IPAddress) -> bool:
        return any(address in network for network in self._trusted)


def _client(address: IPAddress) -> Client:
    return Client(address, str(address), counted_networks(address))


def _parse_address(text: str) -> IPAddress:
    try:
        # Most are plain IPv4, and every buyer has another one: this takes a third of the time.
        return IPv4Address(socket.inet_pton(socket.AF_INET, text))
    except OSError:
        match = _WITH_PORT.fullmatch(text)
    address = ip_address(text if match is None else match[1] or match[2])
    if isinstance(address, IPv4Address):
        return address
    # Without its zone, which means something only on the machine that wrote it.
    return address.ipv4_mapped or IPv6Address(int(address))
