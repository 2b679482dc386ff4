"""What a unit's page shows beside the unit itself."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import quote

from holdfast.domain.permissions import Permission
from holdfast.domain.status import Action, Status, Transition, transitions_for
from holdfast.domain.unit import Unit, UnitFields
from holdfast.web.backoffice.visits import PREFIX, Visit

_HALALA = Decimal("0.01")
_TOWARDS_A_SALE = (Status.UNAVAILABLE, Status.AVAILABLE, Status.HELD, Status.RESERVED, Status.SOLD)
_OTHER_PERMISSIONS = {
    Action.REVOKE_SALE: Permission.REVOKE_SALE,
    Action.CONFIRM_DEPOSIT: Permission.CONFIRM_DEPOSIT,
}


def unit_path(slug: str, code: str) -> str:
    return f"{PREFIX}/projects/{slug}/units/{quote(code, safe='')}"


def permission_for(action: Action) -> Permission:
    return _OTHER_PERMISSIONS.get(action, Permission.SELL)


def offered(visit: Visit, unit: Unit) -> list[Transition]:
    """The lines of the status table that this person may take now: first what goes on towards a sale, last
    what a buyer loses something by."""
    rows = transitions_for(visit.caller, unit.status, unit.archived)
    mine = [row for row in rows if visit.may(permission_for(row.action))]
    return sorted(mine, key=lambda row: (row.ends is not None, not goes_on(row)))


def goes_on(row: Transition) -> bool:
    return _TOWARDS_A_SALE.index(row.target) > _TOWARDS_A_SALE.index(row.source)


def is_walk_in(row: Transition) -> bool:
    return row.action is Action.CLOSE_SALE and row.source is Status.AVAILABLE


def price_per_sqm(fields: UnitFields) -> Decimal:
    return (fields.price_sar / fields.area_sqm).quantize(_HALALA, ROUND_HALF_UP)
