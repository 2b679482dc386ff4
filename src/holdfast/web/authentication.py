"""Who calls: a key in the Authorization header, and nowhere else."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.domain.access import PREFIX
from holdfast.domain.access import Scope as KeyScope
from holdfast.domain.refusals import KeyRefused, NoCredentials, ScopeMissing
from holdfast.operations.key_ring import KeyRing
from holdfast.web.call import Call
from holdfast.web.rate_limit import RateLimit
from holdfast.web.refusals import TwoCredentials
from holdfast.web.routing import CALL

_QUERY_NAMES = frozenset({"key", "api_key", "apikey", "api-key", "access_token", "token", "authorization"})


class Authenticated:
    """Everything behind it is for keys with the scope; what lies there is not told to others."""

    def __init__(self, app: ASGIApp, key_ring: KeyRing, scope: KeyScope, rate_limit: RateLimit) -> None:
        self._app = app
        self._key_ring = key_ring
        self._scope = scope
        self._rate_limit = rate_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        _refuse_key_in_query(call)
        call.known_key = key = await self._key_ring.find(_bearer_token(call))
        if self._scope not in key.scopes:
            raise ScopeMissing(self._scope)
        self._rate_limit.take(key.id)
        await self._app(scope, receive, send)


def _bearer_token(call: Call) -> str:
    values = call.header_values(b"authorization")
    if len(values) > 1:
        raise TwoCredentials
    scheme, _, token = values[0].partition(" ") if values else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise NoCredentials
    return token.strip()


def _refuse_key_in_query(call: Call) -> None:
    """A key in an address ends up in logs and histories, so it opens nothing."""
    for name, value in call.query_items():
        if name.lower() in _QUERY_NAMES or value.startswith(PREFIX):
            raise KeyRefused(
                "A key in the query string is not accepted; send it in the Authorization header."
            )
