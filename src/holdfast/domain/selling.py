"""From the hold to the sale, and every way out. Pure."""

from __future__ import annotations

from datetime import datetime

from holdfast.domain.booking import (
    CLAIMING,
    HOLDING,
    NO_SLOTS,
    Booking,
    BookingStatus,
    Buyer,
    Draft,
    end,
    new_booking,
    terms_of,
)
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.opening import unit_in
from holdfast.domain.periods import Periods, later_end, moment_text
from holdfast.domain.refusals import (
    Fault,
    HoldLapsed,
    InvalidInput,
    NotSigned,
    TransitionNotAllowed,
    UnknownBooking,
)
from holdfast.domain.status import Action, Caller, Status, transition
from holdfast.domain.unit import Step, Unit, ends_at, move, step_for

SIGN, MARK_REFUNDED, REISSUE_LINK = "sign", "mark-refunded", "reissue-link"

_BUYER_POINTERS = ("/buyerName", "/buyerEmail", "/buyerPhone")


def booking_in(standing: Standing, number: int) -> tuple[Unit, Booking]:
    """A booking never moves to another unit, so it is there whenever its unit is."""
    booking = standing.booking_numbered(number)
    if standing.unit is None or booking is None:
        raise UnknownBooking(str(number))
    return standing.unit, booking


def sign(standing: Standing, number: int, buyer: Buyer, now: datetime) -> Decision:
    """The agreement is fixed at this moment: a second signature may only repeat the first."""
    unit, booking = booking_in(standing, number)
    if booking.status is BookingStatus.OPEN:
        signed = booking._replace(status=BookingStatus.SIGNED, buyer=buyer, signed_at=now)
        return Decision(unit, booking=signed, action=SIGN)
    if booking.status in CLAIMING and booking.signed_at is not None and booking.buyer == buyer:
        return Decision(unit, booking=booking, action=SIGN)
    if booking.status is BookingStatus.LAPSED:
        raise _lapsed(unit)
    raise _refused(SIGN, unit, booking)


def cancel(standing: Standing, number: int, caller: Caller, now: datetime) -> Decision:
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
        raise _lapsed(unit)
    raise _refused(Action.CANCEL_HOLD, unit, booking)


def act(standing: Standing, code: str, action: Action, caller: Caller, now: datetime) -> Decision:
    """The actions that end whatever booking the unit has, or have none to end."""
    unit = unit_in(standing, code)
    step = step_for(unit, action, caller, now)
    moved, event = move(unit, step, now, archived=action is Action.ARCHIVE)
    booking = standing.booking and end(standing.booking, moved.updated_at)
    return Decision(moved, events=(event,) if event else (), booking=booking, action=action)


def extend(
    standing: Standing, code: str, caller: Caller, until: datetime | None, periods: Periods, now: datetime
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
    standing: Standing, number: int, caller: Caller, until: datetime | None, periods: Periods, now: datetime
) -> Decision:
    unit, booking = booking_in(standing, number)
    _refuse_ended(Action.EXTEND, unit, booking)
    return extend(standing, unit.code, caller, until, periods, now)


def confirm_deposit(
    standing: Standing, number: int, caller: Caller, periods: Periods, now: datetime
) -> Decision:
    """A payment system repeats itself, and may come late: money is never silently lost."""
    unit, booking = booking_in(standing, number)
    if booking.deposit_confirmed_at is not None:
        return Decision(unit, booking=booking, action=Action.CONFIRM_DEPOSIT)
    if booking.signed_at is None:
        raise NotSigned(_why_not_signed(booking), unit.status)
    if booking.status in CLAIMING:
        return _reserve(standing, unit, booking, caller, periods, now)
    if unit.status is Status.AVAILABLE:
        return _reserve_again(standing, unit, booking, caller, periods, now)
    due = booking._replace(status=BookingStatus.REFUND_DUE, deposit_confirmed_at=now)
    return Decision(unit, booking=due, action=Action.CONFIRM_DEPOSIT)


def confirm_deposit_of_unit(
    standing: Standing, code: str, caller: Caller, periods: Periods, now: datetime
) -> Decision:
    unit = unit_in(standing, code)
    step_for(unit, Action.CONFIRM_DEPOSIT, caller, now)
    return confirm_deposit(
        standing, _claim(standing, unit, Action.CONFIRM_DEPOSIT).number, caller, periods, now
    )


def close_sale(
    standing: Standing, code: str, draft: Draft, buyer: Buyer | None, caller: Caller, now: datetime
) -> Decision:
    """Of a reserved unit, or of an available one to a buyer who walked in."""
    unit = unit_in(standing, code)
    own = standing.booking
    if own is not None and own.number == draft.number:
        return Decision(unit, booking=own, action=Action.CLOSE_SALE)
    step_for(unit, Action.CLOSE_SALE, caller, now)
    if unit.status is Status.AVAILABLE:
        return _sell(unit, _walk_in(unit, draft, _named(buyer), now), caller, now)
    if buyer is not None:
        raise InvalidInput.at("", "The unit is reserved: its booking names the buyer.")
    return _sell(unit, _closed(_claim(standing, unit, Action.CLOSE_SALE), now), caller, now)


def close_sale_of_booking(standing: Standing, number: int, caller: Caller, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    _refuse_ended(Action.CLOSE_SALE, unit, booking)
    if booking.status in HOLDING:
        raise TransitionNotAllowed(Action.CLOSE_SALE, unit.status, detail="The deposit is not confirmed yet.")
    step_for(unit, Action.CLOSE_SALE, caller, now)
    return _sell(unit, _closed(booking, now), caller, now)


def mark_refunded(standing: Standing, number: int, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    if booking.status is BookingStatus.REFUND_DUE:
        booking = booking._replace(status=BookingStatus.REFUNDED, refunded_at=now)
    elif booking.status is not BookingStatus.REFUNDED:
        raise _refused(MARK_REFUNDED, unit, booking)
    return Decision(unit, booking=booking, action=MARK_REFUNDED)


def reissue_link(standing: Standing, number: int, token_hash: bytes) -> Decision:
    """The buyer gets a new token; the old one opens nothing from now on."""
    unit, booking = booking_in(standing, number)
    if booking.token_hash != token_hash:
        booking = booking._replace(token_hash=token_hash)
    return Decision(unit, booking=booking, action=REISSUE_LINK)


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
        raise InvalidInput([Fault(pointer, message) for pointer in _BUYER_POINTERS])
    return buyer


def _claim(standing: Standing, unit: Unit, action: str) -> Booking:
    if standing.booking is None:
        detail = f"The unit is {unit.status}, but no booking of Holdfast has made it so."
        raise TransitionNotAllowed(action, unit.status, detail=detail)
    return standing.booking


def _refuse_ended(action: str, unit: Unit, booking: Booking) -> None:
    if booking.status not in CLAIMING:
        raise _refused(action, unit, booking)


def _lapsed(unit: Unit) -> HoldLapsed:
    free = " The unit is free again." if unit.status is Status.AVAILABLE else ""
    return HoldLapsed(f"The hold has lapsed.{free}", unit.status)


def _why_not_signed(booking: Booking) -> str:
    if booking.hold_expires_at is None:
        return "This sale was closed without a hold; there is no deposit to confirm."
    if booking.status in HOLDING:
        return f"The buyer has not signed yet; the hold ends at {moment_text(booking.hold_expires_at)}."
    return f"The booking ended without a signature ({booking.status}): pay the money back."


def _refused(action: str, unit: Unit, booking: Booking) -> TransitionNotAllowed:
    detail = f"`{action}` is not possible: the booking is {booking.status}."
    return TransitionNotAllowed(action, unit.status, detail=detail)
