"""How long holds and reservations last."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import CLOCK, AuditEntry, Change
from holdfast.domain.booking import HOLDING, Booking, BookingStatus, Draft, Slots, new_booking, terms_of
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import HoldLapsed, InvalidInput, NotAvailable, TransitionNotAllowed, UnknownUnit
from holdfast.domain.event import UnitEvent, event_id
from holdfast.domain.hold_limits import ADDRESS, VISITOR, HoldLimits, free_slot, refuse_rehold
from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.project import Project
from holdfast.domain.status import Action, Caller, Status, Transition, transition
from holdfast.domain.unit import ONE_MILLISECOND, Unit, move, step_for

LONGEST_HOLD_SECONDS = 604_800
LONGEST_RESERVATION_DAYS = 3_650
_LONGEST_EXTENSION = timedelta(days=LONGEST_RESERVATION_DAYS)
_A_DAY = 86_400
_TOO_EARLY = "This must not be before the present end."
_TOO_LATE = Message("An end lies at most %(days)s days ahead.", {"days": LONGEST_RESERVATION_DAYS})


class HoldPeriods(NamedTuple):
    """The server's own, for projects that have none."""

    hold_seconds: float = 300.0
    reservation_days: float = 14.0

    def hold(self, project: Project) -> timedelta:
        return _whole_milliseconds(
            self.hold_seconds if project.hold_seconds is None else project.hold_seconds
        )

    def reservation(self, project: Project) -> timedelta:
        own = project.reservation_days
        return _whole_milliseconds((self.reservation_days if own is None else own) * _A_DAY)


def refuse_impossible_end(asked: datetime | None, now: datetime) -> None:
    """What is no end for any unit, so that it can be told before the unit is looked at."""
    if asked is not None and asked <= now:
        raise InvalidInput.at("/until", _TOO_EARLY)
    if asked is not None and asked - now > _LONGEST_EXTENSION:
        raise InvalidInput.at("/until", _TOO_LATE)


def later_end(ends_at: datetime, asked: datetime | None, period: timedelta, now: datetime) -> datetime:
    """An extension never moves the end closer."""
    if asked is not None and asked < ends_at:
        raise InvalidInput.at("/until", _TOO_EARLY)
    further = period if asked is None else asked - ends_at
    if further > now + _LONGEST_EXTENSION - ends_at:
        raise InvalidInput.at("/until", _TOO_LATE)
    return ends_at + further


@lru_cache(maxsize=1024)
def _whole_milliseconds(seconds: float) -> timedelta:
    return timedelta(milliseconds=max(1, round(seconds * 1000)))


# A unit is opened: held for a buyer. Pure.

NO_LIMITS = HoldLimits(0, 0, 0)


class HoldRequest(NamedTuple):
    """Who opens, and under which rules."""

    draft: Draft
    caller: Caller
    periods: HoldPeriods
    limits: HoldLimits = NO_LIMITS
    token_hash: bytes | None = None
    """Of a booking that the caller has already."""


def unit_in(standing: UnitSnapshot, code: str) -> Unit:
    if standing.unit is None:
        raise UnknownUnit(standing.project.slug, code)
    return standing.unit


def open_unit(standing: UnitSnapshot, code: str, opening: HoldRequest, now: datetime) -> Decision:
    unit = unit_in(standing, code)
    own = standing.booking
    if own is not None and own.status in HOLDING and _is_own(own, opening):
        return Decision(unit, booking=own, action=Action.OPEN)
    made_before = _made_before(standing, opening.draft)
    if made_before is not None:
        return _replayed(unit, made_before, opening.draft)
    step = _opening_step(unit, opening.caller, now)
    slots = _places(standing, opening, now)
    expires_at = now + opening.periods.hold(standing.project)
    held, event = move(unit, step, now, hold_expires_at=expires_at)
    booking = new_booking(
        opening.draft,
        (unit.project_id, unit.id),
        terms_of(unit.fields),
        BookingStatus.OPEN,
        now,
        hold_expires_at=expires_at,
        slots=slots,
    )
    return Decision(held, events=(event,) if event else (), booking=booking, action=Action.OPEN)


def _is_own(booking: Booking, opening: HoldRequest) -> bool:
    """A buyer who comes back: the token says so whatever else is sent."""
    return booking.token_hash == opening.token_hash


def _made_before(standing: UnitSnapshot, draft: Draft) -> Booking | None:
    """What the same request has made, by its Idempotency-Key."""
    if draft.idempotency_id is None:
        return None
    known = [*standing.others.values(), *((standing.booking,) if standing.booking else ())]
    return next((booking for booking in known if booking.idempotency_id == draft.idempotency_id), None)


def _replayed(unit: Unit, booking: Booking, draft: Draft) -> Decision:
    """What the first answer said must still be so."""
    if booking.status is BookingStatus.LAPSED:
        raise HoldLapsed("The hold of this Idempotency-Key has lapsed.", unit.status)
    if booking.status not in HOLDING:
        message = "The booking of this Idempotency-Key is %(booking_status)s."
        detail = Message(message, {"booking_status": booking.status})
        raise TransitionNotAllowed(Action.OPEN, unit.status, detail=detail)
    if booking.token_hash != draft.token_hash:
        message = "The token of this hold has been issued anew; ask with the new one."
        raise TransitionNotAllowed(Action.OPEN, unit.status, detail=message)
    return Decision(unit, booking=booking, action=Action.OPEN)


def _opening_step(unit: Unit, caller: Caller, now: datetime) -> Transition:
    """A buyer is told that the unit is not available, staff what the status table says."""
    if caller is not Caller.BUYER:
        return step_for(unit, Action.OPEN, caller, now)
    try:
        return transition(Action.OPEN, caller, unit.status, unit.archived)
    except TransitionNotAllowed:
        raise NotAvailable(_why_not(unit), unit.status, (), unit.hold_expires_at, now) from None


def _why_not(unit: Unit) -> AnyMessage:
    if unit.status is Status.UNAVAILABLE:
        return "The unit is not on sale."
    if unit.status is Status.HELD:
        return "The unit is held. If the hold is yours, send its token."
    return Message("The unit is %(unit_status)s.", {"unit_status": unit.status})


def _places(standing: UnitSnapshot, opening: HoldRequest, now: datetime) -> Slots:
    holder, limits = opening.draft.holder, opening.limits
    if standing.others:
        refuse_rehold(_lapsed_at(standing, opening), limits.rehold_seconds, now)
    of_visitor = of_address = None
    if holder.visitor_id is not None:
        holds = standing.live_holds.get(holder.visitor_id, ())
        of_visitor = free_slot(holds, limits.per_visitor, VISITOR, now)
    if holder.address_id is not None:
        holds = standing.live_holds.get(holder.address_id, ())
        of_address = free_slot(holds, limits.per_address, ADDRESS, now)
    return Slots(of_address, of_visitor)


def _lapsed_at(standing: UnitSnapshot, opening: HoldRequest) -> datetime | None:
    visitor_id, token_hash = opening.draft.holder.visitor_id, opening.token_hash
    ends = [
        booking.ended_at
        for booking in standing.others.values()
        if booking.status is BookingStatus.LAPSED
        and booking.ended_at is not None
        and (
            (visitor_id is not None and booking.holder.visitor_id == visitor_id)
            or (token_hash is not None and booking.token_hash == token_hash)
        )
    ]
    return max(ends, default=None)


# The end of a hold or reservation, as the clock writes it for many units at once. Pure.
#
# It is the same that ``decision.lapse`` makes of one unit, from no more than what it needs: a test holds
# the two against each other.

_ENDINGS = {
    Status.HELD: (Action.LAPSE_HOLD, "hold_expires_at", BookingStatus.LAPSED),
    Status.RESERVED: (Action.LAPSE_RESERVATION, "reserved_until", BookingStatus.REFUND_DUE),
}
_STEPS = {
    status: transition(action, Caller.CLOCK, status, archived=False)
    for status, (action, _, _) in _ENDINGS.items()
}


class LapsedUnit(NamedTuple):
    id: UUID
    project_id: UUID
    status: Status
    ends_at: datetime
    version: int
    updated_at: datetime
    code: str


class LiveBooking(NamedTuple):
    number: int
    reference: str
    status: BookingStatus


class ReleasedUnit(NamedTuple):
    unit_id: UUID
    version: int
    at: datetime
    booking_number: int | None
    booking_status: BookingStatus
    ended_at: datetime
    event: UnitEvent
    entry: AuditEntry


def release(unit: LapsedUnit, booking: LiveBooking | None) -> ReleasedUnit:
    step = _STEPS[unit.status]
    action, end_name, booking_status = _ENDINGS[unit.status]
    version, at = unit.version + 1, max(unit.ends_at, unit.updated_at + ONE_MILLISECOND)
    before = {"status": unit.status, end_name: unit.ends_at}
    after: dict[str, object] = {"status": step.target, end_name: None}
    if booking is not None:
        before["booking_status"] = booking.status
        after["booking_status"] = booking_status
    reference = None if booking is None else booking.reference
    assert step.event is not None
    return ReleasedUnit(
        unit.id,
        version,
        at,
        None if booking is None else booking.number,
        booking_status,
        unit.ends_at,
        UnitEvent(
            event_id(unit.id, version), unit.project_id, unit.id, version, step.event, unit.status,
            step.target, None, at, unit.code,
        ),
        AuditEntry(unit.id, unit.project_id, at, CLOCK, action, reference, Change(before, after)),
    )  # fmt: skip
