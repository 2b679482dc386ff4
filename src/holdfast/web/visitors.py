"""The visitor who asks for a hold, as the headers of the request identify them."""

from __future__ import annotations

import re

from holdfast.domain.errors import Fault
from holdfast.operations.bookings import Requester
from holdfast.web.cookies import cookie_parts
from holdfast.web.errors import ForeignSite
from holdfast.web.request import Request

VISITOR_COOKIE = "holdfast_visitor"

_VISITOR = re.compile(r"[A-Za-z0-9_.~-]{8,128}")
_KEY_LENGTH = 255
_KEY_HEADER = "/header/Idempotency-Key"


def parse_requester(request: Request, faults: list[Fault]) -> Requester:
    keys = [value for name, value in request.scope["headers"] if name == b"idempotency-key"]
    key = keys[0].decode("latin-1").strip() if keys else None
    if len(keys) > 1:
        faults.append(Fault(_KEY_HEADER, "This header is given twice."))
    elif key is not None and not (0 < len(key) <= _KEY_LENGTH and key.isascii() and key.isprintable()):
        faults.append(Fault(_KEY_HEADER, f"This must be 1 to {_KEY_LENGTH} printable ASCII characters."))
    return Requester(request.client_address.counted_as, read_visitor_cookie(request), key)


def read_visitor_cookie(request: Request) -> str | None:
    """Return the cookie by which live holds are counted; it gives access to nothing."""
    # Any host beside ours may set it too: a value that cannot be one of ours is ignored.
    cookies = (part.partition("=") for part in cookie_parts(request))
    values = (value.strip('"') for name, _, value in cookies if name == VISITOR_COOKIE)
    return next(filter(_VISITOR.fullmatch, values), None)


def reject_other_sites(request: Request) -> None:
    """Browsers send a request without a body for any site, without a preflight."""
    if request.header_values.get(b"sec-fetch-site") != b"cross-site":
        return
    if request.header(b"origin") not in request.context.cors_origins:
        raise ForeignSite
