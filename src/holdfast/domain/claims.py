"""The booking that a command is about, and the refusal where its status forbids it. Pure."""

from __future__ import annotations

from holdfast.domain.booking import CLAIMING, Booking
from holdfast.domain.decision import Standing
from holdfast.domain.message import Message
from holdfast.domain.reference import reference_of
from holdfast.domain.refusals import BookingChanged, HoldLapsed, TransitionNotAllowed, UnknownBooking
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit


def booking_in(standing: Standing, number: int) -> tuple[Unit, Booking]:
    """A booking never moves to another unit, so it is there whenever its unit is."""
    booking = standing.booking_numbered(number)
    if standing.unit is None or booking is None:
        raise UnknownBooking(reference_of(number))
    return standing.unit, booking


def refuse_changed(standing: Standing, number: int, seen_status: str) -> None:
    unit, booking = booking_in(standing, number)
    if booking.status != seen_status:
        raise BookingChanged(booking.status, unit.status)


def claim_on(standing: Standing, unit: Unit, action: str) -> Booking:
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
