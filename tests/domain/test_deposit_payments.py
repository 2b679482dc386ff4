"""Deposits that are known by their payment: told once, told again, and paid twice."""

import pytest

from holdfast.domain import booking_actions
from holdfast.domain.booking import BookingStatus
from holdfast.domain.decision import Decision, UnitSnapshot, apply, describe_change
from holdfast.domain.errors import NotSigned, TransitionNotAllowed
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from tests.domain.bookings import (
    BUYER,
    NUMBER,
    PERIODS,
    after_the_end,
    changed,
    claimed,
    in_status,
    told,
    unchanged,
)
from tests.domain.units import MINUTE, NOW, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
PAID = [RESERVED, SOLD, REFUND_DUE, REFUNDED]


def tell(found: UnitSnapshot, payment_id: str | None = "pay_1") -> Decision:
    return booking_actions.confirm_deposit(found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW, payment_id)


def paid_by(status: BookingStatus, payment_id: str | None) -> UnitSnapshot:
    found = in_status(status)
    if found.booking is not None:
        return found._replace(booking=found.booking._replace(payment_id=payment_id))
    return found._replace(others={NUMBER: found.others[NUMBER]._replace(payment_id=payment_id)})


def test_the_payment_is_kept_with_the_deposit() -> None:
    reserved = changed(tell(claimed(SIGNED)))
    assert (reserved.status, reserved.payment_id, reserved.deposit_confirmed_at) == (RESERVED, "pay_1", NOW)


def test_a_deposit_without_a_payment_is_one_all_the_same() -> None:
    reserved = changed(tell(claimed(SIGNED), None))
    assert (reserved.status, reserved.payment_id) == (RESERVED, None)


@pytest.mark.parametrize("status", PAID)
def test_a_payment_that_is_told_again_changes_nothing(status: BookingStatus) -> None:
    found = paid_by(status, "pay_1")
    assert unchanged(tell(found), found)


@pytest.mark.parametrize("status", PAID)
def test_a_second_payment_is_one_too_many(status: BookingStatus) -> None:
    with pytest.raises(TransitionNotAllowed) as refused:
        tell(paid_by(status, "pay_1"), "pay_2")
    sentence = "The deposit was paid by the payment pay_1: pay pay_2 back to the buyer."
    assert str(refused.value) == sentence


@pytest.mark.parametrize("status", PAID)
def test_staff_may_confirm_again_what_was_paid(status: BookingStatus) -> None:
    found = paid_by(status, "pay_1")
    assert unchanged(tell(found, None), found)


@pytest.mark.parametrize("status", [RESERVED, SOLD, REFUND_DUE])
def test_what_staff_confirmed_first_is_known_by_the_payment_that_is_told_later(status: BookingStatus) -> None:
    found = paid_by(status, None)
    decision = tell(found)
    before = found.booking_numbered(NUMBER)
    assert before is not None
    assert changed(decision) == before._replace(payment_id="pay_1")
    assert (decision.unit, decision.events) == (found.unit, ())
    then = apply(found, decision)
    assert unchanged(tell(then), then)


def test_a_payment_for_what_staff_confirmed_and_paid_back_is_not_kept_in_silence() -> None:
    found = paid_by(REFUNDED, None)
    with pytest.raises(TransitionNotAllowed) as refused:
        tell(found)
    sentence = "The deposit was refunded: pay pay_1 back to the buyer, unless it is what was refunded."
    assert str(refused.value) == sentence
    assert unchanged(tell(found, None), found)


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
def test_a_late_payment_is_kept_with_what_it_reserves_again(status: BookingStatus) -> None:
    found = after_the_end(status, buyer=BUYER, signed_at=NOW - 2 * MINUTE)
    decision = tell(found)
    assert (changed(decision).status, changed(decision).payment_id) == (RESERVED, "pay_1")
    assert [event for event, *_ in told(decision)] == ["unit.held", "unit.reserved"]


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
def test_a_payment_that_is_due_back_is_known_too(status: BookingStatus) -> None:
    gone = unit(Status.UNAVAILABLE)
    found = after_the_end(status, gone, buyer=BUYER, signed_at=NOW - 2 * MINUTE)
    decision = tell(found)
    assert (changed(decision).status, changed(decision).payment_id) == (REFUND_DUE, "pay_1")
    then = apply(found, decision)
    assert unchanged(tell(then), then)
    with pytest.raises(TransitionNotAllowed):
        tell(then, "pay_2")


@pytest.mark.parametrize("found", [claimed(OPEN), after_the_end(LAPSED), after_the_end(CANCELLED)])
def test_a_payment_before_the_signature_leaves_nothing_behind(found: UnitSnapshot) -> None:
    with pytest.raises(NotSigned):
        tell(found)
    booking = found.booking_numbered(NUMBER)
    assert booking is not None
    assert booking.payment_id is None


def test_the_history_tells_the_change_and_not_the_payment() -> None:
    """Which is who did it."""
    found = claimed(SIGNED)
    change = describe_change(found, tell(found))
    assert change.after["booking_status"] == RESERVED
    assert "payment_id" not in change.after
