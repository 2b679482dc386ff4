"""A buyer's personal data are erased; the facts of the sale stay."""

import pytest

from holdfast.domain import booking_actions
from holdfast.domain.booking import NOBODY, BookingStatus
from holdfast.domain.decision import apply, describe_change
from holdfast.domain.errors import TransitionNotAllowed, UnknownBooking
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller, Transition
from tests.domain.bookings import (
    BUYER,
    NUMBER,
    PERIODS,
    UNIT_STATUS,
    after_the_end,
    changed,
    claimed,
    in_status,
    told,
    unchanged,
)
from tests.domain.units import MINUTE, NOW, snapshot, unit

LIVE = (BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED)
ERASABLE = (BookingStatus.SOLD, BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUNDED)
PERSONAL = {"buyer", "holder", "buyer_erased_at"}


@pytest.mark.parametrize("status", ERASABLE)
def test_nothing_but_the_buyers_person_is_erased(status: BookingStatus) -> None:
    found = in_status(status)
    before = found.booking_numbered(NUMBER)
    assert before is not None
    erased = changed(booking_actions.erase_buyer(found, NUMBER, NOW))
    assert (erased.buyer, erased.holder, erased.buyer_erased_at) == (None, NOBODY, NOW)
    kept = [name for name in before._fields if name not in PERSONAL]
    assert [getattr(erased, name) for name in kept] == [getattr(before, name) for name in kept]


@pytest.mark.parametrize("status", ERASABLE)
def test_the_unit_is_not_touched_and_nobody_is_told(status: BookingStatus) -> None:
    found = in_status(status)
    decision = booking_actions.erase_buyer(found, NUMBER, NOW)
    assert decision.unit is found.unit
    assert told(decision) == []
    assert decision.action == "erase-buyer"
    assert describe_change(found, decision) == ({}, {})


@pytest.mark.parametrize("status", ERASABLE)
def test_erasing_again_changes_nothing(status: BookingStatus) -> None:
    found = in_status(status)
    erased = apply(found, booking_actions.erase_buyer(found, NUMBER, NOW))
    assert unchanged(booking_actions.erase_buyer(erased, NUMBER, NOW + MINUTE), erased)


@pytest.mark.parametrize("status", LIVE)
def test_a_live_booking_keeps_its_buyer(status: BookingStatus) -> None:
    with pytest.raises(
        TransitionNotAllowed, match=f"booking is {status}: it has to end or be sold"
    ) as refusal:
        booking_actions.erase_buyer(claimed(status), NUMBER, NOW)
    assert refusal.value.status is UNIT_STATUS[status]


def test_whom_money_is_owed_to_is_known_until_it_is_paid_back() -> None:
    owed = after_the_end(BookingStatus.REFUND_DUE)
    with pytest.raises(TransitionNotAllowed, match="due back"):
        booking_actions.erase_buyer(owed, NUMBER, NOW)
    paid = apply(owed, booking_actions.mark_refunded(owed, NUMBER, NOW))
    assert changed(booking_actions.erase_buyer(paid, NUMBER, NOW)).buyer is None


def test_there_must_be_such_a_booking() -> None:
    with pytest.raises(UnknownBooking):
        booking_actions.erase_buyer(snapshot(unit()), NUMBER, NOW)


def test_late_money_of_somebody_erased_is_due_back_though_the_unit_is_free() -> None:
    found = after_the_end(BookingStatus.LAPSED, buyer=BUYER, signed_at=NOW - 3 * MINUTE)
    erased = apply(found, booking_actions.erase_buyer(found, NUMBER, NOW))
    decision = booking_actions.confirm_deposit(erased, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW)
    assert changed(decision).status is BookingStatus.REFUND_DUE
    assert decision.unit.status is Status.AVAILABLE
    assert told(decision) == []


def test_a_sale_without_a_buyer_can_be_revoked_all_the_same() -> None:
    sold = claimed(BookingStatus.SOLD)
    erased = apply(sold, booking_actions.erase_buyer(sold, NUMBER, NOW))
    decision = booking_actions.change_status(erased, "A-101", Action.REVOKE_SALE, Caller.ADMIN, NOW)
    assert changed(decision).status is BookingStatus.REFUND_DUE
    assert changed(decision).buyer_erased_at == NOW


ENDING = [row for row in TRANSITIONS if row.ends is not None and row.callers != {Caller.CLOCK}]


@pytest.mark.parametrize("row", ENDING, ids=lambda row: f"{row.action} from {row.source}")
def test_who_is_said_to_lose_something_does_lose_it(row: Transition) -> None:
    """What the table says of a buyer's loss is what becomes of the booking."""
    status = next(booking for booking, of_unit in UNIT_STATUS.items() if of_unit is row.source)
    decision = booking_actions.change_status(claimed(status), "A-101", row.action, Caller.ADMIN, NOW)
    is_paid = row.ends in (Status.RESERVED, Status.SOLD)
    assert changed(decision).status is (BookingStatus.REFUND_DUE if is_paid else BookingStatus.CANCELLED)
