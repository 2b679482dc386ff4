"""Who may do what: the one place that pages and JSON routes ask, for people and for keys."""

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
    """Bookings, and with them buyers' personal data."""
    SELL = "sell"
    """Whatever changes units, bookings, layouts and projects, import included."""
    CONFIRM_DEPOSIT = "confirm-deposit"
    REVOKE_SALE = "revoke-sale"
    SEE_WEBHOOKS = "see-webhooks"
    """Endpoints and deliveries."""
    MANAGE_WEBHOOKS = "manage-webhooks"
    MANAGE_KEYS = "manage-keys"
    SEE_AUDIT = "see-audit"
    """Who did what, staff and keys included."""
    ADMINISTER = "administer"
    """Staff."""


_OF_EVERYBODY = frozenset({Permission.SEE_UNITS, Permission.SEE_WEBHOOKS})
_OF_PEOPLE = frozenset(Permission) - {Permission.INTEGRATE}
_OF_SALES = frozenset({Permission.SEE_BOOKINGS, Permission.SELL, Permission.CONFIRM_DEPOSIT})

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.ADMIN: _OF_PEOPLE,
    Role.INTEGRATOR: _OF_EVERYBODY | {Permission.MANAGE_WEBHOOKS, Permission.MANAGE_KEYS},
    Role.SALES: _OF_EVERYBODY | _OF_SALES,
    Role.VIEWER: _OF_EVERYBODY | {Permission.SEE_BOOKINGS},
}

# What an admin's key opens does not include the integration API: an ERP has a key of its own, which opens
# nothing else.
SCOPE_PERMISSIONS: Mapping[Scope, frozenset[Permission]] = {
    Scope.INTEGRATION: frozenset({Permission.INTEGRATE}),
    Scope.PAYMENTS: frozenset({Permission.CONFIRM_DEPOSIT}),
    Scope.BACKOFFICE: _OF_EVERYBODY | _OF_SALES | {Permission.MANAGE_WEBHOOKS, Permission.SEE_AUDIT},
    Scope.ADMIN: _OF_PEOPLE,
}

# Nobody gives away more than they have. An integrator connects systems and sells nothing, so the keys they
# make neither sell nor confirm deposits.
ISSUABLE_SCOPES: Mapping[Role, frozenset[Scope]] = {
    Role.ADMIN: frozenset(Scope),
    Role.INTEGRATOR: frozenset({Scope.INTEGRATION}),
    Role.SALES: frozenset(),
    Role.VIEWER: frozenset(),
}


def scopes_for(permission: Permission) -> list[Scope]:
    """The scopes that have it, the narrowest first."""
    return [scope for scope in Scope if permission in SCOPE_PERMISSIONS[scope]]
