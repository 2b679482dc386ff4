"""Cookies, and the headers of pages."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse, Response

from holdfast.web.request import Request

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_YEAR_SECONDS = 365 * 86_400


class Cookies(NamedTuple):
    """``__Host-`` names are kept to this host and to https, which browsers grant to loopback as well.

    Over plain http from elsewhere a browser would drop them, and nobody could sign in.
    """

    is_secure: bool
    is_https: bool = False
    """Whether people come over https."""

    @classmethod
    def for_address(cls, url: str | None) -> Cookies:
        parts = urlsplit(url or "http://localhost")
        is_https = parts.scheme == "https"
        return cls(is_https or parts.hostname in _LOOPBACK, is_https)

    def name(self, name: str) -> str:
        return f"__Host-{name}" if self.is_secure else name

    def read(self, request: Request, name: str) -> str | None:
        """Return the first cookie of that name; a browser sends the most specific one first."""
        prefix = self.name(name) + "="
        for part in cookie_parts(request):
            if part.startswith(prefix):
                return part[len(prefix) :].strip('"')
        return None

    def names(self, request: Request, prefix: str) -> list[str]:
        """Those that begin so, as ``read`` takes them; a browser sends the oldest first."""
        begins, host = self.name(prefix), self.name("")
        named = (part.partition("=")[0] for part in cookie_parts(request))
        return [name.removeprefix(host) for name in named if name.startswith(begins)]

    def set(self, response: Response, name: str, value: str, *, seconds: int | None = None) -> None:
        """Without ``seconds``: until the browser closes."""
        response.set_cookie(
            self.name(name),
            value,
            max_age=seconds,
            path="/",
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )

    def keep(self, response: Response, name: str, value: str) -> None:
        self.set(response, name, value, seconds=_YEAR_SECONDS)

    def drop(self, response: Response, name: str) -> None:
        self.set(response, name, "", seconds=0)


def cookie_parts(request: Request) -> list[str]:
    """Name and value of each; a browser may send several lines of them."""
    lines = [value.decode("latin-1") for name, value in request.scope["headers"] if name == b"cookie"]
    return [part.strip() for line in lines for part in line.split(";")]


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


def html_response(text: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(text, status, headers=PAGE_HEADERS)
