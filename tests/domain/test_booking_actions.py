"""What can be done to a booking is found by deciding it."""

from typing import Any

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction, possible_actions
from holdfast.domain.decision import UnitSnapshot
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from tests.domain.bookings import BUYER, NUMBER, PERIODS, after_the_end, booking, changed, in_status
from tests.domain.units import MINUTE, NOW, unit

EXPECTED = {
    BookingStatus.OPEN: {"extend", "cancel"},
    BookingStatus.SIGNED: {"confirm-deposit", "extend", "cancel"},
    BookingStatus.RESERVED: {"close-sale", "extend", "cancel"},
    BookingStatus.SOLD: {"erase-buyer"},
    BookingStatus.LAPSED: {"erase-buyer"},
    BookingStatus.CANCELLED: {"erase-buyer"},
    BookingStatus.REFUND_DUE: {"mark-refunded"},
    BookingStatus.REFUNDED: {"erase-buyer"},
}
SIGNED: dict[str, Any] = {"buyer": BUYER, "signed_at": NOW - 3 * MINUTE}


def found(snapshot: UnitSnapshot) -> set[str]:
    return set(map(str, possible_actions(snapshot, NUMBER, Caller.STAFF, PERIODS, NOW)))


@pytest.mark.parametrize("status", BookingStatus)
def test_each_status_has_its_actions(status: BookingStatus) -> None:
    assert found(in_status(status)) == EXPECTED[status] | {"reissue-link"}


def test_late_money_reserves_a_unit_that_is_free() -> None:
    snapshot = after_the_end(BookingStatus.LAPSED, **SIGNED)
    outcome = possible_actions(snapshot, NUMBER, Caller.STAFF, PERIODS, NOW)[BookingAction.CONFIRM_DEPOSIT]
    assert changed(outcome).status is BookingStatus.RESERVED


def test_late_money_is_due_back_where_the_unit_is_somebody_elses() -> None:
    snapshot = after_the_end(BookingStatus.LAPSED, unit(Status.HELD), booking(number=NUMBER + 1), **SIGNED)
    outcome = possible_actions(snapshot, NUMBER, Caller.STAFF, PERIODS, NOW)[BookingAction.CONFIRM_DEPOSIT]
    assert changed(outcome).status is BookingStatus.REFUND_DUE


def test_what_is_done_already_is_not_offered_again() -> None:
    erased = after_the_end(BookingStatus.REFUNDED, buyer_erased_at=NOW, buyer=None)
    assert found(erased) == {"reissue-link"}
