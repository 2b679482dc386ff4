"""Who calls: a key in the Authorization header, and nowhere else."""

from __future__ import annotations

from holdfast.domain.access import Scope, is_well_formed
from holdfast.domain.refusals import KeyRefused, NoCredentials, ScopeMissing
from holdfast.operations.key_ring import KeyRing
from holdfast.web.call import Call
from holdfast.web.rate_limit import RateLimit
from holdfast.web.refusals import TwoCredentials

_QUERY_NAMES = frozenset({"key", "api_key", "apikey", "api-key", "access_token", "token", "authorization"})


class KeyGuard:
    """Lets calls with a key of the scope pass; what lies behind is not told to others."""

    def __init__(self, key_ring: KeyRing, scope: Scope, rate_limit: RateLimit) -> None:
        self._key_ring = key_ring
        self._scope = scope
        self._rate_limit = rate_limit

    async def __call__(self, call: Call) -> None:
        _refuse_key_in_query(call)
        token = _bearer_token(call)
        call.known_key = key = self._key_ring.remembered(token) or await self._key_ring.find(token)
        if self._scope not in key.scopes:
            raise ScopeMissing(self._scope)
        self._rate_limit.take(key.id)


def _bearer_token(call: Call) -> str:
    if len(call.tokens) > 1:
        raise TwoCredentials
    token = call.tokens[0] if call.tokens else None
    if token is None:
        raise NoCredentials
    return token


def _refuse_key_in_query(call: Call) -> None:
    """A key in an address ends up in logs and histories, so it opens nothing."""
    if not call.has_query:
        return
    for name, value in call.query_items():
        if name.lower() in _QUERY_NAMES or is_well_formed(value):
            raise KeyRefused(
                "A key in the query string is not accepted; send it in the Authorization header."
            )
