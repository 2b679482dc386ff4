"""What is done to a unit, and takes the booking along that the unit has."""

import pytest

from holdfast.domain import booking_actions
from holdfast.domain.booking import BookingStatus, Buyer, end, unit_terms
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import InvalidInput, TransitionNotAllowed, UnknownUnit
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from tests.domain.bookings import (
    BUYER,
    DRAFT,
    NUMBER,
    OTHER_NUMBER,
    PERIODS,
    after_the_end,
    booking,
    changed,
    claimed,
    in_status,
    told,
)
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, snapshot, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus


def close_booking(found: UnitSnapshot) -> Decision:
    return booking_actions.close_sale_of_booking(found, NUMBER, Caller.STAFF, NOW)


def close(found: UnitSnapshot, buyer: Buyer | None = None) -> Decision:
    return booking_actions.close_sale(found, "A-101", DRAFT, buyer, Caller.STAFF, NOW)


@pytest.mark.parametrize("by", ["unit", "booking"])
def test_the_sale_of_a_reserved_unit_is_closed(by: str) -> None:
    found = claimed(RESERVED)
    decision = close(found) if by == "unit" else close_booking(found)
    sold = changed(decision)
    assert found.booking is not None
    assert sold == found.booking._replace(status=SOLD, closed_at=NOW)
    assert told(decision) == [("unit.sold", "reserved", "sold", sold.reference)]
    assert (decision.unit.status, decision.unit.reserved_until) == (Status.SOLD, None)


def test_an_available_unit_is_sold_to_a_buyer_who_walked_in() -> None:
    decision = close(snapshot(unit()), BUYER)
    sold = changed(decision)
    assert (sold.status, sold.buyer, sold.number) == (SOLD, BUYER, DRAFT.number)
    assert (sold.closed_at, sold.hold_expires_at, sold.deposit_confirmed_at) == (NOW, None, None)
    assert sold.terms == unit_terms(FIELDS)
    assert told(decision) == [("unit.sold", "available", "sold", sold.reference)]


def test_a_walk_in_sale_needs_the_whole_buyer() -> None:
    with pytest.raises(InvalidInput) as refused:
        close(snapshot(unit()))
    assert [fault.pointer for fault in refused.value.faults] == ["/buyerName", "/buyerEmail", "/buyerPhone"]
    assert {fault.message for fault in refused.value.faults} == {
        "This field is required: the unit is available."
    }


def test_the_buyer_of_a_reserved_unit_is_known_already() -> None:
    with pytest.raises(TransitionNotAllowed, match="its booking names the buyer") as refused:
        close(claimed(RESERVED), BUYER)
    assert refused.value.fields == ("buyer_name", "buyer_email", "buyer_phone")


@pytest.mark.parametrize("buyer", [None, BUYER])
@pytest.mark.parametrize(
    "found", [claimed(OPEN), claimed(SIGNED), claimed(SOLD), snapshot(unit(Status.UNAVAILABLE))]
)
def test_nothing_else_is_sold(found: UnitSnapshot, buyer: Buyer | None) -> None:
    with pytest.raises(TransitionNotAllowed):
        close(found, buyer)


@pytest.mark.parametrize("status", [OPEN, SIGNED])
def test_a_booking_is_not_sold_before_its_deposit(status: BookingStatus) -> None:
    with pytest.raises(TransitionNotAllowed) as refused:
        close_booking(claimed(status))
    assert str(refused.value) == "The deposit is not confirmed yet."
    assert refused.value.hold_expires_at is None


def test_an_ended_booking_cannot_close_the_sale_of_somebody_else() -> None:
    found = after_the_end(LAPSED, unit(Status.RESERVED), booking(RESERVED, number=OTHER_NUMBER))
    with pytest.raises(TransitionNotAllowed):
        close_booking(found)


# What ends whatever booking there is


MOVES = [
    (Action.CANCEL_HOLD, {Status.HELD}, Status.AVAILABLE),
    (Action.CANCEL_RESERVATION, {Status.RESERVED}, Status.AVAILABLE),
    (Action.PUT_ON_SALE, {Status.UNAVAILABLE}, Status.AVAILABLE),
    (Action.TAKE_OFF_SALE, {Status.AVAILABLE, Status.HELD, Status.RESERVED}, Status.UNAVAILABLE),
    (Action.ARCHIVE, set(Status) - {Status.SOLD}, Status.UNAVAILABLE),
    (Action.REVOKE_SALE, {Status.SOLD}, Status.UNAVAILABLE),
]
FOUND = [*map(in_status, BookingStatus), snapshot(unit()), snapshot(unit(Status.UNAVAILABLE))]


@pytest.mark.parametrize(("action", "sources", "target"), MOVES)
@pytest.mark.parametrize("found", FOUND)
def test_a_unit_that_moves_takes_its_booking_along(
    action: Action, sources: set[Status], target: Status, found: UnitSnapshot
) -> None:
    assert found.unit is not None
    if found.unit.status not in sources:
        with pytest.raises(TransitionNotAllowed) as refused:
            booking_actions.change_status(found, "A-101", action, Caller.ADMIN, NOW)
        assert refused.value.status is found.unit.status
        return
    decision = booking_actions.change_status(found, "A-101", action, Caller.ADMIN, NOW)
    assert (decision.unit.status, decision.unit.archived) == (target, action is Action.ARCHIVE)
    assert (decision.unit.hold_expires_at, decision.unit.reserved_until) == (None, None)
    assert [event.previous_status for event in decision.events] == [found.unit.status]
    assert decision.booking == (found.booking and end(found.booking, decision.unit.updated_at))


def test_a_walk_in_sale_that_is_revoked_owes_nothing_back() -> None:
    walked_in = booking(SOLD, signed_at=None, deposit_confirmed_at=None, reserved_until=None)
    found = UnitSnapshot(PROJECT, unit(Status.SOLD), booking=walked_in)
    revoke = booking_actions.change_status(found, "A-101", Action.REVOKE_SALE, Caller.ADMIN, NOW)
    assert changed(revoke).status is CANCELLED
    paid = booking_actions.change_status(claimed(SOLD), "A-101", Action.REVOKE_SALE, Caller.ADMIN, NOW)
    assert changed(paid).status is REFUND_DUE


def test_no_action_finds_a_unit_that_is_not_there() -> None:
    with pytest.raises(UnknownUnit):
        booking_actions.change_status(snapshot(None), "A-101", Action.ARCHIVE, Caller.STAFF, NOW)
    with pytest.raises(UnknownUnit):
        booking_actions.extend(snapshot(None), "A-101", Caller.STAFF, None, PERIODS, NOW)
    with pytest.raises(UnknownUnit):
        close(snapshot(None))


def test_a_unit_that_no_booking_of_ours_claims_is_neither_reserved_nor_sold() -> None:
    """A row that somebody changed by hand."""
    with pytest.raises(TransitionNotAllowed, match="no booking of Holdfast"):
        close(snapshot(unit(Status.RESERVED)))
    held = snapshot(unit(Status.HELD))
    with pytest.raises(TransitionNotAllowed, match="no booking of Holdfast"):
        booking_actions.confirm_deposit_of_unit(held, "A-101", Caller.STAFF, PERIODS, NOW)
    later = booking_actions.extend(held, "A-101", Caller.STAFF, None, PERIODS, NOW)
    assert (later.booking, later.unit.hold_expires_at) == (None, NOW + 3 * MINUTE)
