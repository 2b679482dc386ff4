"""One request and its answer."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Protocol

from holdfast.web.http.heads import Head
from holdfast.web.refusals import ClientGone

_STATUS_LINES = {status.value: f"HTTP/1.1 {status} {status.phrase}\r\n".encode() for status in HTTPStatus}
_SLICE = 256 * 1024
_CHUNKED = b"transfer-encoding: chunked\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Carrier(Protocol):
    """The connection, as an exchange sees it."""

    transport: asyncio.Transport

    def own_lines(self) -> bytes:
        """The header lines that every answer has."""
        ...

    def read_on(self, exchange: Exchange) -> None: ...

    async def drained(self) -> None:
        """Waits until what was sent has left, but for a little."""
        ...

    def answered(self, exchange: Exchange) -> None: ...


class Exchange:
    __slots__ = (
        "_awaited",
        "_carrier",
        "_chunked",
        "_parted",
        "_pieces",
        "_shows_body",
        "begun",
        "body_is_whole",
        "buffered",
        "client_gone",
        "ended",
        "head",
        "is_dismissed",
        "keep_alive",
        "method",
        "more_lines",
        "path",
        "query",
        "wants_continue",
    )

    def __init__(self, carrier: Carrier, method: str, path: bytes, query: bytes, head: Head) -> None:
        self._carrier = carrier
        self.method = method
        self.path = path
        self.query = query
        self.head = head
        self.keep_alive = True
        self.more_lines = b""
        """Header lines that its answer has, whoever gives it."""
        self.wants_continue = False
        self._pieces: list[bytes] = []
        self.buffered = 0
        self.body_is_whole = False
        self._awaited: asyncio.Future[None] | None = None
        self._shows_body = True
        self._chunked = False
        self._parted: asyncio.Future[None] | None = None
        self.is_dismissed = False
        self.client_gone = False
        self.begun = False
        self.ended = False

    # The request, as it comes

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.buffered += len(piece)
        self._wake()

    def finish(self) -> None:
        self.body_is_whole = True
        self._wake()

    def lose(self) -> None:
        self.client_gone = True
        self._wake()
        self._part()

    def dismiss(self) -> None:
        """The server is about to leave: an answer that has no end of its own ends now."""
        self.is_dismissed = True
        self._part()

    @property
    def is_endless(self) -> bool:
        """Whether the answer goes on until one of the two sides has enough."""
        return self._parted is not None

    def _wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def _part(self) -> None:
        if self._parted is not None and not self._parted.done():
            self._parted.set_result(None)

    # For the routes

    async def read(self) -> bytes:
        """More of the body; empty at its end."""
        while not self._pieces and not self.body_is_whole:
            if self.client_gone:
                raise ClientGone
            self._carrier.read_on(self)
            self._awaited = asyncio.get_running_loop().create_future()
            await self._awaited
        pieces, self._pieces, self.buffered = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def peer(self) -> str:
        """The address at the other end of the connection, be it the client's or a proxy's."""
        transport = self._carrier.transport
        # A connection that is closed does not tell any more who was there.
        name = None if transport.is_closing() else transport.get_extra_info("peername")
        if name is None:
            raise ClientGone
        return str(name[0])

    def answer(self, status: int, lines: bytes, body: bytes) -> None:
        """All of it at once; ``lines`` are the header lines, each with its end."""
        start = self._start(status, lines)
        self._write(start + body if self._shows_body else start)
        self.end()

    async def parted(self) -> None:
        """Waits until there is nobody to send to: the client has gone, or the server is to leave."""
        if self._parted is None:
            self._parted = asyncio.get_running_loop().create_future()
        if self.client_gone or self.is_dismissed:
            return
        # Whoever gives up waiting does not end the wait of the others.
        await asyncio.shield(self._parted)

    def begin(self, status: int, lines: bytes, *, measured: bool = True) -> None:
        """Not measured: the length is not among the lines, for nobody knows it yet. The end is then told by
        the last chunk, or by the end of the connection where that is near anyway."""
        self._chunked = not measured and self.keep_alive and status not in _WITHOUT_BODY
        self._write(self._start(status, lines + _CHUNKED if self._chunked else lines))

    async def send(self, part: bytes | bytearray) -> None:
        """In slices, so that it shows whether a slow client still takes them."""
        for at in range(0, len(part) if self._shows_body else 0, _SLICE):
            await self._carrier.drained()
            if self.client_gone:
                raise ClientGone
            piece = bytes(part[at : at + _SLICE])
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)

    def end(self) -> None:
        if self._chunked and self._shows_body:
            self._write(_LAST_CHUNK)
        self.ended = True
        self._carrier.answered(self)

    def _start(self, status: int, lines: bytes) -> bytes:
        self.begun = True
        if self.wants_continue and not self.body_is_whole and not self.buffered:
            # Whether the body comes now is for the client to choose, and for nobody to know.
            self.keep_alive = False
        self._shows_body = self.method != "HEAD" and status not in _WITHOUT_BODY
        last_lines = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        return b"".join(
            (_STATUS_LINES[status], self._carrier.own_lines(), self.more_lines, lines, last_lines)
        )

    def _write(self, data: bytes | bytearray) -> None:
        # The loop minds a write to a connection that it knows to be lost.
        if not self._carrier.transport.is_closing():
            self._carrier.transport.write(data)
