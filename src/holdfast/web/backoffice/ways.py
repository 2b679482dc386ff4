"""Where whoever asks is sent instead."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from starlette.responses import RedirectResponse, Response

from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.html.guarded import HEADERS
from holdfast.web.html.live import EVENT_STREAM, event

SAFE = frozenset({"GET", "HEAD"})


def local_path(path: str) -> str:
    """Where to go on to, if it is one of our pages."""
    is_ours = path.startswith(PREFIX) and "\\" not in path
    return path if is_ours and path.isprintable() else PREFIX


def without_slash(visit: Visit) -> Response:
    """There is no page whose path ends in a slash, but people type one."""
    path, query = visit.address.partition("?")[::2]
    address = path.rstrip("/") + (f"?{query}" if query else "")
    return RedirectResponse(address, 308, headers=HEADERS)


def to_sign_in(visit: Visit) -> Response:
    """Only what can be asked for again is gone back to. A script would follow a redirection unseen, and take
    the sign-in for what it has asked for: it is told in its own way."""
    if visit.is_stream:
        return Response(event("ended", b"{}"), headers={**HEADERS, "Content-Type": EVENT_STREAM})
    back = visit.address if visit.request.method in SAFE else PREFIX
    if visit.is_fragment:
        back = _page_of_script(visit)
    address = f"{PREFIX}/sign-in" + ("" if back == PREFIX else f"?next={quote(back, safe='')}")
    if visit.is_fragment:
        return Response(status_code=204, headers={**HEADERS, "HX-Redirect": address})
    return RedirectResponse(address, 303, headers=HEADERS)


def _page_of_script(visit: Visit) -> str:
    """The page on which the script runs, not the part of it that it asks for."""
    told = visit.request.header_values.get(b"hx-current-url", b"").decode("latin-1")
    try:
        page = urlsplit(told)
    except ValueError:
        return PREFIX
    return local_path(f"{page.path}?{page.query}" if page.query else page.path)
