"""How our things are written in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.domain.spelling import camel_case as camel_case
from holdfast.web import strict_json
from holdfast.web.request import BODY_LIMIT, JSON, Request

_ENCODER = msgspec.json.Encoder(decimal_format="number")

encode = _ENCODER.encode


def time_text(moment: datetime) -> str:
    """Return the text of ``domain.spelling.format_timestamp``, in a quarter of its time."""
    text = encode(moment).decode()
    # The encoder writes microseconds if there are any: "2026-11-14T09:30:00.123000Z", quotes included.
    return f"{text[1:24]}Z" if moment.microsecond else f"{text[1:20]}.000Z"


def optional_time_text(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment)


# JSON responses and bodies.

Header = tuple[bytes, bytes]

NO_STORE: Header = (b"cache-control", b"no-store")
"""For responses that nobody may keep."""

_SLICE = 256 * 1024
_DECLARES_A_BODY = (b"content-type", b"content-encoding")


class JsonResponse(Response):
    """A response whose header lines are written as bytes: this is on the path of every API request."""

    def __init__(
        self, document: Any, status: int = 200, headers: Iterable[Header] = (), media_type: str = JSON
    ) -> None:
        self.status_code = status
        self.background = None
        self.body = encode(document)
        self.raw_headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            *headers,
        ]


class JsonPartsResponse(Response):
    """Parts that are JSON together, sent in slices: they may be many megabytes and are not copied."""

    def __init__(self, parts: Sequence[bytes | bytearray]) -> None:
        super().__init__(media_type=JSON, headers={"content-length": str(sum(map(len, parts)))})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        for part in self._parts:
            for at in range(0, len(part), _SLICE):
                piece = bytes(part[at : at + _SLICE])
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def read_json_text(request: Request, limit: int = BODY_LIMIT) -> str:
    request.require_media_type()
    return strict_json.text_of(await request.read_body(limit))


async def read_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    return strict_json.parse(await read_json_text(request, limit))


async def read_optional_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    """Return an empty object if no body was sent, which needs no media type; a wrong one is refused."""
    if any(name in request.header_values for name in _DECLARES_A_BODY):
        request.require_media_type()
    body = await request.read_body(limit)
    if not body:
        return {}
    request.require_media_type()
    return strict_json.parse(strict_json.text_of(body))
