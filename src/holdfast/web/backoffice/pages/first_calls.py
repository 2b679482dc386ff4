"""The first thing to paste into a terminal, for a key that was just made."""

from __future__ import annotations

from holdfast.domain.api_key import IssuedKey, Scope

_PATHS = {
    Scope.INTEGRATION: "/v1/integration/projects",
    Scope.BACKOFFICE: "/v1/backoffice/projects",
    Scope.ADMIN: "/v1/backoffice/keys",
}
_DEPOSIT = "/v1/backoffice/bookings/REFERENCE/confirm-deposit"


def first_call(public_url: str, issued: IssuedKey) -> str:
    """It reads, where the key may read at all."""
    path = next((_PATHS[scope] for scope in _PATHS if scope in issued.key.scopes), None)
    method, path = ("", path) if path else ("-X POST ", _DEPOSIT)
    return f'curl {method}{public_url}{path} \\\n  -H "Authorization: Bearer {issued.text}"'
