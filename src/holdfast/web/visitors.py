"""The visitor who asks for a hold, and the Idempotency-Key, as the headers of the request have them."""

from __future__ import annotations

import re
from uuid import UUID, uuid5

from holdfast.domain.errors import Fault, raise_faults
from holdfast.operations.bookings import Requester
from holdfast.web.cookies import cookie_parts
from holdfast.web.errors import ForeignSite
from holdfast.web.request import Request

VISITOR_COOKIE = "holdfast_visitor"

_VISITOR = re.compile(r"[A-Za-z0-9_.~-]{8,128}")
SHORTEST_KEY, LONGEST_KEY = 16, 255
_KEY = re.compile(f"[ -~]{{{SHORTEST_KEY},{LONGEST_KEY}}}")
IDEMPOTENCY_KEY = "Idempotency-Key"
_KEY_POINTER = f"/header/{IDEMPOTENCY_KEY}"


def read_idempotency_key(request: Request, faults: list[Fault]) -> str | None:
    keys = [value for name, value in request.scope["headers"] if name == b"idempotency-key"]
    key = keys[0].decode("latin-1").strip() if keys else None
    if len(keys) > 1:
        faults.append(Fault(_KEY_POINTER, "This header is given twice."))
    elif key is not None and not _KEY.fullmatch(key):
        message = f"This must be {SHORTEST_KEY} to {LONGEST_KEY} printable ASCII characters."
        faults.append(Fault(_KEY_POINTER, message))
    return key


def idempotent_id(request: Request) -> UUID | None:
    """Return the id of what a request with an Idempotency-Key makes: the same for each repetition."""
    faults: list[Fault] = []
    key = read_idempotency_key(request, faults)
    raise_faults(faults)
    return None if key is None else uuid5(request.key.id, f"{request.path}\n{key}")


def requester_of(
    request: Request, visitor: str | None, idempotency_key: str | None = None, secret: str | None = None
) -> Requester:
    return Requester(request.client_address.text, visitor, idempotency_key, secret)


def read_visitor_cookie(request: Request) -> str | None:
    """Return the cookie by which live holds are counted; alone it gives access to nothing."""
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
