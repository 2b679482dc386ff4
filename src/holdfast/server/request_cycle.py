"""The plain responses that the server gives itself, before a request reaches the application."""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from random import getrandbits
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_HEADERS = (
    b"content-type: text/plain\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"x-request-id: %032x\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n"
)


def plain_response(status: int, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a whole response, after which the connection is closed."""
    text = HTTPStatus(status).phrase.encode()
    lines = b"".join(b"%b: %b\r\n" % header for header in default_headers)
    head = b"HTTP/1.1 %d %b\r\n" % (status, text) + lines + _HEADERS % (getrandbits(128), len(text))
    return head + b"\r\n" + text


# uvicorn's cycle of a request and its response, with two differences.

_HAS_LENGTH = b"\r\ncontent-length: "


class RequestCycle(RequestResponseCycle):
    """A request that came in whole counts, though its client has gone since."""

    is_handed_over = False

    async def receive(self) -> Any:
        message = await super().receive()
        if self.more_body or self.is_handed_over:
            return message
        self.is_handed_over = True
        if message["type"] == "http.disconnect" and not self.response_complete:
            return {"type": "http.request", "body": bytes(self.body), "more_body": False}
        return message


class ResponseTransport(asyncio.Transport):
    """Sends the head of a response together with the beginning of its body: uvloop writes at once."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport, method: str) -> None:
        self._transport = transport
        # None: has yet to come. Empty: is sent, or need not wait, for no body follows.
        self._head: bytes | None = b"" if method == "HEAD" else None

    def write(self, data: Any) -> None:
        if self._head is None and data[:5] == b"HTTP/" and _HAS_LENGTH in data:
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


def extend_cycle(cycle: RequestResponseCycle) -> None:
    """Give a cycle these differences, before its task begins: uvicorn names the class of its cycles."""
    cycle.__class__ = RequestCycle
    cycle.transport = ResponseTransport(cycle.transport, cycle.scope["method"])
