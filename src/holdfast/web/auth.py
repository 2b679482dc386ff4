"""Who may call a route: the holder of a key, of a booking's token, or anybody within a rate limit."""

from __future__ import annotations

from typing import Protocol

from holdfast.domain.api_key import Key, is_well_formed
from holdfast.domain.errors import InvalidApiKey, NoCredentials, ScopeMissing, TooManyRequests, UnknownProject
from holdfast.domain.permissions import SCOPE_PERMISSIONS, Permission, scopes_for
from holdfast.domain.status import Caller
from holdfast.web.request import Request

ADDRESS_OVER_LIMIT = "This address has sent more requests than its limit allows."

_QUERY_NAMES = frozenset({"key", "api_key", "apikey", "api-key", "access_token", "token", "authorization"})
_SEND_THE_TOKEN = "Send the token that came with the hold as `Authorization: Bearer <token>`."  # noqa: S105


class Guard(Protocol):
    """Refuses those who may not call; knows nothing of the body yet."""

    @property
    def schemes(self) -> tuple[str | None, ...]:
        """The security schemes of the OpenAPI document that open it; None: no credentials do, too."""

    @property
    def permission(self) -> Permission | None:
        """The permission that it asks of a key; None: no key is needed."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """How it refuses."""

    async def __call__(self, request: Request) -> None: ...


class KeyGuard:
    """A key of a scope that includes the permission. Whether a path exists is not told to others."""

    schemes = ("apiKey",)
    errors = (NoCredentials, InvalidApiKey, ScopeMissing, TooManyRequests)

    def __init__(self, permission: Permission) -> None:
        self.permission = permission
        # Worked out once: every request asks.
        self._scopes = scopes_for(permission)

    async def __call__(self, request: Request) -> None:
        if request.raw_query:
            _refuse_key_in_query(request)
        token = request.bearer_token()
        if token is None:
            raise NoCredentials
        context = request.context
        api_key_cache = context.services.api_key_cache
        key = api_key_cache.remembered(token) or await api_key_cache.find(token)
        request.scope["state"]["key"] = key
        if key.scopes.isdisjoint(self._scopes):
            raise ScopeMissing(self._scopes[0])
        context.rate_limit.take(key.id)


class PublicGuard:
    """Anybody, but not too often. Loopback has no limit: a proxy there is trusted, and its clients count."""

    schemes: tuple[str | None, ...] = ()
    permission = None
    errors: tuple[type[Exception], ...] = (TooManyRequests,)

    async def __call__(self, request: Request) -> None:
        # Whether or not the route asks for a token: two are one too many.
        request.bearer_token()
        limit = request.context.public_rate_limit
        if not limit.is_off and not request.client_address.address.is_loopback:
            limit.take(request.client_address.counted_as, ADDRESS_OVER_LIMIT)


class BookingTokenGuard(PublicGuard):
    """A token; whether it opens anything is told when the booking is known."""

    schemes = ("bookingToken",)
    errors = (NoCredentials, TooManyRequests)

    async def __call__(self, request: Request) -> None:
        await super().__call__(request)
        if request.bearer_token() is None:
            raise NoCredentials(_SEND_THE_TOKEN)


class OptionalTokenGuard(PublicGuard):
    """Anybody; the token of one's own hold is taken, too."""

    schemes = (None, "bookingToken")


PUBLIC = PublicGuard()
OPTIONAL_TOKEN = OptionalTokenGuard()
BOOKING_TOKEN = BookingTokenGuard()


def key_may(key: Key, permission: Permission) -> bool:
    return any(permission in SCOPE_PERMISSIONS[scope] for scope in key.scopes)


def caller_of(request: Request) -> Caller:
    """What the status table calls the holder of this key in the back office."""
    if key_may(request.key, Permission.REVOKE_SALE):
        return Caller.ADMIN
    return Caller.STAFF if key_may(request.key, Permission.SELL) else Caller.PAYMENT_SYSTEM


def refuse_other_projects(request: Request, slug: str) -> None:
    """A key that is limited to projects learns nothing of the others."""
    if not request.key.may_use(slug):
        raise UnknownProject(slug)


def _refuse_key_in_query(request: Request) -> None:
    """A key in an address ends up in logs and histories, so it opens nothing."""
    if request.has_too_many_parameters:
        return
    for name, value in request.query_items():
        if name.lower() in _QUERY_NAMES or is_well_formed(value):
            raise InvalidApiKey(
                "A key in the query string is not accepted; send it in the Authorization header."
            )
