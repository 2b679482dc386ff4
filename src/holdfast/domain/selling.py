"""From the hold to the sale, and every way out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from holdfast.domain.booking import (
    CLAIMING,
    HOLDING,
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
from holdfast.domain.claims import booking_in, claim_on, lapse_of, refusal_of, refuse_ended
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.opening import unit_in
from holdfast.domain.periods import Periods, later_end
from holdfast.domain.refusals import AgreementChanged, Fault, InvalidInput, TransitionNotAllowed
from holdfast.domain.spelling import camel_case
from holdfast.domain.status import Action, Caller, Status
from holdfast.domain.unit import Unit, ends_at, move, step_for

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
    standing: Standing,
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
        raise lapse_of(unit)
    raise refusal_of(Action.CANCEL_HOLD, unit, booking)


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
    refuse_ended(Action.EXTEND, unit, booking)
    return extend(standing, unit.code, caller, until, periods, now)


def close_sale(
    standing: Standing, code: str, draft: Draft, buyer: Buyer | None, caller: Caller, now: datetime
) -> Decision:
    """Of a reserved unit, or of an available one to a buyer who walked in."""
    unit = unit_in(standing, code)
    step_for(unit, Action.CLOSE_SALE, caller, now)
    if unit.status is Status.AVAILABLE:
        return _sell(unit, _walk_in(unit, draft, _named(buyer), now), caller, now)
    if buyer is not None:
        raise _sold_to_another(unit)
    return _sell(unit, _closed(claim_on(standing, unit, Action.CLOSE_SALE), now), caller, now)


def close_sale_of_booking(standing: Standing, number: int, caller: Caller, now: datetime) -> Decision:
    unit, booking = booking_in(standing, number)
    refuse_ended(Action.CLOSE_SALE, unit, booking)
    if booking.status in HOLDING:
        raise TransitionNotAllowed(Action.CLOSE_SALE, unit.status, detail="The deposit is not confirmed yet.")
    step_for(unit, Action.CLOSE_SALE, caller, now)
    return _sell(unit, _closed(booking, now), caller, now)


def reissue_link(standing: Standing, number: int, token_hash: bytes) -> Decision:
    """The buyer gets a new token; the old one opens nothing from now on."""
    unit, booking = booking_in(standing, number)
    if booking.token_hash != token_hash:
        booking = booking._replace(token_hash=token_hash)
    return Decision(unit, booking=booking, action=REISSUE_LINK)


def erase_buyer(standing: Standing, number: int, now: datetime) -> Decision:
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
