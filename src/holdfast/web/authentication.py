"""Who calls: a key in the Authorization header, and nowhere else."""

from __future__ import annotations

from holdfast.domain.access import Key, Scope, is_well_formed
from holdfast.domain.permissions import OF_SCOPE, Permission, scope_for
from holdfast.domain.refusals import KeyRefused, NoCredentials, ScopeMissing
from holdfast.operations.key_ring import KeyRing
from holdfast.web.call import Call
from holdfast.web.rate_limit import RateLimit
from holdfast.web.refusals import TwoCredentials

_QUERY_NAMES = frozenset({"key", "api_key", "apikey", "api-key", "access_token", "token", "authorization"})


class KeyGuard:
    """Lets calls with a key of the permission pass; what lies behind is not told to others."""

    def __init__(self, key_ring: KeyRing, rate_limit: RateLimit, permission: Permission) -> None:
        self._key_ring = key_ring
        self._rate_limit = rate_limit
        self._permission = permission
        # Worked out once: every call asks.
        self._opening = frozenset(scope for scope in Scope if permission in OF_SCOPE[scope])

    async def __call__(self, call: Call) -> None:
        _refuse_key_in_query(call)
        token = bearer_token(call)
        if token is None:
            raise NoCredentials
        call.known_key = key = self._key_ring.remembered(token) or await self._key_ring.find(token)
        if self._opening.isdisjoint(key.scopes):
            raise ScopeMissing(scope_for(self._permission))
        self._rate_limit.take(key.id)


def key_may(key: Key, permission: Permission) -> bool:
    return any(permission in OF_SCOPE[scope] for scope in key.scopes)


def bearer_token(call: Call) -> str | None:
    """The one token of the call, if it has any; what it opens is for others to say."""
    if len(call.tokens) > 1:
        raise TwoCredentials
    return call.tokens[0] if call.tokens else None


def _refuse_key_in_query(call: Call) -> None:
    """A key in an address ends up in logs and histories, so it opens nothing."""
    if not call.has_query:
        return
    for name, value in call.query_items():
        if name.lower() in _QUERY_NAMES or is_well_formed(value):
            raise KeyRefused(
                "A key in the query string is not accepted; send it in the Authorization header."
            )
