"""A JSON answer, with no more work than its bytes need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from holdfast.web.call import JSON, Call
from holdfast.web.wire import encode

Header = tuple[bytes, bytes]

NOT_KEPT: Header = (b"cache-control", b"no-store")
"""For answers that are nobody else's business."""

_JSON = JSON.encode()
_SHORT = 256 * 1024
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

    @property
    def is_short(self) -> bool:
        """Whether it can be sent at once: one that is taken slowly is sent piece by piece."""
        return len(self._parts) == 1 and len(self._parts[0]) <= _SHORT

    def send_whole(self, call: Call) -> None:
        body = bytes(self._parts[0])
        call.exchange.answer(self.status_code, self._lines(call, len(body)), body)

    async def send_parts(self, call: Call) -> None:
        call.exchange.begin(self.status_code, self._lines(call, sum(map(len, self._parts))))
        for part in self._parts:
            await call.exchange.send(part)
        call.exchange.end()

    def _lines(self, call: Call, length: int) -> bytes:
        lines = _LINES % (self._media_type, length, call.request_id.encode())
        for header in self._headers:
            lines += b"%b: %b\r\n" % header
        return lines
