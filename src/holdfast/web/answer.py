"""A JSON answer, with no more work than its bytes need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from holdfast.web.call import JSON, Call
from holdfast.web.wire import encode

Header = tuple[bytes, bytes]

_JSON = JSON.encode()
_LINES = b"content-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n"


class JsonAnswer:
    __slots__ = ("_headers", "_media_type", "_parts", "status_code")

    def __init__(self, document: Any, status: int = 200, *headers: Header, media_type: bytes = _JSON) -> None:
        self._parts: Sequence[bytes | bytearray] = (encode(document),)
        self._headers = headers
        self._media_type = media_type
        self.status_code = status

    @classmethod
    def of_parts(cls, parts: Sequence[bytes | bytearray]) -> Self:
        """Parts that are JSON together."""
        answer = cls(None)
        answer._parts = parts
        return answer

    async def send(self, call: Call) -> None:
        length = sum(map(len, self._parts))
        lines = _LINES % (self._media_type, length, call.request_id.encode())
        for header in self._headers:
            lines += b"%b: %b\r\n" % header
        if len(self._parts) == 1:
            call.exchange.answer(self.status_code, lines, bytes(self._parts[0]))
            return
        call.exchange.begin(self.status_code, lines)
        for part in self._parts:
            await call.exchange.send(part)
        call.exchange.end()
