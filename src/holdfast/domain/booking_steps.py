"""The booking that a command is about, and the refusal where its status forbids it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from holdfast.domain.booking import (
    CLAIMING,
    HOLDING,
    NO_SLOTS,
    NOBODY,
    Agreement,
    Booking,
    BookingStatus,
    Buyer,
    Draft,
    agreement_on,
    end,
    new_booking,
    terms_of,
)
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import (
    AgreementChanged,
    BookingChanged,
    DomainError,
    Fault,
    HoldLapsed,
    InvalidInput,
    NotSigned,
    TransitionNotAllowed,
    UnknownBooking,
)
from holdfast.domain.holds import HoldPeriods, later_end, unit_in
from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.references import reference_of
from holdfast.domain.spelling import camel_case, moment_text
from holdfast.domain.status import Action, Caller, Status, transition
from holdfast.domain.unit import Step, Unit, ends_at, move, step_for


def booking_in(standing: UnitSnapshot, number: int) -> tuple[Unit, Booking]:
    """A booking never moves to another unit, so it is there whenever its unit is."""
    booking = standing.booking_numbered(number)
    if standing.unit is None or booking is None:
        raise UnknownBooking(reference_of(number))
    return standing.unit, booking


def refuse_changed(standing: UnitSnapshot, number: int, seen_status: str) -> None:
    unit, booking = booking_in(standing, number)
    if booking.status != seen_status:
        raise BookingChanged(booking.status, unit.status)


def claim_on(standing: UnitSnapshot, unit: Unit, action: str) -> Booking:
    if standing.booking is None:
        message = "The unit is %(unit_status)s, but no booking of Holdfast has made it so."
        detail = Message(message, {"unit_status": unit.status})
        raise TransitionNotAllowed(action, unit.status, detail=detail)
    return standing.booking


def refuse_ended(action: str, unit: Unit, booking: Booking) -> None:
    if booking.status not in CLAIMING:
        raise refusal_of(action, unit, booking)


def refusal_of(action: str, unit: Unit, booking: Booking) -> TransitionNotAllowed:
    message = "`%(action)s` is not possible: the booking is %(booking_status)s."
    detail = Message(message, {"action": action, "booking_status": booking.status})
    return TransitionNotAllowed(action, unit.status, detail=detail)


def lapse_of(unit: Unit) -> HoldLapsed:
    if unit.status is Status.AVAILABLE:
        return HoldLapsed("The hold has lapsed. The unit is free again.", unit.status)
    return HoldLapsed("The hold has lapsed.", unit.status)


# From the hold to the sale, and every way out. Pure.

LANGUAGE = "en"
"""Of those who do not say: of the API, whose words are English."""

SIGN, REISSUE_LINK, ERASE_BUYER = "sign", "reissue-link", "erase-buyer"

_BUYER_FIELDS = ("buyer_name", "buyer_email", "buyer_phone")

_STILL_LIVE = (
    "The booking is %(booking_status)s: it has to end or be sold before its buyer's data can be erased."
)
# Nobody could be found to give the money to.
_STILL_OWED = "The deposit is due back: pay it back and mark it as refunded, then erase the buyer's data."
_WHY_NOT_ERASED: Mapping[BookingStatus, AnyMessage] = {
    **{
        status: Message(_STILL_LIVE, {"booking_status": status})
        for status in (*sorted(HOLDING), BookingStatus.RESERVED)
    },
    BookingStatus.REFUND_DUE: _STILL_OWED,
}


def sign(
    standing: UnitSnapshot,
    number: int,
    buyer: Buyer,
    now: datetime,
    language: str = LANGUAGE,
    as_read: Agreement | None = None,
) -> Decision:
    """The agreement is fixed at this moment: a second signature may only repeat the first.

    ``language``: in which the buyer has read it; ``as_read``: what they have read, where that is known.
    """
    unit, booking = booking_in(standing, number)
    if booking.status is BookingStatus.OPEN:
        agreement = agreement_on(unit.fields, standing.project.name, language)
        if as_read not in (None, agreement):
            raise AgreementChanged(unit.status)
        signed = booking._replace(
            status=BookingStatus.SIGNED, buyer=buyer, signed_at=now, agreement=agreement
        )
        return Decision(unit, booking=signed, action=SIGN)
    if booking.status in CLAIMING and booking.signed_at is not None and booking.buyer == buyer:
        return Decision(unit, booking=booking, action=SIGN)
    if booking.status is BookingStatus.LAPSED:
        raise lapse_of(unit)
    raise refusal_of(SIGN, unit, booking)


def cancel(standing: UnitSnapshot, number: int, caller: Caller, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    if caller is Caller.BUYER and booking.status is BookingStatus.RESERVED:
        detail = "The deposit is confirmed, so only the seller can cancel."
        raise TransitionNotAllowed(Action.CANCEL_RESERVATION, unit.status, detail=detail)
    if booking.status in CLAIMING:
        action = Action.CANCEL_HOLD if booking.status in HOLDING else Action.CANCEL_RESERVATION
        return act(standing, unit.code, action, caller, now)
    if caller is Caller.BUYER and booking.status is BookingStatus.CANCELLED:
        return Decision(unit, booking=booking, action=Action.CANCEL_HOLD)
    if caller is Caller.BUYER and booking.status is BookingStatus.LAPSED:
        raise lapse_of(unit)
    raise refusal_of(Action.CANCEL_HOLD, unit, booking)


def act(standing: UnitSnapshot, code: str, action: Action, caller: Caller, now: datetime) -> Decision:
    """The actions that end whatever booking the unit has, or have none to end."""
    unit = unit_in(standing, code)
    step = step_for(unit, action, caller, now)
    moved, event = move(unit, step, now, archived=action is Action.ARCHIVE)
    booking = standing.booking and end(standing.booking, moved.updated_at)
    return Decision(moved, events=(event,) if event else (), booking=booking, action=action)


def extend(
    standing: UnitSnapshot,
    code: str,
    caller: Caller,
    until: datetime | None,
    periods: HoldPeriods,
    now: datetime,
) -> Decision:
    unit = unit_in(standing, code)
    step = step_for(unit, Action.EXTEND, caller, now)
    booking = standing.booking
    if until is not None and until == ends_at(unit):
        # The same extension again, after an answer that got lost.
        return Decision(unit, booking=booking, action=Action.EXTEND)
    if unit.hold_expires_at is not None:
        end_at = later_end(unit.hold_expires_at, until, periods.hold(standing.project), now)
        moved, _ = move(unit, step, now, hold_expires_at=end_at)
        later = booking and booking._replace(hold_expires_at=end_at)
    else:
        assert unit.reserved_until is not None
        end_at = later_end(unit.reserved_until, until, periods.reservation(standing.project), now)
        moved, _ = move(unit, step, now, reserved_until=end_at)
        later = booking and booking._replace(reserved_until=end_at)
    return Decision(moved, booking=later, action=Action.EXTEND)


def extend_booking(
    standing: UnitSnapshot,
    number: int,
    caller: Caller,
    until: datetime | None,
    periods: HoldPeriods,
    now: datetime,
) -> Decision:
    unit, booking = booking_in(standing, number)
    refuse_ended(Action.EXTEND, unit, booking)
    return extend(standing, unit.code, caller, until, periods, now)


def close_sale(
    standing: UnitSnapshot, code: str, draft: Draft, buyer: Buyer | None, caller: Caller, now: datetime
) -> Decision:
    """Of a reserved unit, or of an available one to a buyer who walked in."""
    unit = unit_in(standing, code)
    step_for(unit, Action.CLOSE_SALE, caller, now)
    if unit.status is Status.AVAILABLE:
        return _sell(unit, _walk_in(unit, draft, _named(buyer), now), caller, now)
    if buyer is not None:
        raise _sold_to_another(unit)
    return _sell(unit, _closed(claim_on(standing, unit, Action.CLOSE_SALE), now), caller, now)


def close_sale_of_booking(standing: UnitSnapshot, number: int, caller: Caller, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    refuse_ended(Action.CLOSE_SALE, unit, booking)
    if booking.status in HOLDING:
        raise TransitionNotAllowed(Action.CLOSE_SALE, unit.status, detail="The deposit is not confirmed yet.")
    step_for(unit, Action.CLOSE_SALE, caller, now)
    return _sell(unit, _closed(booking, now), caller, now)


def reissue_link(standing: UnitSnapshot, number: int, token_hash: bytes) -> Decision:
    """The buyer gets a new token; the old one opens nothing from now on."""
    unit, booking = booking_in(standing, number)
    if booking.token_hash != token_hash:
        booking = booking._replace(token_hash=token_hash)
    return Decision(unit, booking=booking, action=REISSUE_LINK)


def erase_buyer(standing: UnitSnapshot, number: int, now: datetime) -> Decision:
    """Nothing is left of the buyer's person; what was agreed, paid and sold stays."""
    unit, booking = booking_in(standing, number)
    why_not = _WHY_NOT_ERASED.get(booking.status)
    if why_not is not None:
        raise TransitionNotAllowed(ERASE_BUYER, unit.status, detail=why_not)
    if booking.buyer_erased_at is None:
        booking = booking._replace(buyer=None, holder=NOBODY, buyer_erased_at=now)
    return Decision(unit, booking=booking, action=ERASE_BUYER)


def _sell(unit: Unit, booking: Booking, caller: Caller, now: datetime) -> Decision:
    step = step_for(unit, Action.CLOSE_SALE, caller, now)
    moved, event = move(unit, step, now, booking_reference=booking.reference)
    return Decision(moved, events=(event,) if event else (), booking=booking, action=Action.CLOSE_SALE)


def _walk_in(unit: Unit, draft: Draft, buyer: Buyer, now: datetime) -> Booking:
    ids = (unit.project_id, unit.id)
    return new_booking(draft, ids, terms_of(unit.fields), BookingStatus.SOLD, now, buyer=buyer)


def _closed(booking: Booking, now: datetime) -> Booking:
    return booking._replace(status=BookingStatus.SOLD, closed_at=now)


def _named(buyer: Buyer | None) -> Buyer:
    if buyer is None:
        message = "This field is required: the unit is available."
        raise InvalidInput([Fault(f"/{camel_case(name)}", message) for name in _BUYER_FIELDS])
    return buyer


def _sold_to_another(unit: Unit) -> TransitionNotAllowed:
    """A buyer is named for a unit that is available, as this one may have been a moment ago."""
    detail = "The unit is reserved: its booking names the buyer."
    refusal = TransitionNotAllowed(Action.CLOSE_SALE, unit.status, detail=detail)
    refusal.fields = _BUYER_FIELDS
    return refusal


# The deposit of a booking, on its way in and on its way back. Pure.

MARK_REFUNDED = "mark-refunded"


def confirm_deposit(
    standing: UnitSnapshot,
    number: int,
    caller: Caller,
    periods: HoldPeriods,
    now: datetime,
    payment_id: str | None = None,
) -> Decision:
    """A payment system repeats itself, and may come late: money is never silently lost."""
    unit, booking = booking_in(standing, number)
    booking = _paid_by(booking, payment_id, unit)
    if booking.deposit_confirmed_at is not None:
        return Decision(unit, booking=booking, action=Action.CONFIRM_DEPOSIT)
    if booking.signed_at is None:
        raise NotSigned(why_not_signed(booking), unit.status)
    if booking.status in CLAIMING:
        return _reserve(standing, unit, booking, caller, periods, now)
    # A unit is not reserved for somebody whom nobody knows any more.
    if unit.status is Status.AVAILABLE and booking.buyer_erased_at is None:
        return _reserve_again(standing, unit, booking, caller, periods, now)
    due = booking._replace(status=BookingStatus.REFUND_DUE, deposit_confirmed_at=now)
    return Decision(unit, booking=due, action=Action.CONFIRM_DEPOSIT)


def confirm_deposit_of_unit(
    standing: UnitSnapshot, code: str, caller: Caller, periods: HoldPeriods, now: datetime
) -> Decision:
    unit = unit_in(standing, code)
    step_for(unit, Action.CONFIRM_DEPOSIT, caller, now)
    return confirm_deposit(
        standing, claim_on(standing, unit, Action.CONFIRM_DEPOSIT).number, caller, periods, now
    )


def mark_refunded(standing: UnitSnapshot, number: int, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    if booking.status is BookingStatus.REFUND_DUE:
        booking = booking._replace(status=BookingStatus.REFUNDED, refunded_at=now)
    elif booking.status is not BookingStatus.REFUNDED:
        raise refusal_of(MARK_REFUNDED, unit, booking)
    return Decision(unit, booking=booking, action=MARK_REFUNDED)


def _reserve(
    standing: UnitSnapshot, unit: Unit, booking: Booking, caller: Caller, periods: HoldPeriods, now: datetime
) -> Decision:
    step = step_for(unit, Action.CONFIRM_DEPOSIT, caller, now)
    until = now + periods.reservation(standing.project)
    reserved = booking._replace(
        status=BookingStatus.RESERVED,
        deposit_confirmed_at=now,
        reserved_until=until,
        ended_at=None,
        slots=NO_SLOTS,
    )
    moved, event = move(unit, step, now, reserved_until=until, booking_reference=booking.reference)
    return Decision(moved, events=(event,) if event else (), booking=reserved, action=Action.CONFIRM_DEPOSIT)


def _reserve_again(
    standing: UnitSnapshot, unit: Unit, booking: Booking, caller: Caller, periods: HoldPeriods, now: datetime
) -> Decision:
    """Held and reserved in one step, on the terms that were agreed."""
    opening = transition(Action.OPEN, Caller.BUYER, unit.status, unit.archived)
    held: Step = move(unit, opening, now, hold_expires_at=now + periods.hold(standing.project))
    decision = _reserve(standing, held.unit, booking, caller, periods, now)
    first = (held.event,) if held.event else ()
    return decision._replace(events=first + decision.events)


def _paid_by(booking: Booking, payment_id: str | None, unit: Unit) -> Booking:
    """Staff may have confirmed what the payment system tells later; two payments are one too many."""
    if payment_id is None or booking.payment_id == payment_id:
        return booking
    if booking.payment_id is not None:
        message = "The deposit was paid by the payment %(payment)s: pay %(other_payment)s back to the buyer."
        detail = Message(message, {"payment": booking.payment_id, "other_payment": payment_id})
        raise TransitionNotAllowed(Action.CONFIRM_DEPOSIT, unit.status, detail=detail)
    # What staff confirmed has gone back: nobody would look for this money here any more.
    if booking.status is BookingStatus.REFUNDED:
        message = (
            "The deposit was refunded: pay %(payment)s back to the buyer, unless it is what was refunded."
        )
        detail = Message(message, {"payment": payment_id})
        raise TransitionNotAllowed(Action.CONFIRM_DEPOSIT, unit.status, detail=detail)
    return booking._replace(payment_id=payment_id)


def why_not_signed(booking: Booking) -> AnyMessage:
    if booking.hold_expires_at is None:
        return "This sale was closed without a hold; there is no deposit to confirm."
    if booking.status in HOLDING:
        message = "The buyer has not signed yet; the hold ends at %(moment)s."
        return Message(message, {"moment": moment_text(booking.hold_expires_at)})
    message = "The booking ended without a signature (%(booking_status)s): pay the money back."
    return Message(message, {"booking_status": booking.status})


# What can be done to a booking at this moment, found by deciding it. Pure.

_ANOTHER_TOKEN = b""


class BookingAction(StrEnum):
    CONFIRM_DEPOSIT = "confirm-deposit"
    CLOSE_SALE = "close-sale"
    EXTEND = "extend"
    MARK_REFUNDED = "mark-refunded"
    REISSUE_LINK = "reissue-link"
    CANCEL = "cancel"
    ERASE_BUYER = "erase-buyer"


def possible(
    standing: UnitSnapshot, number: int, caller: Caller, periods: HoldPeriods, now: datetime
) -> dict[BookingAction, Decision]:
    """With what would come of each. What would change nothing is not among them."""
    steps: Mapping[BookingAction, Callable[[], Decision]] = {
        BookingAction.CONFIRM_DEPOSIT: lambda: confirm_deposit(standing, number, caller, periods, now),
        BookingAction.CLOSE_SALE: lambda: close_sale_of_booking(standing, number, caller, now),
        BookingAction.EXTEND: lambda: extend_booking(standing, number, caller, None, periods, now),
        BookingAction.MARK_REFUNDED: lambda: mark_refunded(standing, number, now),
        BookingAction.REISSUE_LINK: lambda: reissue_link(standing, number, _ANOTHER_TOKEN),
        BookingAction.CANCEL: lambda: cancel(standing, number, caller, now),
        BookingAction.ERASE_BUYER: lambda: erase_buyer(standing, number, now),
    }
    found = standing.booking_numbered(number)
    outcomes = {action: _outcome(decide) for action, decide in steps.items()}
    return {
        action: decision
        for action, decision in outcomes.items()
        if decision is not None and decision.booking is not found
    }


def _outcome(decide: Callable[[], Decision]) -> Decision | None:
    try:
        return decide()
    except DomainError:
        return None
