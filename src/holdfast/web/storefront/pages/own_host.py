"""The host that a buyer stays with: this machine has several names, and cookies are kept for each apart."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import urlsplit

from holdfast.web.request import Request

_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SAFE = frozenset({"GET", "HEAD"})
_HAS_PORT = re.compile(r":\d+$")


def address_at_home(request: Request, public_url: str) -> str | None:
    """Where the page is under the public address; None if the buyer is there, or is to stay where they are.

    Only between names of this machine, and at the same port: whatever else comes here by another name does so
    through a proxy, which knows better.
    """
    asked_at = request.header_values.get(b"host", b"").decode("latin-1").lower()
    if asked_at not in _other_names(public_url) or not _is_opened(request):
        return None
    return f"{public_url}{request.path}"


@cache
def _other_names(public_url: str) -> frozenset[str]:
    """By which the same machine is asked, if it is this one."""
    home = urlsplit(public_url).netloc.lower()
    name, colon, port = home.rpartition(":") if _HAS_PORT.search(home) else (home, "", "")
    if name not in _OWN_NAMES:
        return frozenset()
    return frozenset(f"{own}{colon}{port}" for own in _OWN_NAMES - {name})


def _is_opened(request: Request) -> bool:
    """By somebody, as a page; not by a script as a part of one, or to be told what changes. Nor through a
    proxy that has put its own name for us in place of the one that it was asked at."""
    head = request.header_values
    is_opened = head.get(b"sec-fetch-mode", b"navigate") == b"navigate" and b"hx-request" not in head
    is_forwarded = b"x-forwarded-host" in head or b"forwarded" in head
    is_stream = b"event-stream" in head.get(b"accept", b"")
    return request.method in _SAFE and is_opened and not is_stream and not is_forwarded
