"""A small name server on loopback, whose answers a test may change at any time."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import cast

import pytest

from holdfast.webhooks import resolver

_QUERY_TYPES = {1: 4, 28: 6}
_NAME_ERROR = 3
_SERVER_FAILURE = 2


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Names that it was not told of do not exist."""

    addresses: dict[str, list[str]] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)
    withheld: list[tuple[bytes, tuple[str, int]]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    questions: Counter[tuple[str, int]] = field(default_factory=Counter)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    place: str = ""
    _transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        host, port = transport.get_extra_info("sockname")
        self.place = f"{host}:{port}"

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        name, query_type, question = _question(data)
        self.questions[name, query_type] += 1
        self.asked.set()
        if name in self.hanging:
            self.withheld.append((data, sender))
        else:
            assert self._transport is not None
            self._transport.sendto(self._answer(data[:2], name, query_type, question), sender)

    def go_on(self) -> None:
        """Answer what was asked while it hung."""
        self.hanging.clear()
        withheld, self.withheld = self.withheld, []
        for data, sender in withheld:
            self.datagram_received(data, sender)

    def _answer(self, query_id: bytes, name: str, query_type: int, question: bytes) -> bytes:
        known = self.addresses.get(name)
        code = _SERVER_FAILURE if name in self.failing else _NAME_ERROR if known is None else 0
        found = [ip_address(text) for text in known or () if not code]
        wanted = [address for address in found if address.version == _QUERY_TYPES[query_type]]
        head = query_id + struct.pack("!5H", 0x8180 | code, 1, len(wanted), 0, 0)
        return head + question + b"".join(_record(address, query_type) for address in wanted)


def _question(data: bytes) -> tuple[str, int, bytes]:
    labels, place = [], 12
    while data[place]:
        labels.append(data[place + 1 : place + 1 + data[place]].decode("ascii"))
        place += 1 + data[place]
    (query_type,) = struct.unpack_from("!H", data, place + 1)
    return ".".join(labels).lower(), query_type, data[12 : place + 5]


def _record(address: IPv4Address | IPv6Address, query_type: int) -> bytes:
    """The name is a pointer to that of the question; the time to live is 0, so that nobody caches it."""
    return struct.pack("!HHHIH", 0xC00C, query_type, 1, 0, len(address.packed)) + address.packed


@asynccontextmanager
async def name_server(**addresses: list[str]) -> AsyncIterator[NameServer]:
    """Keyword names stand for ``NAME.example``."""
    server = NameServer({f"{name}.example": found for name, found in addresses.items()})
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, local_addr=("127.0.0.1", 0))
    try:
        with pytest.MonkeyPatch.context() as patch:
            # It answers in the loop of the test, which may stand still: for about five minutes.
            patch.setattr(resolver, "_FIRST_TIMEOUT_SECONDS", 5.0)
            patch.setattr(resolver, "_TRIES", 6)
            yield server
    finally:
        transport.close()
