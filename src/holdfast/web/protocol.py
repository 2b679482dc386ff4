"""uvicorn's HTTP protocol, with our answer to what is not HTTP."""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.web.problems import MEDIA_TYPE, problem_document
from holdfast.web.refusals import MalformedRequest
from holdfast.web.request_ids import new_request_id
from holdfast.web.wire import encode

LARGEST_HEAD = 64 * 1024
LARGEST_FRAMING = 1024**2

_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)

_ANSWER = (
    "HTTP/1.1 400 Bad Request\r\n"
    "content-type: {media_type}\r\n"
    "content-length: {length}\r\n"
    "x-request-id: {request_id}\r\n"
    "connection: close\r\n\r\n"
)


class JoinedWrites:
    """A transport that sends what one turn of the event loop has written with one system call.

    uvicorn writes the head and the body of an answer one after the other, and a system call is the
    dearest part of a small answer.
    """

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    _head_size: int | None = None
    """Bytes received of a head that is not complete; None outside of a head."""
    _framing_size = 0
    """Bytes of a message that were neither head nor body: chunk sizes and trailers."""
    _at_start = True
    """Whether the next byte is the first one of a message."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))

    def data_received(self, data: bytes) -> None:
        if self._at_start and b"pgrade:" in data:
            data = _without_upgrade(data)
        in_head = self._head_size is not None
        in_body = not in_head and not self._at_start
        self._framing_size += len(data) if in_body else 0
        super().data_received(data)
        if in_head and self._head_size is not None:
            self._head_size += len(data)
        if (self._head_size or 0) > LARGEST_HEAD or self._framing_size > LARGEST_FRAMING:
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._at_start = False
        self._head_size = self._framing_size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers come here too; nobody asks for them, so they are not kept."""
        if self._head_size is not None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_size = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._framing_size -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._at_start = True
        self._framing_size = 0
        super().on_message_complete()

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """What is no request never reaches the application; its sender gets a problem all the same."""
        request_id = new_request_id()
        body = encode(problem_document(MalformedRequest(), request_id))
        head = _ANSWER.format(media_type=MEDIA_TYPE, length=len(body), request_id=request_id)
        self.transport.write(head.encode() + body)
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """The head without its offer to speak another protocol, which a server is free to pass over.

    Java's own client makes that offer with every request. The parser would take what follows for the
    other protocol, and the body would be lost.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + rest
