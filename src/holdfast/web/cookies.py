"""Cookies: their names, and how they are read and set."""

from __future__ import annotations

from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_YEAR_SECONDS = 365 * 86_400
_MAX_COOKIES = 1000
"""No browser keeps as many for one host."""


class Cookies(NamedTuple):
    """Browsers keep ``__Host-`` names to this host, and drop them over plain http unless it is loopback."""

    is_secure: bool

    @classmethod
    def for_address(cls, url: str | None) -> Cookies:
        parts = urlsplit(url or "http://localhost")
        return cls(parts.scheme == "https" or parts.hostname in _LOOPBACK)

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

    def set(
        self, response: Response, name: str, value: str, *, seconds: int | None = None, prefixed: bool = True
    ) -> None:
        """Without ``seconds``: until the browser closes."""
        key = self.name(name) if prefixed else name
        response.set_cookie(key, value, seconds, secure=self.is_secure, httponly=True, samesite="lax")

    def keep(self, response: Response, name: str, value: str) -> None:
        self.set(response, name, value, seconds=_YEAR_SECONDS)

    def drop(self, response: Response, name: str) -> None:
        self.set(response, name, "", seconds=0)


def cookie_parts(request: Request) -> list[str]:
    """Name and value of each; a browser may send several lines of them. Those beyond a limit are ignored."""
    state: dict[str, Any] = request.scope["state"]
    if "cookies" not in state:
        lines = b";".join(value for name, value in request.scope["headers"] if name == b"cookie")
        parts = lines.decode("latin-1").split(";", _MAX_COOKIES)[:_MAX_COOKIES]
        state["cookies"] = [part.strip() for part in parts]
    return cast("list[str]", state["cookies"])
