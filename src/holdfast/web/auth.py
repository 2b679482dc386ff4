"""Authentication and rate limits: keys, tokens of bookings, and the public."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hmac import compare_digest

from holdfast.domain.api_key import Key, is_well_formed
from holdfast.domain.errors import InvalidApiKey, NoCredentials, ScopeMissing, TooManyRequests, UnknownProject
from holdfast.domain.permissions import SCOPE_PERMISSIONS, Permission, scopes_for
from holdfast.domain.transitions import Caller
from holdfast.web.request import Request

ADDRESS_OVER_LIMIT = "This address has sent more requests than its limit allows."

_QUERY_NAMES = frozenset({"key", "api_key", "apikey", "api-key", "access_token", "token", "authorization"})
_SEND_THE_TOKEN = "Send the token that came with the hold as `Authorization: Bearer <token>`."  # noqa: S105


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks whether a caller may use an operation, before its body is read."""

    check: Callable[[Request], Awaitable[None]]
    schemes: tuple[str | None, ...]
    """The security schemes of the OpenAPI document that open it; None: no credentials do, too."""
    errors: tuple[type[Exception], ...]
    permission: Permission | None = None
    """The permission that a key needs; None: no key is needed."""


def key_guard(permission: Permission) -> Guard:
    """Require a key of a scope that includes the permission. Others do not learn whether a path exists."""
    # Worked out once: every request needs them.
    scopes = scopes_for(permission)

    async def check(request: Request) -> None:
        context = request.context
        try:
            if request.raw_query:
                _reject_key_in_query(request)
            token = request.bearer_token()
            if token is None:
                raise NoCredentials
            key = await context.services.api_key_cache.find(token)
        except InvalidApiKey:
            context.wrong_key_limit.count(request.client_address)
            raise
        request.scope["state"]["key"] = key
        if key.scopes.isdisjoint(scopes):
            raise ScopeMissing(scopes[0])
        if context.rate_limit is not None:
            context.rate_limit.take(key.id)

    errors = (NoCredentials, InvalidApiKey, ScopeMissing, TooManyRequests)
    return Guard(check, ("apiKey",), errors, permission)


def check_metrics_token(request: Request) -> None:
    """Require the token of `/metrics`, if there is one. A wrong one counts as a wrong key."""
    if (expected := request.context.metrics_token) is None:
        return
    if (sent := request.bearer_token()) is None:
        raise NoCredentials("Send the metrics token as `Authorization: Bearer <token>`.")
    if not compare_digest(sent.encode(), expected.encode()):
        request.context.wrong_key_limit.count(request.client_address)
        raise InvalidApiKey("This is not the metrics token.")


async def check_public_rate(request: Request) -> None:
    """Limit the rate of an address. Loopback has none: a proxy there is trusted, and its clients count."""
    # Whether or not the route asks for a token: two are one too many.
    request.bearer_token()
    limit = request.context.public_rate_limit
    if limit is not None and not request.client_address.address.is_loopback:
        for network, times in request.client_address.counted:
            limit.take(network, ADDRESS_OVER_LIMIT, times)


async def _check_booking_token(request: Request) -> None:
    """Require a token; whether it opens anything is known when the booking is."""
    await check_public_rate(request)
    if request.bearer_token() is None:
        raise NoCredentials(_SEND_THE_TOKEN)


PUBLIC = Guard(check_public_rate, (), (TooManyRequests,))
OPTIONAL_TOKEN = replace(PUBLIC, schemes=(None, "bookingToken"))
BOOKING_TOKEN = Guard(_check_booking_token, ("bookingToken",), (NoCredentials, TooManyRequests))


def key_may(key: Key, permission: Permission) -> bool:
    return any(permission in SCOPE_PERMISSIONS[scope] for scope in key.scopes)


def caller_of(request: Request) -> Caller:
    """Return the caller of the status table that the holder of this key is in the back office."""
    if key_may(request.key, Permission.REVOKE_SALE):
        return Caller.ADMIN
    return Caller.STAFF if key_may(request.key, Permission.SELL) else Caller.PAYMENT_SYSTEM


def check_project_access(request: Request, slug: str) -> None:
    """A key that is limited to projects learns nothing of the others."""
    if not request.key.may_use(slug):
        raise UnknownProject(slug)


def _reject_key_in_query(request: Request) -> None:
    """A key in an address ends up in logs and histories, so it opens nothing."""
    if request.query_error is not None:
        return
    for name, value in request.query_items():
        if name.lower() in _QUERY_NAMES or is_well_formed(value):
            raise InvalidApiKey(
                "A key in the query string is not accepted; send it in the Authorization header."
            )
