"""Actions on bookings and their units: from the hold to the sale and every way out, in every status."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

import pytest

from holdfast.domain import booking_actions, errors
from holdfast.domain.booking import NOBODY, BookingStatus, Buyer, Slots, end, new_agreement, unit_terms
from holdfast.domain.decision import UNCONDITIONAL, Decision, UnitSnapshot, apply, describe_change, patch
from holdfast.domain.errors import HoldLapsed, NotSigned, TransitionNotAllowed
from holdfast.domain.holds import HoldRequest, open_unit
from holdfast.domain.seller import NOBODY_NAMED
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import Unit
from tests.domain.bookings import (
    ACTIONS,
    ANOTHER_BUYER,
    BUYER,
    DRAFT,
    HAS_SIGNED,
    NUMBER,
    OTHER_NUMBER,
    PERIODS,
    UNIT_STATUS,
    WALK_IN,
    after_the_end,
    booking,
    changed,
    claimed,
    event_summary,
    found_booking,
    in_status,
    unchanged,
)
from tests.domain.units import DAY, FIELDS, MILLISECOND, MINUTE, NOW, snapshot, unit

OPEN, SIGNED, RESERVED, SOLD, LAPSED, CANCELLED, REFUND_DUE, REFUNDED = BookingStatus
PAID = [RESERVED, SOLD, REFUND_DUE, REFUNDED]
CANCELS = ("cancel", "cancel as buyer")
EVERY_UNIT = [*map(unit, Status), unit(Status.UNAVAILABLE, archived=True)]

# What each of the eight statuses makes of each action, in their order; None: transition-not-allowed.
TABLE: dict[str, list[BookingStatus | type[errors.Conflict] | None]] = {
    "sign": [SIGNED, SIGNED, RESERVED, SOLD, HoldLapsed, None, None, None],
    "cancel": [CANCELLED, CANCELLED, REFUND_DUE, None, None, None, None, None],
    "cancel as buyer": [CANCELLED, CANCELLED, None, None, HoldLapsed, CANCELLED, None, None],
    "extend": [OPEN, SIGNED, RESERVED, None, None, None, None, None],
    "confirm": [NotSigned, RESERVED, RESERVED, SOLD, NotSigned, NotSigned, REFUND_DUE, REFUNDED],
    "close": [None, None, SOLD, None, None, None, None, None],
    "refund": [None, None, None, None, None, None, REFUNDED, REFUNDED],
    "reissue": list(BookingStatus),
    "erase": [None, None, None, SOLD, LAPSED, CANCELLED, None, REFUNDED],
}


@pytest.mark.parametrize("status", BookingStatus)
@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_on_a_booking_in_every_status(name: str, status: BookingStatus) -> None:
    found, outcome = in_status(status), TABLE[name][list(BookingStatus).index(status)]
    assert found.unit is not None
    if isinstance(outcome, BookingStatus):
        assert changed(ACTIONS[name](found)).status is outcome
        return
    with pytest.raises(outcome or TransitionNotAllowed) as refused:
        ACTIONS[name](found)
    assert refused.value.status is found.unit.status


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("found", [snapshot(None), snapshot(unit())], ids=["no unit", "no booking"])
def test_a_booking_that_does_not_exist_is_unknown(name: str, found: UnitSnapshot) -> None:
    with pytest.raises(errors.UnknownBooking) as refused:
        ACTIONS[name](found)
    assert str(NUMBER) not in str(refused.value)


NOT_ENDED = "The booking is %s: it must end or be sold before its buyer's data can be erased."
NO_SIGNATURE = "The booking ended without a signature (%s): refund the payment."
NO_HOLD = "This sale was closed without a hold; there is no deposit to confirm."
DUE_BACK = "The deposit must be refunded: record the refund, then erase the buyer's data."
LAPSED_FREE, LAPSED_TAKEN = "The hold has lapsed. The unit is available again.", "The hold has lapsed."


@pytest.mark.parametrize(
    ("name", "found", "sentence"),
    [
        ("sign", claimed(SOLD, **WALK_IN), "`sign` is not possible: the booking is sold."),
        ("sign", after_the_end(LAPSED), LAPSED_FREE),
        ("sign", after_the_end(LAPSED, unit(Status.HELD)), LAPSED_TAKEN),
        ("sign", after_the_end(LAPSED, unit(Status.UNAVAILABLE)), LAPSED_TAKEN),
        ("cancel as buyer", after_the_end(LAPSED), LAPSED_FREE),
        ("cancel as buyer", after_the_end(LAPSED, unit(Status.HELD)), LAPSED_TAKEN),
        ("cancel as buyer", claimed(RESERVED), "The deposit is confirmed, so only the seller can cancel."),
        ("confirm", claimed(), "The buyer has not signed yet; the hold ends at 2026-11-14T09:31:00.000Z."),
        ("confirm", after_the_end(LAPSED), NO_SIGNATURE % "lapsed"),
        ("confirm", after_the_end(CANCELLED), NO_SIGNATURE % "cancelled"),
        ("confirm", claimed(SOLD, **WALK_IN), NO_HOLD),
        ("close", claimed(OPEN), "The deposit is not confirmed yet."),
        ("close", claimed(SIGNED), "The deposit is not confirmed yet."),
        *(("erase", claimed(status), NOT_ENDED % status) for status in (OPEN, SIGNED, RESERVED)),
        ("erase", after_the_end(REFUND_DUE), DUE_BACK),
    ],
)
def test_a_refusal_says_what_to_do(name: str, found: UnitSnapshot, sentence: str) -> None:
    with pytest.raises(errors.Conflict) as refused:
        ACTIONS[name](found)
    assert str(refused.value) == sentence
    assert refused.value.retry_after_seconds is None


@pytest.mark.parametrize("name", ["cancel", "extend", "close"])
@pytest.mark.parametrize("status", [OPEN, RESERVED])
def test_an_ended_booking_does_nothing_to_the_claim_of_others(name: str, status: BookingStatus) -> None:
    found = after_the_end(CANCELLED, unit(UNIT_STATUS[status]), booking(status, number=OTHER_NUMBER))
    with pytest.raises(TransitionNotAllowed):
        ACTIONS[name](found)
    assert unchanged(ACTIONS["cancel as buyer"](found), found)


# Sign


def test_a_signature_changes_the_booking_and_not_the_unit() -> None:
    found = claimed(slots=Slots(1, 2))
    decision = ACTIONS["sign"](found)
    assert decision.unit is found.unit
    assert decision.events == ()
    agreement = changed(decision).agreement
    assert changed(decision) == found_booking(found)._replace(
        status=SIGNED, buyer=BUYER, signed_at=NOW, agreement=agreement
    )


@pytest.mark.parametrize("status", [SIGNED, RESERVED, SOLD])
def test_a_second_signature_may_only_repeat_the_first(status: BookingStatus) -> None:
    found = claimed(status)
    assert unchanged(ACTIONS["sign"](found), found)
    with pytest.raises(TransitionNotAllowed):
        booking_actions.sign(found, NUMBER, ANOTHER_BUYER, NOW)


def test_an_agreement_that_has_changed_since_it_was_read_is_not_signed() -> None:
    agreement = new_agreement(FIELDS, "Palm Court", "ar", NOBODY_NAMED)
    with pytest.raises(errors.AgreementChanged):
        booking_actions.sign(claimed(), NUMBER, BUYER, NOW, "ar", agreement._replace(area_sqm=Decimal(1)))
    signed = booking_actions.sign(claimed(), NUMBER, BUYER, NOW, "ar", agreement)
    assert changed(signed).agreement == agreement


# Cancel and extend


@pytest.mark.parametrize(
    ("status", "name", "outcome", "action"),
    [
        *((status, name, CANCELLED, Action.CANCEL_HOLD) for status in (OPEN, SIGNED) for name in CANCELS),
        (RESERVED, "cancel", REFUND_DUE, Action.CANCEL_RESERVATION),
    ],
)
def test_a_cancelled_booking_releases_the_unit_and_a_deposit_is_due_back(
    status: BookingStatus, name: str, outcome: BookingStatus, action: Action
) -> None:
    decision = ACTIONS[name](claimed(status, slots=Slots(1, 2)))
    assert event_summary(decision) == [("unit.released", UNIT_STATUS[status], "available", None)]
    assert (decision.unit.hold_expires_at, decision.unit.reserved_until) == (None, None)
    ended = changed(decision)
    assert (ended.status, decision.action) == (outcome, action)
    assert (ended.ended_at, ended.slots) == (decision.unit.updated_at, Slots())


def extend_both_ways(found: UnitSnapshot, until: datetime | None) -> list[Decision]:
    return [
        booking_actions.extend(found, "A-101", Caller.STAFF, until, PERIODS, NOW),
        booking_actions.extend_booking(found, NUMBER, Caller.STAFF, until, PERIODS, NOW),
    ]


@pytest.mark.parametrize("status", [OPEN, SIGNED, RESERVED])
def test_an_extension_moves_the_end_of_unit_and_booking_alike(status: BookingStatus) -> None:
    found, period = claimed(status), 2 * DAY if status is RESERVED else 2 * MINUTE
    for until, later in ((None, NOW + MINUTE + period), (NOW + 3 * DAY, NOW + 3 * DAY)):
        for decision in extend_both_ways(found, until):
            assert changed(decision).ends_at == later
            assert (decision.unit.hold_expires_at or decision.unit.reserved_until) == later
            assert (decision.unit.status, decision.unit.version) == (UNIT_STATUS[status], 8)
            assert decision.events == ()
    # The same end again, after a response that got lost.
    assert all(unchanged(decision, found) for decision in extend_both_ways(found, NOW + MINUTE))
    with pytest.raises(errors.InvalidInput):
        extend_both_ways(found, NOW + MINUTE - MILLISECOND)


@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.PAYMENT_SYSTEM, Caller.API, Caller.CLOCK])
def test_only_staff_extend(caller: Caller) -> None:
    with pytest.raises(TransitionNotAllowed):
        booking_actions.extend(claimed(), "A-101", caller, None, PERIODS, NOW)


# Deposits


def confirm(found: UnitSnapshot, payment_id: str | None = "pay_1") -> Decision:
    return booking_actions.confirm_deposit(found, NUMBER, Caller.PAYMENT_SYSTEM, PERIODS, NOW, payment_id)


@pytest.mark.parametrize("payment_id", [None, "pay_1"])
def test_a_confirmed_deposit_reserves_the_unit_and_keeps_its_payment(payment_id: str | None) -> None:
    found = claimed(SIGNED, slots=Slots(1, 2))
    decision = confirm(found, payment_id)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.RESERVED, None)
    reserved = changed(decision)
    assert reserved.reserved_until == decision.unit.reserved_until == NOW + 2 * DAY
    assert event_summary(decision) == [("unit.reserved", "held", "reserved", reserved.reference)]
    assert (reserved.status, reserved.deposit_confirmed_at, reserved.slots) == (RESERVED, NOW, Slots())
    assert reserved.payment_id == payment_id
    # The payment is the author of the change, and not part of it.
    change = describe_change(found, decision)
    assert change.after["booking_status"] == RESERVED
    assert "payment_id" not in change.after


@pytest.mark.parametrize("status", PAID)
def test_a_deposit_is_confirmed_once_and_a_second_payment_is_refused(status: BookingStatus) -> None:
    found = in_status(status, payment_id="pay_1")
    assert unchanged(confirm(found), found)
    assert unchanged(confirm(found, None), found)
    with pytest.raises(TransitionNotAllowed) as refused:
        confirm(found, "pay_2")
    sentence = "The deposit was paid by the payment pay_1: refund pay_2 to the buyer."
    assert str(refused.value) == sentence


@pytest.mark.parametrize("status", [RESERVED, SOLD, REFUND_DUE])
def test_a_deposit_that_staff_confirmed_takes_the_payment_reported_later(status: BookingStatus) -> None:
    found = in_status(status)
    decision = confirm(found)
    assert changed(decision) == found_booking(found)._replace(payment_id="pay_1")
    assert (decision.unit, decision.events) == (found.unit, ())
    later = apply(found, decision)
    assert unchanged(confirm(later), later)


def test_a_payment_of_a_deposit_that_staff_confirmed_and_refunded_is_refused() -> None:
    found = in_status(REFUNDED)
    with pytest.raises(TransitionNotAllowed) as refused:
        confirm(found)
    sentence = "The deposit was refunded before: refund pay_1 too, unless it is the payment refunded."
    assert str(refused.value) == sentence
    assert unchanged(confirm(found, None), found)


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
def test_a_late_deposit_reserves_a_free_unit_again_on_the_terms_agreed(status: BookingStatus) -> None:
    found = after_the_end(status, **HAS_SIGNED)
    before = found_booking(found)
    decision = confirm(found)
    again = changed(decision)
    assert event_summary(decision) == [
        ("unit.held", "available", "held", None),
        ("unit.reserved", "held", "reserved", before.reference),
    ]
    first, second = decision.events
    assert (first.unit_version, second.unit_version) == (8, 9)
    assert first.created_at < second.created_at == decision.unit.updated_at
    assert (again.status, again.ended_at, again.terms) == (RESERVED, None, before.terms)
    assert (again.deposit_confirmed_at, again.payment_id) == (NOW, "pay_1")
    assert (decision.unit.status, decision.unit.reserved_until) == (Status.RESERVED, again.reserved_until)
    assert decision.unit.hold_expires_at is None


@pytest.mark.parametrize("status", [LAPSED, CANCELLED])
@pytest.mark.parametrize("found_unit", [one for one in EVERY_UNIT if one.status is not Status.AVAILABLE])
def test_a_late_deposit_for_a_unit_that_is_gone_is_due_back(status: BookingStatus, found_unit: Unit) -> None:
    claim = {Status.HELD: OPEN, Status.RESERVED: RESERVED, Status.SOLD: SOLD}.get(found_unit.status)
    others = None if claim is None else booking(claim, number=OTHER_NUMBER)
    found = after_the_end(status, found_unit, others, **HAS_SIGNED)
    decision = confirm(found)
    assert (decision.unit, decision.events) == (found_unit, ())
    assert changed(decision) == found_booking(found)._replace(
        status=REFUND_DUE, deposit_confirmed_at=NOW, payment_id="pay_1"
    )
    later = apply(found, decision)
    assert unchanged(confirm(later), later)
    with pytest.raises(TransitionNotAllowed):
        confirm(later, "pay_2")


def confirm_of_unit(found: UnitSnapshot) -> Decision:
    return booking_actions.confirm_deposit_of_unit(found, "A-101", Caller.STAFF, PERIODS, NOW)


def test_the_deposit_of_a_unit_is_that_of_its_booking_and_held_units_alone_have_one() -> None:
    assert changed(confirm_of_unit(claimed(SIGNED))).status is RESERVED
    with pytest.raises(NotSigned):
        confirm_of_unit(claimed(OPEN))
    for found in EVERY_UNIT:
        with pytest.raises(TransitionNotAllowed):
            confirm_of_unit(snapshot(found))


# Sales


def close(found: UnitSnapshot, buyer: Buyer | None = None) -> Decision:
    return booking_actions.close_sale(found, "A-101", DRAFT, buyer, Caller.STAFF, NOW)


@pytest.mark.parametrize("do", [close, ACTIONS["close"]], ids=["of the unit", "of the booking"])
def test_the_sale_of_a_reserved_unit_is_closed(do: Callable[[UnitSnapshot], Decision]) -> None:
    found = claimed(RESERVED)
    decision = do(found)
    sold = changed(decision)
    assert sold == found_booking(found)._replace(status=SOLD, closed_at=NOW)
    assert event_summary(decision) == [("unit.sold", "reserved", "sold", sold.reference)]
    assert (decision.unit.status, decision.unit.reserved_until) == (Status.SOLD, None)


def test_an_available_unit_is_sold_to_a_walk_in_buyer_who_must_be_named() -> None:
    decision = close(snapshot(unit()), BUYER)
    sold = changed(decision)
    assert (sold.status, sold.buyer, sold.number) == (SOLD, BUYER, DRAFT.number)
    assert (sold.closed_at, sold.hold_expires_at, sold.deposit_confirmed_at) == (NOW, None, None)
    assert sold.terms == unit_terms(FIELDS)
    assert event_summary(decision) == [("unit.sold", "available", "sold", sold.reference)]
    with pytest.raises(errors.InvalidInput) as refused:
        close(snapshot(unit()))
    message = "This field is required: the unit is available."
    pointers = ("/buyerName", "/buyerEmail", "/buyerPhone")
    assert refused.value.faults == tuple((pointer, message) for pointer in pointers)


def test_the_buyer_of_a_reserved_unit_is_known_already() -> None:
    with pytest.raises(TransitionNotAllowed, match="its booking names the buyer") as refused:
        close(claimed(RESERVED), BUYER)
    assert refused.value.fields == ("buyer_name", "buyer_email", "buyer_phone")


def test_nothing_else_is_sold() -> None:
    for found in (claimed(OPEN), claimed(SIGNED), claimed(SOLD), snapshot(unit(Status.UNAVAILABLE))):
        for buyer in (None, BUYER):
            with pytest.raises(TransitionNotAllowed):
                close(found, buyer)


# Actions on a unit, which end its booking

UNCLAIMED = (Status.AVAILABLE, Status.UNAVAILABLE)
MOVES = [
    (Action.CANCEL_HOLD, {Status.HELD}, Status.AVAILABLE),
    (Action.CANCEL_RESERVATION, {Status.RESERVED}, Status.AVAILABLE),
    (Action.PUT_ON_SALE, {Status.UNAVAILABLE}, Status.AVAILABLE),
    (Action.TAKE_OFF_SALE, {Status.AVAILABLE, Status.HELD, Status.RESERVED}, Status.UNAVAILABLE),
    (Action.ARCHIVE, set(Status) - {Status.SOLD}, Status.UNAVAILABLE),
    (Action.REVOKE_SALE, {Status.SOLD}, Status.UNAVAILABLE),
]
FOUND = [*map(in_status, BookingStatus), claimed(SOLD, **WALK_IN), *map(snapshot, map(unit, UNCLAIMED))]


def change_status(found: UnitSnapshot, action: Action) -> Decision:
    return booking_actions.change_status(found, "A-101", action, Caller.ADMIN, NOW)


@pytest.mark.parametrize(("action", "sources", "target"), MOVES)
@pytest.mark.parametrize("found", FOUND)
def test_an_action_on_a_unit_ends_its_booking(
    action: Action, sources: set[Status], target: Status, found: UnitSnapshot
) -> None:
    assert found.unit is not None
    if found.unit.status not in sources:
        with pytest.raises(TransitionNotAllowed) as refused:
            change_status(found, action)
        assert refused.value.status is found.unit.status
        return
    decision = change_status(found, action)
    assert (decision.unit.status, decision.unit.archived) == (target, action is Action.ARCHIVE)
    assert (decision.unit.hold_expires_at, decision.unit.reserved_until) == (None, None)
    assert [event.previous_status for event in decision.events] == [found.unit.status]
    assert decision.booking == (found.booking and end(found.booking, decision.unit.updated_at))


def test_no_action_finds_a_unit_that_does_not_exist() -> None:
    for do in (
        close,
        confirm_of_unit,
        lambda found: open_unit(found, "A-101", HoldRequest(DRAFT, Caller.BUYER, PERIODS), NOW),
        lambda found: patch(found, "A-101", {}, None, UNCONDITIONAL, NOW),
        lambda found: change_status(found, Action.ARCHIVE),
        lambda found: booking_actions.extend(found, "A-101", Caller.STAFF, None, PERIODS, NOW),
    ):
        with pytest.raises(errors.UnknownUnit):
            do(snapshot(None))


def test_a_unit_whose_booking_is_missing_is_extended_but_neither_reserved_nor_sold() -> None:
    """A row that somebody changed by hand."""
    with pytest.raises(TransitionNotAllowed, match="not through a booking in Holdfast"):
        close(snapshot(unit(Status.RESERVED)))
    held = snapshot(unit(Status.HELD))
    with pytest.raises(TransitionNotAllowed, match="not through a booking in Holdfast"):
        confirm_of_unit(held)
    later = booking_actions.extend(held, "A-101", Caller.STAFF, None, PERIODS, NOW)
    assert (later.booking, later.unit.hold_expires_at) == (None, NOW + 3 * MINUTE)


# Refunds, links, and buyers who are erased


def test_a_refund_is_marked_once() -> None:
    due = after_the_end(REFUND_DUE)
    refunded = changed(ACTIONS["refund"](due))
    assert refunded == found_booking(due)._replace(status=REFUNDED, refunded_at=NOW)
    found = after_the_end(REFUNDED)
    assert unchanged(ACTIONS["refund"](found), found)


@pytest.mark.parametrize("status", BookingStatus)
def test_a_new_link_changes_the_token_and_nothing_else(status: BookingStatus) -> None:
    found = in_status(status)
    decision = ACTIONS["reissue"](found)
    assert changed(decision) == found_booking(found)._replace(token_hash=b"new")
    assert decision.unit is found.unit
    # The same command again, after a lost commit.
    again = apply(found, decision)
    assert unchanged(ACTIONS["reissue"](again), again)


@pytest.mark.parametrize("status", [SOLD, LAPSED, CANCELLED, REFUNDED])
def test_only_the_buyers_personal_data_is_erased_and_once(status: BookingStatus) -> None:
    found = in_status(status)
    decision = ACTIONS["erase"](found)
    before = found_booking(found)
    assert changed(decision) == before._replace(buyer=None, holder=NOBODY, buyer_erased_at=NOW)
    assert (decision.unit, decision.events, decision.action) == (found.unit, (), "erase-buyer")
    assert describe_change(found, decision) == ({}, {})
    again = apply(found, decision)
    assert unchanged(booking_actions.erase_buyer(again, NUMBER, NOW + MINUTE), again)


def test_a_late_deposit_of_an_erased_buyer_is_due_back_though_the_unit_is_free() -> None:
    found = after_the_end(LAPSED, **HAS_SIGNED)
    decision = confirm(apply(found, ACTIONS["erase"](found)))
    assert changed(decision).status is REFUND_DUE
    assert (decision.unit.status, decision.events) == (Status.AVAILABLE, ())


# What is offered

OFFERED = {
    OPEN: {"extend", "cancel"},
    SIGNED: {"confirm-deposit", "extend", "cancel"},
    RESERVED: {"close-sale", "extend", "cancel"},
    REFUND_DUE: {"mark-refunded"},
}


def possible(found: UnitSnapshot) -> dict[booking_actions.BookingAction, Decision]:
    return booking_actions.possible_actions(found, NUMBER, Caller.STAFF, PERIODS, NOW)


@pytest.mark.parametrize("status", BookingStatus)
def test_the_actions_that_would_change_a_booking_are_offered(status: BookingStatus) -> None:
    offered = OFFERED.get(status, {"erase-buyer"})
    assert set(map(str, possible(in_status(status)))) == {"reissue-link", *offered}


def test_what_is_offered_depends_on_the_unit_and_on_what_was_done() -> None:
    confirm_deposit = booking_actions.BookingAction.CONFIRM_DEPOSIT
    free = after_the_end(LAPSED, **HAS_SIGNED)
    assert changed(possible(free)[confirm_deposit]).status is RESERVED
    taken = after_the_end(LAPSED, unit(Status.HELD), booking(number=OTHER_NUMBER), **HAS_SIGNED)
    assert changed(possible(taken)[confirm_deposit]).status is REFUND_DUE
    erased = after_the_end(REFUNDED, buyer_erased_at=NOW, buyer=None)
    assert set(possible(erased)) == {booking_actions.BookingAction.REISSUE_LINK}
