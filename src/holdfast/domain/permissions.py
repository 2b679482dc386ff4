"""Permissions of roles and of scopes of API keys, for pages and the API."""

from collections.abc import Mapping
from enum import StrEnum

from holdfast.domain.api_key import Scope


class Role(StrEnum):
    ADMIN = "admin"
    INTEGRATOR = "integrator"
    SALES = "sales"
    VIEWER = "viewer"


class Permission(StrEnum):
    INTEGRATE = "integrate"
    """The integration API: for external systems, and for no person."""
    SEE_UNITS = "see-units"
    """Projects, boards, units, their history."""
    SEE_BOOKINGS = "see-bookings"
    SELL = "sell"
    """Change units, bookings, layouts and projects, and import."""
    CONFIRM_DEPOSIT = "confirm-deposit"
    REVOKE_SALE = "revoke-sale"
    SEE_WEBHOOKS = "see-webhooks"
    MANAGE_WEBHOOKS = "manage-webhooks"
    MANAGE_KEYS = "manage-keys"
    SEE_AUDIT = "see-audit"
    """The audit trail, including staff and keys."""
    ADMINISTER = "administer"


_COMMON = frozenset({Permission.SEE_UNITS, Permission.SEE_WEBHOOKS})
_ALL_OF_STAFF = frozenset(Permission) - {Permission.INTEGRATE}
_SALES = frozenset({Permission.SEE_BOOKINGS, Permission.SELL, Permission.CONFIRM_DEPOSIT})

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.ADMIN: _ALL_OF_STAFF,
    Role.INTEGRATOR: _COMMON | {Permission.MANAGE_WEBHOOKS, Permission.MANAGE_KEYS},
    Role.SALES: _COMMON | _SALES,
    Role.VIEWER: _COMMON | {Permission.SEE_BOOKINGS},
}

# The scope `admin` does not include the integration API: an ERP has a key of its own, for nothing else.
SCOPE_PERMISSIONS: Mapping[Scope, frozenset[Permission]] = {
    Scope.INTEGRATION: frozenset({Permission.INTEGRATE}),
    Scope.PAYMENTS: frozenset({Permission.CONFIRM_DEPOSIT}),
    Scope.BACKOFFICE: _COMMON | _SALES | {Permission.MANAGE_WEBHOOKS, Permission.SEE_AUDIT},
    Scope.ADMIN: _ALL_OF_STAFF,
}

# An integrator cannot sell, and so cannot issue keys that sell or confirm deposits.
ISSUABLE_SCOPES: Mapping[Role, frozenset[Scope]] = {
    Role.ADMIN: frozenset(Scope),
    Role.INTEGRATOR: frozenset({Scope.INTEGRATION}),
    Role.SALES: frozenset(),
    Role.VIEWER: frozenset(),
}


def scopes_for(permission: Permission) -> list[Scope]:
    """Return the scopes that have a permission, the narrowest first."""
    return [scope for scope in Scope if permission in SCOPE_PERMISSIONS[scope]]
