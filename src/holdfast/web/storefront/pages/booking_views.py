"""What the page of a booking shows besides the booking itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.booking import HOLDING, Agreement, Booking, BookingStatus, agreement_on
from holdfast.domain.project import Project
from holdfast.domain.unit import Unit
from holdfast.operations.bookings import Entered, Found
from holdfast.web.storefront.pages.offer_views import Card

_MAY_STILL_BE_PAID = frozenset({BookingStatus.LAPSED, BookingStatus.CANCELLED})
"""Once signed: what arrives late is taken while the unit is free."""


class StepState(StrEnum):
    DONE = "done"
    NOW = "now"
    LATER = "later"


class Step(NamedTuple):
    name: str
    state: StepState
    at: datetime | None = None


class Sight(NamedTuple):
    """A booking with what is known around it. Each was read on its own, one soon after the other."""

    found: Found
    unit: Unit
    project: Project
    token: str
    """That opens it."""
    own: Entered | None = None
    """Of one that has ended: what the visitor has on the same unit now."""
    similar: Sequence[Card] = ()
    again_at: datetime | None = None
    """When the visitor may hold the unit again, after a lapse."""

    @property
    def booking(self) -> Booking:
        return self.found.booking

    def agreement(self, language: str) -> Agreement:
        """As it was signed, or as it would be now."""
        return self.booking.agreement or agreement_on(self.unit.fields, self.project.name, language)


def as_read(agreement: Agreement) -> str:
    """What a form sends back, so that nobody signs for what the page did not show."""
    return hashlib.sha256(repr(tuple(agreement)).encode()).hexdigest()


def steps_of(booking: Booking) -> list[Step]:
    """From the hold to the sale, of a booking that goes on; one that has ended has no next step."""
    made = {
        "held": booking.created_at,
        "signed": booking.signed_at,
        "deposit": booking.deposit_confirmed_at,
        "sold": booking.closed_at,
    }
    waits_for = next((name for name, at in made.items() if at is None), None)
    return [Step(name, _state(at, name == waits_for), at) for name, at in made.items()]


def _state(at: datetime | None, is_next: bool) -> StepState:
    if at is not None:
        return StepState.DONE
    return StepState.NOW if is_next else StepState.LATER


def again_at(booking: Booking, rehold_seconds: float, now: datetime) -> datetime | None:
    """None: the wait is over, or there is none."""
    if booking.status is not BookingStatus.LAPSED or booking.ended_at is None:
        return None
    end = booking.ended_at + timedelta(seconds=rehold_seconds)
    return end if end > now else None


def came_late(booking: Booking) -> bool:
    """Whether the deposit arrived when the booking had ended already."""
    paid_at, ended_at = booking.deposit_confirmed_at, booking.ended_at
    return paid_at is not None and ended_at is not None and paid_at >= ended_at


def poll_seconds(booking: Booking, is_waiting: bool) -> int:
    """How often the page asks where it stands; 0 is not at all."""
    if booking.status in HOLDING:
        return 2 if is_waiting else 5
    if booking.status in _MAY_STILL_BE_PAID and booking.signed_at is not None:
        return 15
    return 30 if booking.status in (BookingStatus.RESERVED, BookingStatus.REFUND_DUE) else 0
