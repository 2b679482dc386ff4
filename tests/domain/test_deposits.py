"""The deposit of a booking: in time, again, late, and without a signature."""

from datetime import timedelta

import pytest

from holdfast.domain import booking_actions
from holdfast.domain.booking import NO_SLOTS, BookingStatus, Slots
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import NotSigned, TransitionNotAllowed
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from holdfast.domain.unit import Unit
from tests.domain.bookings import (
    BUYER,
    NUMBER,
    OTHER_NUMBER,
    PERIODS,
    WALKED_IN,
    after_the_end,
    booking,
    changed,
    claimed,
    in_status,
    told,
    unchanged,
)
from tests.domain.units import MINUTE, NOW, snapshot, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
DAY = timedelta(days=1)
EVERY_UNIT = [unit(status) for status in Status] + [unit(Status.UNAVAILABLE, archived=True)]


def confirm(found: UnitSnapshot) -> Decision:
    return booking_actions.confirm_deposit(found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW)


def test_a_confirmed_deposit_reserves_the_unit() -> None:
    found = claimed(SIGNED, slots=Slots(1, 2))
    decision = booking_actions.confirm_deposit(found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.RESERVED, None)
    assert decision.unit.reserved_until == NOW + 2 * DAY
    reserved = changed(decision)
    assert told(decision) == [("unit.reserved", "held", "reserved", reserved.reference)]
    assert (reserved.status, reserved.deposit_confirmed_at, reserved.slots) == (RESERVED, NOW, NO_SLOTS)
    assert reserved.reserved_until == NOW + 2 * DAY


@pytest.mark.parametrize("status", [RESERVED, SOLD, REFUND_DUE, REFUNDED])
def test_a_deposit_is_confirmed_once(status: BookingStatus) -> None:
    found = in_status(status)
    assert unchanged(confirm(found), found)


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
def test_a_late_deposit_reserves_a_free_unit_again_on_the_terms_agreed(status: BookingStatus) -> None:
    found = after_the_end(status, buyer=BUYER, signed_at=NOW - 2 * MINUTE)
    before = found.others[NUMBER]
    assert found.unit is not None
    decision = confirm(found)
    again = changed(decision)
    assert told(decision) == [
        ("unit.held", "available", "held", None),
        ("unit.reserved", "held", "reserved", before.reference),
    ]
    first, second = decision.events
    assert (first.unit_version, second.unit_version) == (found.unit.version + 1, found.unit.version + 2)
    assert first.created_at < second.created_at == decision.unit.updated_at
    assert (again.status, again.ended_at, again.terms) == (RESERVED, None, before.terms)
    assert again.deposit_confirmed_at == NOW
    assert (decision.unit.status, decision.unit.reserved_until) == (Status.RESERVED, again.reserved_until)
    assert decision.unit.hold_expires_at is None


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
@pytest.mark.parametrize("found_unit", [one for one in EVERY_UNIT if one.status is not Status.AVAILABLE])
def test_a_late_deposit_for_a_unit_that_is_gone_is_due_back(status: BookingStatus, found_unit: Unit) -> None:
    claim = {Status.HELD: OPEN, Status.RESERVED: RESERVED, Status.SOLD: SOLD}.get(found_unit.status)
    others = None if claim is None else booking(claim, number=OTHER_NUMBER)
    found = after_the_end(status, found_unit, others, buyer=BUYER, signed_at=NOW - 2 * MINUTE)
    decision = confirm(found)
    assert decision.unit is found_unit
    assert decision.events == ()
    due = changed(decision)
    assert due == found.others[NUMBER]._replace(status=REFUND_DUE, deposit_confirmed_at=NOW)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (claimed(OPEN), "The buyer has not signed yet; the hold ends at 2026-11-14T09:31:00.000Z."),
        (after_the_end(LAPSED), "The booking ended without a signature (lapsed): pay the money back."),
        (after_the_end(CANCELLED), "The booking ended without a signature (cancelled): pay the money back."),
        (
            claimed(SOLD, **WALKED_IN),
            "This sale was closed without a hold; there is no deposit to confirm.",
        ),
    ],
)
def test_a_deposit_without_a_signature_learns_what_to_do(found: UnitSnapshot, sentence: str) -> None:
    with pytest.raises(NotSigned) as refused:
        confirm(found)
    assert str(refused.value) == sentence


def test_the_deposit_of_a_unit_is_that_of_its_booking() -> None:
    decision = booking_actions.confirm_deposit_of_unit(claimed(SIGNED), "A-101", Caller.STAFF, PERIODS, NOW)
    assert changed(decision).status is RESERVED
    with pytest.raises(NotSigned):
        booking_actions.confirm_deposit_of_unit(claimed(OPEN), "A-101", Caller.STAFF, PERIODS, NOW)


@pytest.mark.parametrize("found", [one for one in EVERY_UNIT if one.status is not Status.HELD])
def test_there_is_a_deposit_of_held_units_alone(found: Unit) -> None:
    with pytest.raises(TransitionNotAllowed):
        booking_actions.confirm_deposit_of_unit(snapshot(found), "A-101", Caller.STAFF, PERIODS, NOW)
