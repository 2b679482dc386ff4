"""The way of a booking, step by step, as its page draws it."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote

from holdfast.domain.booking import CLAIMING, HOLDING, Booking, BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.permissions import Permission
from holdfast.domain.status import Action, Status, Transition, transitions_for
from holdfast.domain.unit import Unit, UnitFields
from holdfast.web.pages.backoffice.base import PREFIX, Visit
from holdfast.web.pages.i18n import SOURCE, Language, translations

_OTHER_BOOKING_PERMISSIONS = {BookingAction.CONFIRM_DEPOSIT: Permission.CONFIRM_DEPOSIT}


_WORDS = {
    BookingStatus.OPEN: "Open",
    BookingStatus.SIGNED: "Signed",
    BookingStatus.RESERVED: "Reserved",
    BookingStatus.SOLD: "Sold",
    BookingStatus.LAPSED: "Lapsed",
    BookingStatus.CANCELLED: "Cancelled",
    BookingStatus.REFUND_DUE: "Refund due",
    BookingStatus.REFUNDED: "Refunded",
}


def status_word(language: Language, status: str) -> str:
    """As refusals call it too: in some languages a booking is not "sold" in the way a unit is."""
    if language.code == SOURCE:
        return _WORDS[BookingStatus(status)]
    return str(translations(language.code).pgettext("booking_status", str(status)))


class StepName(StrEnum):
    OPENED = "opened"
    SIGNED = "signed"
    DEPOSIT = "deposit"
    SOLD = "sold"
    LAPSED = "lapsed"
    CANCELLED = "cancelled"
    ENDED = "ended"
    """Unsold, after its deposit was confirmed."""
    REFUND = "refund"
    ERASED = "erased"


class StepState(StrEnum):
    DONE = "done"
    NOW = "now"
    """The one that is waited for."""
    LATER = "later"
    LOST = "lost"


class Step(NamedTuple):
    name: StepName
    state: StepState
    at: datetime | None = None
    due_at: datetime | None = None
    """Until when it is waited for."""


def booking_permission(action: BookingAction) -> Permission:
    return _OTHER_BOOKING_PERMISSIONS.get(action, Permission.SELL)


def steps_of(booking: Booking) -> list[Step]:
    """What was, what is waited for, and what may come; what will not come any more is left out."""
    way = _way(booking) if booking.hold_expires_at is not None else [_sold(booking)]
    known = [step for step in way if step is not None]
    return [*known, *_ends(booking)]


def _way(booking: Booking) -> list[Step | None]:
    return [
        Step(StepName.OPENED, StepState.DONE, booking.created_at),
        _step(booking, StepName.SIGNED, booking.signed_at, BookingStatus.OPEN),
        _step(booking, StepName.DEPOSIT, booking.deposit_confirmed_at, BookingStatus.SIGNED),
        _step(booking, StepName.SOLD, booking.closed_at, BookingStatus.RESERVED),
    ]


def _sold(booking: Booking) -> Step:
    return Step(StepName.SOLD, StepState.DONE, booking.closed_at)


def _step(booking: Booking, name: StepName, at: datetime | None, waits_in: BookingStatus) -> Step | None:
    """``waits_in``: the status in which a booking waits for this step."""
    if at is not None:
        return Step(name, StepState.DONE, at)
    if booking.status is waits_in:
        return Step(name, StepState.NOW, due_at=booking.ends_at)
    return Step(name, StepState.LATER) if booking.status in {*HOLDING, *CLAIMING} else None


def _ends(booking: Booking) -> list[Step]:
    found = []
    if booking.ended_at is not None:
        found.append(Step(_end_of(booking.status), StepState.LOST, booking.ended_at))
    if booking.status is BookingStatus.REFUND_DUE:
        found.append(Step(StepName.REFUND, StepState.NOW))
    if booking.refunded_at is not None:
        found.append(Step(StepName.REFUND, StepState.DONE, booking.refunded_at))
    if booking.buyer_erased_at is not None:
        found.append(Step(StepName.ERASED, StepState.DONE, booking.buyer_erased_at))
    return found


def _end_of(status: BookingStatus) -> StepName:
    known = {BookingStatus.LAPSED: StepName.LAPSED, BookingStatus.CANCELLED: StepName.CANCELLED}
    return known.get(status, StepName.ENDED)


# What a unit's page shows beside the unit itself.

_HALALA = Decimal("0.01")
_TOWARDS_A_SALE = (Status.UNAVAILABLE, Status.AVAILABLE, Status.HELD, Status.RESERVED, Status.SOLD)
_OTHER_UNIT_PERMISSIONS = {
    Action.REVOKE_SALE: Permission.REVOKE_SALE,
    Action.CONFIRM_DEPOSIT: Permission.CONFIRM_DEPOSIT,
}


def unit_path(slug: str, code: str) -> str:
    return f"{PREFIX}/projects/{slug}/units/{quote(code, safe='')}"


def unit_permission(action: Action) -> Permission:
    return _OTHER_UNIT_PERMISSIONS.get(action, Permission.SELL)


def offered(visit: Visit, unit: Unit) -> list[Transition]:
    """The lines of the status table that this person may take now: first what goes on towards a sale, last
    what a buyer loses something by."""
    rows = transitions_for(visit.caller, unit.status, unit.archived)
    mine = [row for row in rows if visit.may(unit_permission(row.action))]
    return sorted(mine, key=lambda row: (row.ends is not None, not goes_on(row)))


def goes_on(row: Transition) -> bool:
    return _TOWARDS_A_SALE.index(row.target) > _TOWARDS_A_SALE.index(row.source)


def is_walk_in(row: Transition) -> bool:
    return row.action is Action.CLOSE_SALE and row.source is Status.AVAILABLE


def price_per_sqm(fields: UnitFields) -> Decimal:
    return (fields.price_sar / fields.area_sqm).quantize(_HALALA, ROUND_HALF_UP)
