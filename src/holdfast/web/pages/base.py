"""The parts that all pages share: headers, and pages that anybody may read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.web.errors import MethodNotAllowed
from holdfast.web.request import Request

# Pictures of units are where their developer keeps them; forms go to ourselves.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action {}; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": _POLICY.format("'self'"),
    "Cache-Control": "no-store",
    # Not `no-referrer`: with it a form's Origin is `null`, and could not be told from a stranger's.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}


def headers_with(form_target: str) -> dict[str, str]:
    """Return headers for pages whose forms may redirect to one other site, which browsers check, too."""
    return {**PAGE_HEADERS, "Content-Security-Policy": _POLICY.format(f"'self' {form_target}")}


class PublicPage:
    """The application at a path that anybody may read, and nobody may change."""

    def __init__(self, path: str, show: Callable[[Request], Awaitable[Response]]) -> None:
        self.path = path
        self._show = show

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        scope["state"]["route"] = self.path
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(request.method, ("GET", "HEAD"))
        request.check_query()
        response = await self._show(request)
        await response(scope, receive, send)
