"""From the hold to the sale and every way out, for bookings in every status."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast.domain import selling
from holdfast.domain.booking import CLAIMING, NO_SLOTS, BookingStatus, Slots
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.refusals import (
    HoldLapsed,
    InvalidInput,
    NotSigned,
    TransitionNotAllowed,
    UnknownBooking,
)
from holdfast.domain.status import Action, Caller, Status
from holdfast.domain.unit import Unit
from tests.domain.bookings import (
    ANOTHER_BUYER,
    BUYER,
    ENDED,
    MILLISECOND,
    NUMBER,
    OTHER_NUMBER,
    PERIODS,
    UNIT_STATUS,
    after_the_end,
    booking,
    changed,
    claimed,
    in_status,
    told,
)
from tests.domain.units import MINUTE, NOW, standing, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
DAY = timedelta(days=1)
EVERY_UNIT = [unit(status) for status in Status] + [unit(Status.UNAVAILABLE, archived=True)]


def unchanged(decision: Decision, found: Standing) -> bool:
    same_booking = decision.booking is found.booking_numbered(NUMBER)
    return decision.unit is found.unit and same_booking and not decision.events


ON_BOOKINGS: dict[str, Callable[[Standing], Decision]] = {
    "sign": lambda found: selling.sign(found, NUMBER, BUYER, NOW),
    "cancel": lambda found: selling.cancel(found, NUMBER, Caller.STAFF, NOW),
    "extend": lambda found: selling.extend_booking(found, NUMBER, Caller.STAFF, None, PERIODS, NOW),
    "confirm": lambda found: selling.confirm_deposit(found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW),
    "close": lambda found: selling.close_sale_of_booking(found, NUMBER, Caller.STAFF, NOW),
    "refund": lambda found: selling.mark_refunded(found, NUMBER, NOW),
    "reissue": lambda found: selling.reissue_link(found, NUMBER, b"new"),
}


@pytest.mark.parametrize("do", ON_BOOKINGS.values(), ids=ON_BOOKINGS)
@pytest.mark.parametrize("found", [standing(None), standing(unit())], ids=["no unit", "no booking"])
def test_a_booking_that_is_not_there_is_unknown(do: Callable[[Standing], Decision], found: Standing) -> None:
    with pytest.raises(UnknownBooking):
        do(found)


# What each of the eight statuses makes of each action, in their order; None: transition-not-allowed.
TABLE: dict[str, list[BookingStatus | type[Exception] | None]] = {
    "sign": [SIGNED, SIGNED, RESERVED, SOLD, HoldLapsed, None, None, None],
    "cancel": [CANCELLED, CANCELLED, REFUND_DUE, None, None, None, None, None],
    "extend": [OPEN, SIGNED, RESERVED, None, None, None, None, None],
    "confirm": [NotSigned, RESERVED, RESERVED, SOLD, NotSigned, NotSigned, REFUND_DUE, REFUNDED],
    "close": [None, None, SOLD, None, None, None, None, None],
    "refund": [None, None, None, None, None, None, REFUNDED, REFUNDED],
    "reissue": list(BookingStatus),
}


@pytest.mark.parametrize(
    ("name", "status", "outcome"),
    [
        (name, status, outcome)
        for name, row in TABLE.items()
        for status, outcome in zip(BookingStatus, row, strict=True)
    ],
)
def test_every_action_on_a_booking_in_every_status(
    name: str, status: BookingStatus, outcome: BookingStatus | type[Exception] | None
) -> None:
    found = in_status(status)
    assert found.unit is not None
    if isinstance(outcome, BookingStatus):
        assert changed(ON_BOOKINGS[name](found)).status is outcome
        return
    with pytest.raises(outcome or TransitionNotAllowed) as refused:
        ON_BOOKINGS[name](found)
    assert refused.value.status is found.unit.status  # type: ignore[attr-defined]


# Sign


def test_a_signature_changes_the_booking_and_not_the_unit() -> None:
    found = claimed(slots=Slots(1, 2))
    decision = selling.sign(found, NUMBER, BUYER, NOW)
    assert decision.unit is found.unit
    assert decision.events == ()
    assert found.booking is not None
    assert changed(decision) == found.booking._replace(status=SIGNED, buyer=BUYER, signed_at=NOW)


@pytest.mark.parametrize("status", [SIGNED, RESERVED, SOLD])
def test_a_second_signature_may_only_repeat_the_first(status: BookingStatus) -> None:
    found = claimed(status)
    assert unchanged(selling.sign(found, NUMBER, BUYER, NOW), found)
    with pytest.raises(TransitionNotAllowed):
        selling.sign(found, NUMBER, ANOTHER_BUYER, NOW)


# Cancel


@pytest.mark.parametrize("status", [OPEN, SIGNED])
@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.STAFF])
def test_a_cancelled_hold_releases_the_unit(status: BookingStatus, caller: Caller) -> None:
    found = claimed(status, slots=Slots(1, 2))
    decision = selling.cancel(found, NUMBER, caller, NOW)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.AVAILABLE, None)
    assert told(decision) == [("unit.released", "held", "available", None)]
    assert decision.action == Action.CANCEL_HOLD
    ended = changed(decision)
    assert (ended.status, ended.ended_at, ended.slots) == (CANCELLED, decision.unit.updated_at, NO_SLOTS)


def test_staff_cancel_a_reservation_and_the_deposit_is_due_back() -> None:
    decision = selling.cancel(claimed(RESERVED), NUMBER, Caller.STAFF, NOW)
    assert told(decision) == [("unit.released", "reserved", "available", None)]
    assert decision.action == Action.CANCEL_RESERVATION
    assert changed(decision).status is REFUND_DUE


def test_a_buyer_who_cancels_again_is_not_refused() -> None:
    found = after_the_end(CANCELLED)
    assert unchanged(selling.cancel(found, NUMBER, Caller.BUYER, NOW), found)


@pytest.mark.parametrize(
    ("status", "refusal"),
    [(RESERVED, TransitionNotAllowed), (SOLD, TransitionNotAllowed), (LAPSED, HoldLapsed)]
    + [(status, TransitionNotAllowed) for status in (REFUND_DUE, REFUNDED)],
)
def test_a_buyer_cancels_nothing_but_a_hold(status: BookingStatus, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        selling.cancel(in_status(status), NUMBER, Caller.BUYER, NOW)


def test_an_ended_booking_cannot_cancel_the_hold_of_somebody_else() -> None:
    others = booking(OPEN, number=OTHER_NUMBER)
    found = after_the_end(CANCELLED, unit(Status.HELD), others)
    assert unchanged(selling.cancel(found, NUMBER, Caller.BUYER, NOW), found)
    with pytest.raises(TransitionNotAllowed):
        selling.cancel(found, NUMBER, Caller.STAFF, NOW)


# Extend


@pytest.mark.parametrize(
    ("status", "period"), [(OPEN, 2 * MINUTE), (SIGNED, 2 * MINUTE), (RESERVED, 2 * DAY)]
)
@pytest.mark.parametrize("until", [None, NOW + 3 * DAY])
def test_an_extension_moves_the_end_of_unit_and_booking_alike(
    status: BookingStatus, period: timedelta, until: object
) -> None:
    found = claimed(status)
    assert found.unit is not None
    asked = None if until is None else NOW + 3 * DAY
    for decision in (
        selling.extend(found, "A-101", Caller.STAFF, asked, PERIODS, NOW),
        selling.extend_booking(found, NUMBER, Caller.STAFF, asked, PERIODS, NOW),
    ):
        later = asked or NOW + MINUTE + period
        assert changed(decision).ends_at == later
        assert (decision.unit.hold_expires_at or decision.unit.reserved_until) == later
        assert (decision.unit.status, decision.unit.version) == (found.unit.status, found.unit.version + 1)
        assert decision.events == ()


@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.PAYMENT_SYSTEM, Caller.API, Caller.CLOCK])
def test_none_but_staff_extend(caller: Caller) -> None:
    with pytest.raises(TransitionNotAllowed):
        selling.extend(claimed(), "A-101", caller, None, PERIODS, NOW)


def test_the_end_is_not_moved_nearer() -> None:
    with pytest.raises(InvalidInput):
        selling.extend(claimed(), "A-101", Caller.STAFF, NOW + MINUTE, PERIODS, NOW)


def test_an_ended_booking_cannot_extend_the_hold_of_somebody_else() -> None:
    found = after_the_end(LAPSED, unit(Status.HELD), booking(OPEN, number=OTHER_NUMBER))
    with pytest.raises(TransitionNotAllowed):
        selling.extend_booking(found, NUMBER, Caller.STAFF, None, PERIODS, NOW)


# Confirm the deposit


def test_a_confirmed_deposit_reserves_the_unit() -> None:
    found = claimed(SIGNED, slots=Slots(1, 2))
    decision = selling.confirm_deposit(found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.RESERVED, None)
    assert decision.unit.reserved_until == NOW + 2 * DAY
    reserved = changed(decision)
    assert told(decision) == [("unit.reserved", "held", "reserved", reserved.reference)]
    assert (reserved.status, reserved.deposit_confirmed_at, reserved.slots) == (RESERVED, NOW, NO_SLOTS)
    assert reserved.reserved_until == NOW + 2 * DAY


@pytest.mark.parametrize("status", [RESERVED, SOLD, REFUND_DUE, REFUNDED])
def test_a_deposit_is_confirmed_once(status: BookingStatus) -> None:
    found = in_status(status)
    assert unchanged(ON_BOOKINGS["confirm"](found), found)


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
def test_a_late_deposit_reserves_a_free_unit_again_on_the_terms_agreed(status: BookingStatus) -> None:
    found = after_the_end(status, buyer=BUYER, signed_at=NOW - 2 * MINUTE)
    before = found.others[NUMBER]
    assert found.unit is not None
    decision = ON_BOOKINGS["confirm"](found)
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
    decision = ON_BOOKINGS["confirm"](found)
    assert decision.unit is found_unit
    assert decision.events == ()
    due = changed(decision)
    assert due == found.others[NUMBER]._replace(status=REFUND_DUE, deposit_confirmed_at=NOW)


def test_the_deposit_of_a_unit_is_that_of_its_booking() -> None:
    decision = selling.confirm_deposit_of_unit(claimed(SIGNED), "A-101", Caller.STAFF, PERIODS, NOW)
    assert changed(decision).status is RESERVED
    with pytest.raises(NotSigned):
        selling.confirm_deposit_of_unit(claimed(OPEN), "A-101", Caller.STAFF, PERIODS, NOW)


@pytest.mark.parametrize("found", [one for one in EVERY_UNIT if one.status is not Status.HELD])
def test_there_is_a_deposit_of_held_units_alone(found: Unit) -> None:
    with pytest.raises(TransitionNotAllowed):
        selling.confirm_deposit_of_unit(standing(found), "A-101", Caller.STAFF, PERIODS, NOW)


# Refunds and links


def test_a_refund_is_marked_once() -> None:
    due = after_the_end(REFUND_DUE)
    refunded = changed(selling.mark_refunded(due, NUMBER, NOW))
    assert refunded == due.others[NUMBER]._replace(status=REFUNDED, refunded_at=NOW)
    found = after_the_end(REFUNDED)
    assert unchanged(selling.mark_refunded(found, NUMBER, NOW + MILLISECOND), found)


@pytest.mark.parametrize("status", BookingStatus)
def test_a_new_link_changes_the_token_and_nothing_else(status: BookingStatus) -> None:
    found = in_status(status)
    before = found.booking_numbered(NUMBER)
    assert before is not None
    decision = selling.reissue_link(found, NUMBER, b"new")
    assert (changed(decision), decision.unit) == (before._replace(token_hash=b"new"), found.unit)
    # The same command again, after a lost commit.
    assert unchanged(selling.reissue_link(found, NUMBER, before.token_hash), found)


def test_every_status_of_a_booking_that_claims_has_its_status_of_the_unit() -> None:
    assert set(UNIT_STATUS) == CLAIMING
    assert CLAIMING.isdisjoint(ENDED)
