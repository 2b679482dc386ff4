"""Who a change is put down to."""

from __future__ import annotations

from holdfast.domain.access import Scope
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.status import Caller
from holdfast.web.call import Call


def author_of(call: Call) -> Author:
    """For routes behind a key."""
    return Author(ActorKind.KEY, str(call.key.id), call.request_id)


def caller_of(call: Call) -> Caller:
    """What the status table calls the holder of this key in the back office."""
    scopes = call.key.scopes
    if Scope.ADMIN in scopes:
        return Caller.ADMIN
    return Caller.STAFF if Scope.BACKOFFICE in scopes else Caller.PAYMENT_SYSTEM
