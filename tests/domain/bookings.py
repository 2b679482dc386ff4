"""Bookings in every status, the snapshots in which commands find them, and the actions on them."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdfast.domain import booking_actions
from holdfast.domain.booking import Booking, BookingStatus, Buyer, Draft, Holder, Slots, unit_terms
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.holds import HoldPeriods
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from holdfast.domain.unit import Unit
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
PERIODS = HoldPeriods(hold_seconds=120, reservation_days=2)
BUYER = Buyer("Nora Al-Harbi", "nora@example.com", "+966 50 123 4567")
ANOTHER_BUYER = Buyer("Omar Haddad", "omar@example.com", "0501112223")
NUMBER, OTHER_NUMBER = 41, 42
DRAFT = Draft(OTHER_NUMBER, "222-222-222", b"another token", Holder(UUID(int=7), UUID(int=8)))

UNIT_STATUS = {OPEN: Status.HELD, SIGNED: Status.HELD, RESERVED: Status.RESERVED, SOLD: Status.SOLD}
"""The status of a unit while a booking in this status claims it."""

HAS_SIGNED: dict[str, Any] = {"buyer": BUYER, "signed_at": NOW - 3 * MINUTE}
_PAID = {**HAS_SIGNED, "deposit_confirmed_at": NOW - 2 * MINUTE, "reserved_until": NOW + MINUTE}
_ENDED = {"ended_at": NOW - MINUTE}
_FACTS: dict[BookingStatus, dict[str, Any]] = {
    OPEN: {},
    SIGNED: HAS_SIGNED,
    RESERVED: _PAID,
    SOLD: {**_PAID, "closed_at": NOW - MINUTE},
    LAPSED: _ENDED,
    CANCELLED: _ENDED,
    REFUND_DUE: {**_PAID, **_ENDED},
    REFUNDED: {**_PAID, **_ENDED, "refunded_at": NOW - MINUTE},
}
WALK_IN = dict.fromkeys(("signed_at", "deposit_confirmed_at", "reserved_until", "hold_expires_at"))
"""What a sale without a hold does not have."""

ACTIONS: dict[str, Callable[[UnitSnapshot], Decision]] = {
    "sign": lambda found: booking_actions.sign(found, NUMBER, BUYER, NOW),
    "cancel": lambda found: booking_actions.cancel(found, NUMBER, Caller.STAFF, NOW),
    "cancel as buyer": lambda found: booking_actions.cancel(found, NUMBER, Caller.BUYER, NOW),
    "extend": lambda found: booking_actions.extend_booking(found, NUMBER, Caller.STAFF, None, PERIODS, NOW),
    "confirm": lambda found: booking_actions.confirm_deposit(
        found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW
    ),
    "close": lambda found: booking_actions.close_sale_of_booking(found, NUMBER, Caller.STAFF, NOW),
    "refund": lambda found: booking_actions.mark_refunded(found, NUMBER, NOW),
    "reissue": lambda found: booking_actions.reissue_link(found, NUMBER, b"new"),
    "erase": lambda found: booking_actions.erase_buyer(found, NUMBER, NOW),
}
"""Each on the booking NUMBER, at NOW."""


def booking(status: BookingStatus = OPEN, **others: Any) -> Booking:
    values: dict[str, Any] = {
        **dict.fromkeys(Booking._fields),
        "number": NUMBER,
        "reference": "234-679-FHK",
        "project_id": PROJECT.id,
        "unit_id": UUID(int=2),
        "token_hash": b"a token",
        "status": status,
        "terms": unit_terms(FIELDS)._replace(price_sar=Decimal(900_000)),
        "hold_expires_at": NOW + MINUTE,
        "created_at": NOW - 4 * MINUTE,
        "holder": Holder(UUID(int=5), UUID(int=6)),
        "slots": Slots(),
    }
    return Booking(**(values | _FACTS[status] | others))


def claimed(status: BookingStatus = OPEN, **others: Any) -> UnitSnapshot:
    """A unit and the booking that claims it."""
    return UnitSnapshot(PROJECT, unit(UNIT_STATUS[status]), booking=booking(status, **others))


def after_the_end(
    status: BookingStatus, found: Unit | None = None, claim: Booking | None = None, **others: Any
) -> UnitSnapshot:
    """A unit, one of its bookings that has ended, and perhaps the one that claims it now."""
    ended = booking(status, **others)
    return UnitSnapshot(PROJECT, found or unit(), booking=claim, others={ended.number: ended})


def in_status(status: BookingStatus, **others: Any) -> UnitSnapshot:
    return claimed(status, **others) if status in UNIT_STATUS else after_the_end(status, **others)


def found_booking(found: UnitSnapshot) -> Booking:
    booking_found = found.booking_numbered(NUMBER)
    assert booking_found is not None
    return booking_found


def changed(decision: Decision) -> Booking:
    assert decision.booking is not None
    return decision.booking


def event_summary(decision: Decision) -> list[tuple[str, str, str, str | None]]:
    return [(one.type, one.previous_status, one.status, one.booking_reference) for one in decision.events]


def unchanged(decision: Decision, found: UnitSnapshot) -> bool:
    return decision.unit is found.unit and changed(decision) is found_booking(found) and not decision.events
