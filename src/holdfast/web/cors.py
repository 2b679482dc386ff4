"""Pages of other sites that call the API from a browser (CORS): of sites that are named, never with cookies.

An answer is shown to a page by the header line that names its origin. Nothing here lets a page send cookies,
and pages of the back office are nobody's to read.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from holdfast.web.call import Call
from holdfast.web.http.connection import Application
from holdfast.web.http.exchange import Exchange

_EXPOSED = b"ETag, Retry-After, X-Request-Id"
_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id"
    ),
    "Access-Control-Max-Age": "7200",
}
# An answer depends on who asks: one that is kept must not be shown to another site.
_VARY = b"vary: Origin\r\n"


class SharedWith:
    """The application, with the lines that show its answers to these origins."""

    def __init__(self, application: Application, origins: Sequence[str]) -> None:
        self._application = application
        self._lines = {origin.encode(): _lines(origin.encode()) for origin in origins}

    async def __call__(self, exchange: Exchange) -> None:
        if _is_shared(exchange.path):
            origin = exchange.head.values.get(b"origin", b"")
            exchange.more_lines = self._lines.get(origin, _VARY)
        await self._application(exchange)


class Preflight:
    """What a browser asks before it sends a request of another site; there is no key in it yet."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def takes(self, call: Call) -> bool:
        head = call.exchange.head.values
        return (
            call.method == "OPTIONS"
            and b"access-control-request-method" in head
            and head.get(b"origin") in self._origins
            and _is_shared(call.exchange.path)
        )

    async def answer(self, call: Call) -> Response:
        call.route = "preflight"
        return Response(status_code=204, headers=_ALLOWED)


def _is_shared(path: bytes) -> bool:
    return path.startswith(b"/v1/") or path == b"/openapi.json"


def _lines(origin: bytes) -> bytes:
    shown = b"access-control-allow-origin: %b\r\naccess-control-expose-headers: %b\r\n"
    return shown % (origin, _EXPOSED) + _VARY
