"""The actions on a booking: from the hold to the sale, with its deposit, and every way out. Pure."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.domain import errors
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
    end,
    new_agreement,
    new_booking,
)
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.email import EmailKind, NewEmail
from holdfast.domain.holds import HoldPeriods, extended_end, get_unit
from holdfast.domain.seller import NOBODY_NAMED, Seller
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller, transition
from holdfast.domain.unit import Unit, allowed_transition, ends_at, move
from holdfast.domain.wire_format import camel_case, format_timestamp

LANGUAGE = "en"
"""The language of callers that name none."""

SIGN = "sign"

_BUYER_FIELDS = ("buyer_name", "buyer_email", "buyer_phone")
_BOOKING_CHANGED = (
    "The booking has changed since you opened this page. Nothing was done. Check it and try again."
)
_LINK_REPLACED = (
    "A new link was already made. It is shown only once: if you did not copy it, make another one."
)
_NOT_ENDED = (
    "The booking is %(booking_status)s: it must end or be sold before its buyer's data can be erased."
)


def get_booking(snapshot: UnitSnapshot, number: int) -> tuple[Unit, Booking]:
    booking = snapshot.booking_numbered(number)
    if snapshot.unit is None or booking is None:
        raise errors.UnknownBooking("…")  # deleted since it was read; its caller knows the reference
    return snapshot.unit, booking


def check_status_unchanged(snapshot: UnitSnapshot, number: int, seen_status: str) -> None:
    unit, booking = get_booking(snapshot, number)
    if booking.status != seen_status:
        raise errors.BookingChanged(_BOOKING_CHANGED, unit.status)


def get_claim(snapshot: UnitSnapshot, unit: Unit) -> Booking:
    if snapshot.booking is None:
        message = "The unit is %(unit_status)s, but not through a booking in Holdfast."
        raise errors.TransitionNotAllowed(errors.Message(message, {"unit_status": unit.status}), unit.status)
    return snapshot.booking


def not_allowed_error(action: str, unit: Unit, booking: Booking) -> errors.TransitionNotAllowed:
    message = "`%(action)s` is not possible: the booking is %(booking_status)s."
    parameters = {"action": action, "booking_status": booking.status}
    return errors.TransitionNotAllowed(errors.Message(message, parameters), unit.status)


def hold_lapsed_error(unit: Unit) -> errors.HoldLapsed:
    is_free = unit.status is Status.AVAILABLE
    message = "The hold has lapsed. The unit is available again." if is_free else "The hold has lapsed."
    return errors.HoldLapsed(message, unit.status)


def sign(
    snapshot: UnitSnapshot,
    number: int,
    buyer: Buyer,
    now: datetime,
    language: str = LANGUAGE,
    as_read: Agreement | None = None,
    seller: Seller = NOBODY_NAMED,
    sealed_token: bytes | None = None,
) -> Decision:
    """Fix the agreement: a second signature may only repeat the first.

    ``language``: in which the buyer read it; ``as_read``: the agreement that they read, where that is known;
    ``sealed_token``: for the link in the e-mail.
    """
    unit, booking = get_booking(snapshot, number)
    if booking.status is BookingStatus.OPEN:
        agreement = new_agreement(unit.fields, snapshot.project.name, language, seller)
        if as_read not in (None, agreement):
            raise errors.AgreementChanged(unit.status)
        signed = booking._replace(
            status=BookingStatus.SIGNED, buyer=buyer, signed_at=now, agreement=agreement
        )
        email = NewEmail(number, unit.id, EmailKind.SIGNED, sealed_token)
        return Decision(unit, booking=signed, action=SIGN, email=email)
    if booking.status in CLAIMING and booking.signed_at is not None and booking.buyer == buyer:
        return Decision(unit, booking=booking, action=SIGN)
    if booking.status is BookingStatus.LAPSED:
        raise hold_lapsed_error(unit)
    raise not_allowed_error(SIGN, unit, booking)


def cancel(snapshot: UnitSnapshot, number: int, caller: Caller, now: datetime) -> Decision:
    unit, booking = get_booking(snapshot, number)
    if caller is Caller.BUYER and booking.status is BookingStatus.RESERVED:
        message = "The deposit is confirmed, so only the seller can cancel."
        raise errors.TransitionNotAllowed(message, unit.status)
    if booking.status in CLAIMING:
        action = Action.CANCEL_HOLD if booking.status in HOLDING else Action.CANCEL_RESERVATION
        return change_status(snapshot, unit.code, action, caller, now)
    if caller is Caller.BUYER and booking.status is BookingStatus.CANCELLED:
        return Decision(unit, booking=booking, action=Action.CANCEL_HOLD)
    if caller is Caller.BUYER and booking.status is BookingStatus.LAPSED:
        raise hold_lapsed_error(unit)
    raise not_allowed_error(Action.CANCEL_HOLD, unit, booking)


def change_status(
    snapshot: UnitSnapshot, code: str, action: Action, caller: Caller, now: datetime
) -> Decision:
    """Run an action that needs only the unit, and ends its booking if it has one."""
    unit = get_unit(snapshot, code)
    step = allowed_transition(unit, action, caller, now)
    moved, events = move(unit, step, now, archived=action is Action.ARCHIVE)
    booking = snapshot.booking and end(snapshot.booking, moved.updated_at)
    return Decision(moved, events=events, booking=booking, action=action)


def extend(
    snapshot: UnitSnapshot,
    code: str,
    caller: Caller,
    until: datetime | None,
    periods: HoldPeriods,
    now: datetime,
) -> Decision:
    unit = get_unit(snapshot, code)
    step = allowed_transition(unit, Action.EXTEND, caller, now)
    booking = snapshot.booking
    if until is not None and until == ends_at(unit):
        # The same extension again, after a response that got lost.
        return Decision(unit, booking=booking, action=Action.EXTEND)
    current_end = ends_at(unit)
    assert current_end is not None
    is_hold = unit.hold_expires_at is not None
    period = (periods.hold if is_hold else periods.reservation)(snapshot.project)
    end_at = extended_end(current_end, until, period, now)
    new_end: dict[str, Any] = {"hold_expires_at" if is_hold else "reserved_until": end_at}
    moved, _ = move(unit, step, now, **new_end)
    return Decision(moved, booking=booking and booking._replace(**new_end), action=Action.EXTEND)


def extend_booking(
    snapshot: UnitSnapshot,
    number: int,
    caller: Caller,
    until: datetime | None,
    periods: HoldPeriods,
    now: datetime,
) -> Decision:
    unit, booking = get_booking(snapshot, number)
    if booking.status not in CLAIMING:
        raise not_allowed_error(Action.EXTEND, unit, booking)
    return extend(snapshot, unit.code, caller, until, periods, now)


def close_sale(
    snapshot: UnitSnapshot, code: str, draft: Draft, buyer: Buyer | None, caller: Caller, now: datetime
) -> Decision:
    unit = get_unit(snapshot, code)
    allowed_transition(unit, Action.CLOSE_SALE, caller, now)
    if unit.status is Status.AVAILABLE:
        if buyer is None:
            message = "This field is required: the unit is available."
            faults = [errors.Fault(f"/{camel_case(name)}", message) for name in _BUYER_FIELDS]
            raise errors.InvalidInput(faults)
        walk_in = new_booking(draft, unit, BookingStatus.SOLD, now, buyer=buyer)
        return _sell(unit, walk_in, caller, now)
    if buyer is not None:
        # The unit may have been available when the caller read it.
        message = "The unit is reserved: its booking names the buyer."
        raise errors.TransitionNotAllowed(message, unit.status, _BUYER_FIELDS)
    return _sell(unit, get_claim(snapshot, unit), caller, now)


def close_sale_of_booking(snapshot: UnitSnapshot, number: int, caller: Caller, now: datetime) -> Decision:
    unit, booking = get_booking(snapshot, number)
    if booking.status not in CLAIMING:
        raise not_allowed_error(Action.CLOSE_SALE, unit, booking)
    if booking.status in HOLDING:
        raise errors.TransitionNotAllowed("The deposit is not confirmed yet.", unit.status)
    return _sell(unit, booking, caller, now)


def reissue_link(
    snapshot: UnitSnapshot, number: int, token_hash: bytes, seen_version: str | None = None
) -> Decision:
    """Replace the buyer's token; the old one no longer works.

    With ``seen_version`` fail if the ``link_version`` is another one now: the link was replaced already.
    """
    unit, booking = get_booking(snapshot, number)
    if booking.token_hash != token_hash:
        if seen_version not in (None, booking.link_version):
            raise errors.IdempotencyKeyUsed(_LINK_REPLACED, unit.status)
        booking = booking._replace(token_hash=token_hash)
    return Decision(unit, booking=booking, action=BookingAction.REISSUE_LINK)


def erase_buyer(snapshot: UnitSnapshot, number: int, now: datetime) -> Decision:
    """Erase the buyer's personal data; terms, payment and sale stay."""
    unit, booking = get_booking(snapshot, number)
    if booking.status in HOLDING or booking.status is BookingStatus.RESERVED:
        raise errors.TransitionNotAllowed(
            errors.Message(_NOT_ENDED, {"booking_status": booking.status}), unit.status
        )
    if booking.status is BookingStatus.REFUND_DUE:
        message = "The deposit must be refunded: record the refund, then erase the buyer's data."
        raise errors.TransitionNotAllowed(message, unit.status)
    if booking.buyer_erased_at is None:
        booking = booking._replace(buyer=None, holder=NOBODY, buyer_erased_at=now)
    return Decision(unit, booking=booking, action=BookingAction.ERASE_BUYER)


def _sell(unit: Unit, booking: Booking, caller: Caller, now: datetime) -> Decision:
    step = allowed_transition(unit, Action.CLOSE_SALE, caller, now)
    sold = booking._replace(status=BookingStatus.SOLD, closed_at=now)
    moved, events = move(unit, step, now, booking_reference=booking.reference)
    return Decision(moved, events=events, booking=sold, action=Action.CLOSE_SALE)


def confirm_deposit(
    snapshot: UnitSnapshot,
    number: int,
    caller: Caller,
    periods: HoldPeriods,
    now: datetime,
    payment_id: str | None = None,
) -> Decision:
    """Reserve the unit. A payment may be reported twice or late: money is never silently lost."""
    unit, booking = get_booking(snapshot, number)
    if payment_id is not None and snapshot.payments.get(payment_id) not in (None, number):
        message = "The payment %(payment)s has confirmed another booking."
        raise errors.PaymentUsed(errors.Message(message, {"payment": payment_id}), unit.status)
    booking = _record_payment(booking, payment_id, unit)
    if booking.deposit_confirmed_at is not None:
        return Decision(unit, booking=booking, action=Action.CONFIRM_DEPOSIT)
    if booking.signed_at is None:
        raise errors.NotSigned(not_signed_message(booking), unit.status)
    if booking.status in CLAIMING:
        return _reserve(snapshot, unit, booking, caller, periods, now)
    # A unit is not reserved for a buyer whose data was erased.
    if unit.status is Status.AVAILABLE and booking.buyer_erased_at is None:
        # Hold and reserve in one step, on the terms that were agreed.
        opening = transition(Action.OPEN, Caller.BUYER, unit.status, unit.archived)
        held, events = move(unit, opening, now, hold_expires_at=now + periods.hold(snapshot.project))
        decision = _reserve(snapshot, held, booking, caller, periods, now)
        return decision._replace(events=events + decision.events)
    due = booking._replace(status=BookingStatus.REFUND_DUE, deposit_confirmed_at=now)
    email = NewEmail(number, unit.id, EmailKind.DEPOSIT)
    return Decision(unit, booking=due, action=Action.CONFIRM_DEPOSIT, email=email)


def confirm_deposit_of_unit(
    snapshot: UnitSnapshot, code: str, caller: Caller, periods: HoldPeriods, now: datetime
) -> Decision:
    unit = get_unit(snapshot, code)
    allowed_transition(unit, Action.CONFIRM_DEPOSIT, caller, now)
    return confirm_deposit(snapshot, get_claim(snapshot, unit).number, caller, periods, now)


def mark_refunded(snapshot: UnitSnapshot, number: int, now: datetime) -> Decision:
    unit, booking = get_booking(snapshot, number)
    if booking.status is BookingStatus.REFUND_DUE:
        booking = booking._replace(status=BookingStatus.REFUNDED, refunded_at=now)
    elif booking.status is not BookingStatus.REFUNDED:
        raise not_allowed_error(BookingAction.MARK_REFUNDED, unit, booking)
    return Decision(unit, booking=booking, action=BookingAction.MARK_REFUNDED)


def _reserve(
    snapshot: UnitSnapshot, unit: Unit, booking: Booking, caller: Caller, periods: HoldPeriods, now: datetime
) -> Decision:
    step = allowed_transition(unit, Action.CONFIRM_DEPOSIT, caller, now)
    until = now + periods.reservation(snapshot.project)
    reserved = booking._replace(
        status=BookingStatus.RESERVED,
        deposit_confirmed_at=now,
        reserved_until=until,
        ended_at=None,
        slots=NO_SLOTS,
    )
    moved, events = move(unit, step, now, reserved_until=until, booking_reference=booking.reference)
    email = NewEmail(booking.number, unit.id, EmailKind.DEPOSIT)
    return Decision(moved, events=events, booking=reserved, action=Action.CONFIRM_DEPOSIT, email=email)


def _record_payment(booking: Booking, payment_id: str | None, unit: Unit) -> Booking:
    """Staff may have confirmed a deposit before its payment is reported; a second payment is an error."""
    if payment_id is None or booking.payment_id == payment_id:
        return booking
    if booking.payment_id is not None:
        message = "The deposit was paid by the payment %(payment)s: refund %(other_payment)s to the buyer."
        parameters = {"payment": booking.payment_id, "other_payment": payment_id}
        raise errors.TransitionNotAllowed(errors.Message(message, parameters), unit.status)
    # The deposit that staff confirmed was refunded: nobody would look for this money here any more.
    if booking.status is BookingStatus.REFUNDED:
        message = (
            "The deposit was refunded before: refund %(payment)s too, unless it is the payment refunded."
        )
        raise errors.TransitionNotAllowed(errors.Message(message, {"payment": payment_id}), unit.status)
    return booking._replace(payment_id=payment_id)


def not_signed_message(booking: Booking) -> errors.AnyMessage:
    if booking.hold_expires_at is None:
        return "This sale was closed without a hold; there is no deposit to confirm."
    if booking.status in HOLDING:
        message = "The buyer has not signed yet; the hold ends at %(moment)s."
        return errors.Message(message, {"moment": format_timestamp(booking.hold_expires_at)})
    message = "The booking ended without a signature (%(booking_status)s): refund the payment."
    return errors.Message(message, {"booking_status": booking.status})


class BookingAction(StrEnum):
    CONFIRM_DEPOSIT = "confirm-deposit"
    CLOSE_SALE = "close-sale"
    EXTEND = "extend"
    MARK_REFUNDED = "mark-refunded"
    REISSUE_LINK = "reissue-link"
    CANCEL = "cancel"
    ERASE_BUYER = "erase-buyer"


def act_on_booking(
    snapshot: UnitSnapshot,
    number: int,
    action: BookingAction,
    caller: Caller,
    periods: HoldPeriods,
    now: datetime,
    *,
    until: datetime | None = None,
    payment_id: str | None = None,
) -> Decision:
    """``until`` is for an extension, ``payment_id`` for a deposit. A new link needs its own function."""
    match action:
        case BookingAction.CONFIRM_DEPOSIT:
            return confirm_deposit(snapshot, number, caller, periods, now, payment_id)
        case BookingAction.CLOSE_SALE:
            return close_sale_of_booking(snapshot, number, caller, now)
        case BookingAction.EXTEND:
            return extend_booking(snapshot, number, caller, until, periods, now)
        case BookingAction.MARK_REFUNDED:
            return mark_refunded(snapshot, number, now)
        case BookingAction.REISSUE_LINK:
            return reissue_link(snapshot, number, b"")
        case BookingAction.CANCEL:
            return cancel(snapshot, number, caller, now)
        case BookingAction.ERASE_BUYER:
            return erase_buyer(snapshot, number, now)


def possible_actions(
    snapshot: UnitSnapshot, number: int, caller: Caller, periods: HoldPeriods, now: datetime
) -> dict[BookingAction, Decision]:
    current = snapshot.booking_numbered(number)
    decisions = {}
    for action in BookingAction:
        with suppress(errors.DomainError):
            decision = act_on_booking(snapshot, number, action, caller, periods, now)
            if decision.booking is not current:
                decisions[action] = decision
    return decisions
