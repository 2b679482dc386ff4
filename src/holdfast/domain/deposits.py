"""The deposit of a booking, on its way in and on its way back. Pure."""

from __future__ import annotations

from datetime import datetime

from holdfast.domain.booking import CLAIMING, HOLDING, NO_SLOTS, Booking, BookingStatus
from holdfast.domain.claims import booking_in, claim_on, refusal_of
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.opening import unit_in
from holdfast.domain.periods import Periods
from holdfast.domain.refusals import NotSigned, TransitionNotAllowed
from holdfast.domain.spelling import moment_text
from holdfast.domain.status import Action, Caller, Status, transition
from holdfast.domain.unit import Step, Unit, move, step_for

MARK_REFUNDED = "mark-refunded"


def confirm_deposit(
    standing: Standing,
    number: int,
    caller: Caller,
    periods: Periods,
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
    standing: Standing, code: str, caller: Caller, periods: Periods, now: datetime
) -> Decision:
    unit = unit_in(standing, code)
    step_for(unit, Action.CONFIRM_DEPOSIT, caller, now)
    return confirm_deposit(
        standing, claim_on(standing, unit, Action.CONFIRM_DEPOSIT).number, caller, periods, now
    )


def mark_refunded(standing: Standing, number: int, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    if booking.status is BookingStatus.REFUND_DUE:
        booking = booking._replace(status=BookingStatus.REFUNDED, refunded_at=now)
    elif booking.status is not BookingStatus.REFUNDED:
        raise refusal_of(MARK_REFUNDED, unit, booking)
    return Decision(unit, booking=booking, action=MARK_REFUNDED)


def _reserve(
    standing: Standing, unit: Unit, booking: Booking, caller: Caller, periods: Periods, now: datetime
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
    standing: Standing, unit: Unit, booking: Booking, caller: Caller, periods: Periods, now: datetime
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
