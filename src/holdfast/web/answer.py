"""A JSON answer, with no more work than its bytes need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from starlette.types import Receive, Scope, Send

from holdfast.web.wire import encode

Header = tuple[bytes, bytes]

_CONTENT_TYPE: Header = (b"content-type", b"application/json")


class JsonAnswer:
    __slots__ = ("_headers", "_parts", "_status")

    def __init__(self, document: Any, status: int = 200, *headers: Header) -> None:
        self._parts: Sequence[bytes | bytearray] = (encode(document),)
        self._status = status
        self._headers = headers

    @classmethod
    def of_parts(cls, parts: Sequence[bytes | bytearray]) -> Self:
        """Parts that are JSON together."""
        answer = cls(None)
        answer._parts = parts
        return answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", b"%d" % sum(map(len, self._parts)))
        headers = [_CONTENT_TYPE, length, *self._headers]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        *first, last = self._parts
        for part in first:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": last})
