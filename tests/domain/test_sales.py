"""From the hold to the sale and every way out, for bookings in every status."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from holdfast.domain import booking_actions
from holdfast.domain.booking import CLAIMING, NO_SLOTS, BookingStatus, Slots, new_agreement
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import (
    AgreementChanged,
    HoldLapsed,
    InvalidInput,
    NotSigned,
    TransitionNotAllowed,
    UnknownBooking,
)
from holdfast.domain.references import encode_reference
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
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


ON_BOOKINGS: dict[str, Callable[[UnitSnapshot], Decision]] = {
    "sign": lambda found: booking_actions.sign(found, NUMBER, BUYER, NOW),
    "cancel": lambda found: booking_actions.cancel(found, NUMBER, Caller.STAFF, NOW),
    "extend": lambda found: booking_actions.extend_booking(found, NUMBER, Caller.STAFF, None, PERIODS, NOW),
    "confirm": lambda found: booking_actions.confirm_deposit(
        found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW
    ),
    "close": lambda found: booking_actions.close_sale_of_booking(found, NUMBER, Caller.STAFF, NOW),
    "refund": lambda found: booking_actions.mark_refunded(found, NUMBER, NOW),
    "reissue": lambda found: booking_actions.reissue_link(found, NUMBER, b"new"),
}


@pytest.mark.parametrize("do", ON_BOOKINGS.values(), ids=ON_BOOKINGS)
@pytest.mark.parametrize("found", [snapshot(None), snapshot(unit())], ids=["no unit", "no booking"])
def test_a_booking_that_is_not_there_is_unknown(
    do: Callable[[UnitSnapshot], Decision], found: UnitSnapshot
) -> None:
    with pytest.raises(UnknownBooking) as refused:
        do(found)
    assert encode_reference(NUMBER) in str(refused.value)
    assert str(NUMBER) not in str(refused.value).replace(encode_reference(NUMBER), "")


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
    decision = booking_actions.sign(found, NUMBER, BUYER, NOW)
    assert decision.unit is found.unit
    assert decision.events == ()
    assert found.booking is not None
    assert changed(decision) == found.booking._replace(
        status=SIGNED, buyer=BUYER, signed_at=NOW, agreement=changed(decision).agreement
    )


@pytest.mark.parametrize("status", [SIGNED, RESERVED, SOLD])
def test_a_second_signature_may_only_repeat_the_first(status: BookingStatus) -> None:
    found = claimed(status)
    assert unchanged(booking_actions.sign(found, NUMBER, BUYER, NOW), found)
    with pytest.raises(TransitionNotAllowed):
        booking_actions.sign(found, NUMBER, ANOTHER_BUYER, NOW)


def test_nobody_signs_for_what_they_have_not_read() -> None:
    found = claimed()
    assert found.unit is not None
    agreement = new_agreement(found.unit.fields, found.project.name, "ar")
    with pytest.raises(AgreementChanged):
        booking_actions.sign(found, NUMBER, BUYER, NOW, "ar", agreement._replace(area_sqm=Decimal(1)))
    assert changed(booking_actions.sign(found, NUMBER, BUYER, NOW, "ar", agreement)).agreement == agreement


def test_a_sale_without_a_hold_is_not_signed_afterwards() -> None:
    with pytest.raises(TransitionNotAllowed, match="the booking is sold"):
        booking_actions.sign(claimed(SOLD, **WALKED_IN), NUMBER, BUYER, NOW)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (unit(), "The hold has lapsed. The unit is free again."),
        (unit(Status.HELD), "The hold has lapsed."),
        (unit(Status.UNAVAILABLE), "The hold has lapsed."),
    ],
    ids=["available", "held", "unavailable"],
)
def test_a_lapsed_hold_tells_whether_the_unit_is_free(found: Unit, sentence: str) -> None:
    with pytest.raises(HoldLapsed) as signing:
        booking_actions.sign(after_the_end(LAPSED, found), NUMBER, BUYER, NOW)
    with pytest.raises(HoldLapsed) as cancelling:
        booking_actions.cancel(after_the_end(LAPSED, found), NUMBER, Caller.BUYER, NOW)
    assert str(signing.value) == str(cancelling.value) == sentence


# Cancel


@pytest.mark.parametrize("status", [OPEN, SIGNED])
@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.STAFF])
def test_a_cancelled_hold_releases_the_unit(status: BookingStatus, caller: Caller) -> None:
    found = claimed(status, slots=Slots(1, 2))
    decision = booking_actions.cancel(found, NUMBER, caller, NOW)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.AVAILABLE, None)
    assert told(decision) == [("unit.released", "held", "available", None)]
    assert decision.action == Action.CANCEL_HOLD
    ended = changed(decision)
    assert (ended.status, ended.ended_at, ended.slots) == (CANCELLED, decision.unit.updated_at, NO_SLOTS)


def test_staff_cancel_a_reservation_and_the_deposit_is_due_back() -> None:
    decision = booking_actions.cancel(claimed(RESERVED), NUMBER, Caller.STAFF, NOW)
    assert told(decision) == [("unit.released", "reserved", "available", None)]
    assert decision.action == Action.CANCEL_RESERVATION
    assert changed(decision).status is REFUND_DUE


def test_a_buyer_learns_who_cancels_a_reservation() -> None:
    with pytest.raises(TransitionNotAllowed) as refused:
        booking_actions.cancel(claimed(RESERVED), NUMBER, Caller.BUYER, NOW)
    assert str(refused.value) == "The deposit is confirmed, so only the seller can cancel."
    assert refused.value.retry_after_seconds is None


def test_a_buyer_who_cancels_again_is_not_refused() -> None:
    found = after_the_end(CANCELLED)
    assert unchanged(booking_actions.cancel(found, NUMBER, Caller.BUYER, NOW), found)


@pytest.mark.parametrize(
    ("status", "refusal"),
    [(RESERVED, TransitionNotAllowed), (SOLD, TransitionNotAllowed), (LAPSED, HoldLapsed)]
    + [(status, TransitionNotAllowed) for status in (REFUND_DUE, REFUNDED)],
)
def test_a_buyer_cancels_nothing_but_a_hold(status: BookingStatus, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        booking_actions.cancel(in_status(status), NUMBER, Caller.BUYER, NOW)


def test_an_ended_booking_cannot_cancel_the_hold_of_somebody_else() -> None:
    others = booking(OPEN, number=OTHER_NUMBER)
    found = after_the_end(CANCELLED, unit(Status.HELD), others)
    assert unchanged(booking_actions.cancel(found, NUMBER, Caller.BUYER, NOW), found)
    with pytest.raises(TransitionNotAllowed):
        booking_actions.cancel(found, NUMBER, Caller.STAFF, NOW)


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
        booking_actions.extend(found, "A-101", Caller.STAFF, asked, PERIODS, NOW),
        booking_actions.extend_booking(found, NUMBER, Caller.STAFF, asked, PERIODS, NOW),
    ):
        later = asked or NOW + MINUTE + period
        assert changed(decision).ends_at == later
        assert (decision.unit.hold_expires_at or decision.unit.reserved_until) == later
        assert (decision.unit.status, decision.unit.version) == (found.unit.status, found.unit.version + 1)
        assert decision.events == ()


@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.PAYMENT_SYSTEM, Caller.API, Caller.CLOCK])
def test_none_but_staff_extend(caller: Caller) -> None:
    with pytest.raises(TransitionNotAllowed):
        booking_actions.extend(claimed(), "A-101", caller, None, PERIODS, NOW)


def test_the_end_is_not_moved_nearer() -> None:
    with pytest.raises(InvalidInput):
        booking_actions.extend(claimed(), "A-101", Caller.STAFF, NOW + MINUTE - MILLISECOND, PERIODS, NOW)


@pytest.mark.parametrize("status", [OPEN, SIGNED, RESERVED])
def test_the_same_end_again_changes_nothing(status: BookingStatus) -> None:
    found = claimed(status)
    for decision in (
        booking_actions.extend(found, "A-101", Caller.STAFF, NOW + MINUTE, PERIODS, NOW),
        booking_actions.extend_booking(found, NUMBER, Caller.STAFF, NOW + MINUTE, PERIODS, NOW),
    ):
        assert unchanged(decision, found)


def test_an_ended_booking_cannot_extend_the_hold_of_somebody_else() -> None:
    found = after_the_end(LAPSED, unit(Status.HELD), booking(OPEN, number=OTHER_NUMBER))
    with pytest.raises(TransitionNotAllowed):
        booking_actions.extend_booking(found, NUMBER, Caller.STAFF, None, PERIODS, NOW)


# Refunds and links


def test_a_refund_is_marked_once() -> None:
    due = after_the_end(REFUND_DUE)
    refunded = changed(booking_actions.mark_refunded(due, NUMBER, NOW))
    assert refunded == due.others[NUMBER]._replace(status=REFUNDED, refunded_at=NOW)
    found = after_the_end(REFUNDED)
    assert unchanged(booking_actions.mark_refunded(found, NUMBER, NOW + MILLISECOND), found)


@pytest.mark.parametrize("status", BookingStatus)
def test_a_new_link_changes_the_token_and_nothing_else(status: BookingStatus) -> None:
    found = in_status(status)
    before = found.booking_numbered(NUMBER)
    assert before is not None
    decision = booking_actions.reissue_link(found, NUMBER, b"new")
    assert (changed(decision), decision.unit) == (before._replace(token_hash=b"new"), found.unit)
    # The same command again, after a lost commit.
    assert unchanged(booking_actions.reissue_link(found, NUMBER, before.token_hash), found)


def test_every_status_of_a_booking_that_claims_has_its_status_of_the_unit() -> None:
    assert set(UNIT_STATUS) == CLAIMING
    assert CLAIMING.isdisjoint(ENDED)
