"""Receivers of webhooks on real sockets, each of which does exactly what its test tells it to."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Received(NamedTuple):
    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return dict(self.headers)[name]


class Peer:
    """One connection, seen from the receiver."""

    def __init__(
        self, receiver: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._receiver = receiver
        self._reader = reader
        self._writer = writer

    async def request(self) -> Received:
        """Raises ``IncompleteReadError`` when the sender is gone."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("ascii")
        line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = tuple((name, value) for name, _, value in (text.partition(": ") for text in fields))
        body = await self._reader.readexactly(int(dict(headers)["Content-Length"]))
        self._receiver.requests.append(Received(line, headers, body))
        return self._receiver.requests[-1]

    async def send(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError  # uvloop would raise something else.
        self._writer.write(data)
        await self._writer.drain()
        self._receiver.bytes_sent += len(data)

    async def drip(self, data: bytes, *, every_seconds: float = 0.02) -> None:
        for byte in data:
            await self.send(bytes((byte,)))
            await asyncio.sleep(every_seconds)

    async def left(self) -> None:
        """Until the sender has closed the connection."""
        while await self._reader.read(65_536):
            pass

    async def pass_on(self, port: int) -> None:
        """Be nothing but a wire to another port."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_copy(self._reader, writer), _copy(reader, self._writer))
        finally:
            writer.transport.abort()

    def reset(self) -> None:
        """Close it the rude way, so that the sender sees a reset."""
        taken = self._writer.get_extra_info("socket")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


Talk = Callable[[Peer], Awaitable[None]]


@dataclass
class Receiver:
    port: int = 0
    scheme: str = "http"
    host: str = "127.0.0.1"
    connections: int = 0
    bytes_sent: int = 0
    requests: list[Received] = field(default_factory=list)
    talks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return self.url_at(f"[{self.host}]" if ":" in self.host else self.host)

    def url_at(self, host: str) -> str:
        return f"{self.scheme}://{host}:{self.port}/hook?of=test"

    async def all_left(self) -> None:
        """The sender has let go of every connection, soon."""
        if self.talks:
            _, staying = await asyncio.wait(self.talks, timeout=1)
            assert not staying, f"{len(staying)} connections were never closed"


@asynccontextmanager
async def receiving(
    talk: Talk, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Receiver]:
    """Each connection is one run of ``talk``, followed by a wait for the sender to leave."""
    receiver = Receiver(scheme="https" if tls else "http", host=host)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receiver.connections += 1
        peer = Peer(receiver, reader, writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await talk(peer)
                await peer.left()
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running = asyncio.ensure_future(converse(reader, writer))
        receiver.talks.add(running)
        running.add_done_callback(receiver.talks.discard)

    server = await asyncio.start_server(accept, host, port, ssl=tls, limit=1 << 20, backlog=512)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for running in list(receiver.talks):
            running.cancel()
        await asyncio.gather(*receiver.talks, return_exceptions=True)
        await server.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while (data := await reader.read(65_536)) and not writer.is_closing():
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


async def answer_all(peer: Peer) -> None:
    """A receiver as it should be: 200 to every request, for as long as the sender stays."""
    while True:
        await peer.request()
        await peer.send(OK)


def answering(*pieces: bytes) -> Talk:
    """Reads a request, sends the pieces, and stays."""

    async def talk(peer: Peer) -> None:
        await peer.request()
        for piece in pieces:
            await peer.send(piece)

    return talk


@asynccontextmanager
async def never_accepting() -> AsyncIterator[int]:
    """A port whose queue is full: connects to it hang, as they do where a firewall drops them."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        try:
            yield port
        finally:
            for filler in fillers:
                filler.close()


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
