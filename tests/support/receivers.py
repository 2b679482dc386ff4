"""Receivers of webhooks on real sockets that do what a test tells them to."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Received(NamedTuple):
    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return dict(self.headers)[name]


@dataclass
class Peer:
    """One connection, seen from the receiver."""

    _receiver: Receiver
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    async def request(self) -> Received:
        """Raises ``IncompleteReadError`` when the sender is gone."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("ascii")
        line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = tuple((name, value) for name, _, value in (text.partition(": ") for text in fields))
        body = await self._reader.readexactly(int(dict(headers).get("Content-Length", "0")))
        self._receiver.requests.append(Received(line, headers, body))
        return self._receiver.requests[-1]

    async def send(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError  # uvloop would raise something else.
        self._writer.write(data)
        await self._writer.drain()
        self._receiver.bytes_sent += len(data)

    async def read_some(self) -> bytes:
        return await self._reader.read(65_536)

    async def left(self) -> None:
        """Until the sender has closed the connection."""
        while await self.read_some():
            pass

    def reset(self) -> None:
        """Close it so that the sender sees a reset."""
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
        """Wait until the sender has closed every connection."""
        async with asyncio.timeout(60):
            await asyncio.gather(*self.talks)


@asynccontextmanager
async def receiving(
    talk: Talk,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    reuse_port: bool = False,
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

    server = await asyncio.start_server(
        accept, host, port, ssl=tls, limit=1 << 20, backlog=512, reuse_port=reuse_port
    )
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for running in list(receiver.talks):
            running.cancel()
        await asyncio.gather(*receiver.talks, return_exceptions=True)
        await server.wait_closed()


async def answer_all(peer: Peer) -> None:
    """A receiver as it should be: 200 to every request, for as long as the sender stays."""
    while True:
        await peer.request()
        await peer.send(OK)


def answering(*pieces: bytes | asyncio.Event, then_close: bool = False) -> Talk:
    """Reads one request, sends the pieces, waits for each event among them, and stays connected."""

    async def talk(peer: Peer) -> None:
        await peer.request()
        for piece in pieces:
            await (piece.wait() if isinstance(piece, asyncio.Event) else peer.send(piece))
        if then_close:
            await peer.close()

    return talk


@asynccontextmanager
async def never_accepting() -> AsyncIterator[int]:
    """A port whose queue is full: connects to it hang, as they do where a firewall drops them."""
    with socket.socket() as listener, ExitStack() as fillers:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
