"""Who asks for a hold, as far as HTTP tells."""

from __future__ import annotations

import re

from holdfast.domain.refusals import Fault
from holdfast.operations.selling import Requester
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses, counted_as

VISITOR_COOKIE = "holdfast_visitor"

_COOKIE = re.compile(rf"(?:^|;)\s*{VISITOR_COOKIE}=\"?([\w.~-]{{8,128}})\"?\s*(?:;|$)")
_KEY_LENGTH = 255


def requester_of(call: Call, addresses: ClientAddresses, faults: list[Fault]) -> Requester:
    return Requester(counted_as(addresses.find(call)), _visitor(call), _idempotency_key(call, faults))


def _visitor(call: Call) -> str | None:
    """A cookie that our pages did not make counts as none."""
    value = call.exchange.head.values.get(b"cookie")
    found = None if value is None else _COOKIE.search(value.decode("latin-1"))
    return None if found is None else found[1]


def _idempotency_key(call: Call, faults: list[Fault]) -> str | None:
    value = call.exchange.head.values.get(b"idempotency-key")
    if value is None:
        return None
    key = value.decode("latin-1").strip()
    if not (0 < len(key) <= _KEY_LENGTH and key.isascii() and key.isprintable()):
        message = f"This must be 1 to {_KEY_LENGTH} printable ASCII characters."
        faults.append(Fault("/header/Idempotency-Key", message))
    return key
