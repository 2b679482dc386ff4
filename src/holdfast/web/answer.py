"""A JSON answer, with no more work than its bytes need."""

from __future__ import annotations

from typing import Any

from starlette.types import Receive, Scope, Send

from holdfast.web.wire import encode

Header = tuple[bytes, bytes]

_CONTENT_TYPE: Header = (b"content-type", b"application/json")


class JsonAnswer:
    __slots__ = ("_body", "_headers", "_status")

    def __init__(self, document: Any, status: int = 200, *headers: Header) -> None:
        """``document``: what is to be encoded, or bytes that are JSON already."""
        self._body = document if isinstance(document, bytes) else encode(document)
        self._status = status
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", b"%d" % len(self._body))
        headers = [_CONTENT_TYPE, length, *self._headers]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})
