"""Who asks for a hold, as far as HTTP tells."""

from __future__ import annotations

import re
from collections.abc import Collection

from holdfast.domain.refusals import Fault
from holdfast.operations.selling import Requester
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.html.cookies import cookie_parts
from holdfast.web.refusals import ForeignSite

VISITOR_COOKIE = "holdfast_visitor"

_VISITOR = re.compile(r"[A-Za-z0-9_.~-]{8,128}")
_KEY_LENGTH = 255
_KEY_HEADER = "/header/Idempotency-Key"


def requester_of(call: Call, addresses: ClientAddresses, faults: list[Fault]) -> Requester:
    return Requester(addresses.find(call).counted_as, visitor_of(call), _idempotency_key(call, faults))


def visitor_of(call: Call) -> str | None:
    """By which live holds are counted, and nothing is opened.

    The name is plain, since shops of other makers may set the cookie too; so may any host beside ours. What
    cannot be one of ours by its form counts as none.
    """
    named = (part.partition("=") for part in cookie_parts(call))
    values = (value.strip('"') for name, _, value in named if name == VISITOR_COOKIE)
    return next(filter(_VISITOR.fullmatch, values), None)


def refuse_other_sites(call: Call, origins: Collection[str]) -> None:
    """A browser asks nobody before it sends a request without a body, whatever site has it do so."""
    head = call.exchange.head.values
    if head.get(b"sec-fetch-site") != b"cross-site":
        return
    if head.get(b"origin", b"").decode("latin-1") not in origins:
        raise ForeignSite


def _idempotency_key(call: Call, faults: list[Fault]) -> str | None:
    values = [value for name, value in call.exchange.head.lines if name == b"idempotency-key"]
    if not values:
        return None
    key = values[0].decode("latin-1").strip()
    if len(values) > 1:
        faults.append(Fault(_KEY_HEADER, "This header stands twice."))
    elif not (0 < len(key) <= _KEY_LENGTH and key.isascii() and key.isprintable()):
        faults.append(Fault(_KEY_HEADER, f"This must be 1 to {_KEY_LENGTH} printable ASCII characters."))
    return key
