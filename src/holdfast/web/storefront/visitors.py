"""Who asks for a hold, as far as HTTP tells."""

from __future__ import annotations

import re

from holdfast.domain.refusals import Fault
from holdfast.operations.selling import Requester
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses

VISITOR_COOKIE = "holdfast_visitor"

_COOKIE = re.compile(rf"(?:^|;)\s*{VISITOR_COOKIE}=\"?([A-Za-z0-9_.~-]{{8,128}})\"?\s*(?:;|$)")
_KEY_LENGTH = 255
_KEY_HEADER = "/header/Idempotency-Key"


def requester_of(call: Call, addresses: ClientAddresses, faults: list[Fault]) -> Requester:
    return Requester(addresses.find(call).counted_as, visitor_of(call), _idempotency_key(call, faults))


def visitor_of(call: Call) -> str | None:
    """A cookie that our pages did not make counts as none."""
    value = call.exchange.head.values.get(b"cookie")
    found = None if value is None else _COOKIE.search(value.decode("latin-1"))
    return None if found is None else found[1]


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
