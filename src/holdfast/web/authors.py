"""Who a change is put down to."""

from __future__ import annotations

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Caller
from holdfast.web.authentication import key_may
from holdfast.web.call import Call


def author_of(call: Call) -> Author:
    """For routes behind a key."""
    return Author(ActorKind.KEY, str(call.key.id), call.request_id)


def caller_of(call: Call) -> Caller:
    """What the status table calls the holder of this key in the back office."""
    if key_may(call.key, Permission.REVOKE_SALE):
        return Caller.ADMIN
    return Caller.STAFF if key_may(call.key, Permission.SELL) else Caller.PAYMENT_SYSTEM
