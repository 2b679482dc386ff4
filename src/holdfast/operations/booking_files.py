"""A booking with all that staff need to decide on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.domain.booking import Booking
from holdfast.domain.booking_steps import BookingAction, possible
from holdfast.domain.decision import Decision, Standing
from holdfast.domain.status import Caller
from holdfast.operations.selling import Found, Selling
from holdfast.operations.staff_units import StaffUnit

__all__ = ["BookingAction", "BookingFile", "booking_file"]


class BookingFile(NamedTuple):
    found: Found
    unit: StaffUnit
    possible: Mapping[BookingAction, Decision]
    """What can be done to it now, and what would come of it."""

    @property
    def booking(self) -> Booking:
        return self.found.booking


async def booking_file(selling: Selling, reference: str, caller: Caller) -> BookingFile:
    found = await selling.find(reference)
    unit = await selling.units.find(found.project_slug, found.unit_code)
    booking = found.booking
    claim = unit.booking
    if claim is not None and claim.number == booking.number:
        claim = booking
    standing = Standing(unit.project, unit.unit, claim, {booking.number: booking})
    return BookingFile(found, unit, possible(standing, booking.number, caller, selling.periods, found.now))
