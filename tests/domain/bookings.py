"""Bookings in every status, and the snapshots in which a command finds them."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdfast.domain.booking import (
    CLAIMING,
    NO_SLOTS,
    Booking,
    BookingStatus,
    Buyer,
    Draft,
    Holder,
    unit_terms,
)
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.holds import HoldPeriods
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, unit

MILLISECOND = timedelta(milliseconds=1)
PERIODS = HoldPeriods(hold_seconds=120, reservation_days=2)
BUYER = Buyer("Nora Al-Harbi", "nora@example.com", "+966 50 123 4567")
ANOTHER_BUYER = Buyer("Omar Haddad", "omar@example.com", "0501112223")
NUMBER, OTHER_NUMBER = 41, 42
DRAFT = Draft(OTHER_NUMBER, "222-222-222", b"another token", Holder(UUID(int=7), UUID(int=8)))

UNIT_STATUS = {
    BookingStatus.OPEN: Status.HELD,
    BookingStatus.SIGNED: Status.HELD,
    BookingStatus.RESERVED: Status.RESERVED,
    BookingStatus.SOLD: Status.SOLD,
}
"""What a unit is while a booking in this status claims it."""

ENDED = tuple(status for status in BookingStatus if status not in CLAIMING)

_SIGNED = {"buyer": BUYER, "signed_at": NOW - 3 * MINUTE}
_PAID = {**_SIGNED, "deposit_confirmed_at": NOW - 2 * MINUTE, "reserved_until": NOW + MINUTE}
_ENDED_AT = {"ended_at": NOW - MINUTE}
_FACTS: dict[BookingStatus, dict[str, Any]] = {
    BookingStatus.OPEN: {},
    BookingStatus.SIGNED: _SIGNED,
    BookingStatus.RESERVED: _PAID,
    BookingStatus.SOLD: {**_PAID, "closed_at": NOW - MINUTE},
    BookingStatus.LAPSED: _ENDED_AT,
    BookingStatus.CANCELLED: _ENDED_AT,
    BookingStatus.REFUND_DUE: {**_PAID, **_ENDED_AT},
    BookingStatus.REFUNDED: {**_PAID, **_ENDED_AT, "refunded_at": NOW - MINUTE},
}


_NOTHING_BUT_SOLD = ("signed_at", "deposit_confirmed_at", "reserved_until", "hold_expires_at")
WALKED_IN = dict.fromkeys(_NOTHING_BUT_SOLD)
"""What a sale without a hold has none of."""


def booking(status: BookingStatus = BookingStatus.OPEN, **others: Any) -> Booking:
    values: dict[str, Any] = {
        "number": NUMBER,
        "reference": "234-679-FHK",
        "project_id": PROJECT.id,
        "unit_id": UUID(int=2),
        "token_hash": b"a token",
        "status": status,
        "terms": unit_terms(FIELDS)._replace(price_sar=Decimal(900_000)),
        "buyer": None,
        "hold_expires_at": NOW + MINUTE,
        "reserved_until": None,
        "created_at": NOW - 4 * MINUTE,
        "signed_at": None,
        "deposit_confirmed_at": None,
        "closed_at": None,
        "ended_at": None,
        "refunded_at": None,
        "holder": Holder(UUID(int=5), UUID(int=6)),
        "slots": NO_SLOTS,
        "idempotency_id": None,
    }
    return Booking(**(values | _FACTS[status] | others))


def claimed(status: BookingStatus = BookingStatus.OPEN, **others: Any) -> UnitSnapshot:
    """A unit and the booking that claims it."""
    return UnitSnapshot(PROJECT, unit(UNIT_STATUS[status]), booking=booking(status, **others))


def after_the_end(
    status: BookingStatus, found: Unit | None = None, claim: Booking | None = None, **others: Any
) -> UnitSnapshot:
    """A unit, one of its bookings that has ended, and perhaps the one that claims it now."""
    ended = booking(status, **others)
    return UnitSnapshot(PROJECT, found or unit(), booking=claim, others={ended.number: ended})


def in_status(status: BookingStatus) -> UnitSnapshot:
    return claimed(status) if status in CLAIMING else after_the_end(status)


def changed(decision: Decision) -> Booking:
    assert decision.booking is not None
    return decision.booking


def told(decision: Decision) -> list[tuple[str, str, str, str | None]]:
    return [
        (event.type, event.previous_status, event.status, event.booking_reference)
        for event in decision.events
    ]


def unchanged(decision: Decision, found: UnitSnapshot) -> bool:
    same_booking = decision.booking is found.booking_numbered(NUMBER)
    return decision.unit is found.unit and same_booking and not decision.events
