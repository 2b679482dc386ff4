"""Holds and reservations: their length, their limits, and how they open and expire. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from holdfast.domain import errors
from holdfast.domain.audit import CLOCK, AuditEntry, Change
from holdfast.domain.booking import HOLDING, Booking, BookingStatus, Draft, LiveHold, Slots, new_booking
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.event import UnitEvent, event_id
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller, Transition, find_transition, transition
from holdfast.domain.unit import ONE_MILLISECOND, Unit, allowed_transition, move

VISITOR = "This visitor"
ADDRESS = "Your network address"
NETWORK = "Your network"
_HOLDERS = (ADDRESS, VISITOR, NETWORK, NETWORK)
"""In the order of ``Slots``."""

REPEATED_WITHIN = timedelta(seconds=60)
"""For so long a response with a token or secret is repeated to whoever sends its Idempotency-Key again."""
_KEY_USED = "This Idempotency-Key was used for this unit before; send a new one with a new request."

LONGEST_HOLD_SECONDS = 604_800
LONGEST_RESERVATION_DAYS = 3_650
_LONGEST_EXTENSION = timedelta(days=LONGEST_RESERVATION_DAYS)
_A_DAY = 86_400
_TOO_EARLY = "This must not be before the current end."
_TOO_LATE = errors.Message("The end can be at most %(days)s days ahead.", {"days": LONGEST_RESERVATION_DAYS})


class HoldPeriods(NamedTuple):
    """The server's periods, for projects that have none of their own."""

    hold_seconds: float = 300.0
    reservation_days: float = 14.0

    def hold(self, project: Project) -> timedelta:
        own = project.hold_seconds
        return _whole_milliseconds(self.hold_seconds if own is None else own)

    def reservation(self, project: Project) -> timedelta:
        own = project.reservation_days
        return _whole_milliseconds((self.reservation_days if own is None else own) * _A_DAY)


def check_end(until: datetime | None, now: datetime) -> None:
    """Reject an end that is wrong for every unit, before the unit is loaded."""
    if until is not None and until <= now:
        raise errors.InvalidInput.at("/until", _TOO_EARLY)
    if until is not None and until - now > _LONGEST_EXTENSION:
        raise errors.InvalidInput.at("/until", _TOO_LATE)


def extended_end(ends_at: datetime, until: datetime | None, period: timedelta, now: datetime) -> datetime:
    """An extension never moves the end closer."""
    if until is not None and until < ends_at:
        raise errors.InvalidInput.at("/until", _TOO_EARLY)
    further = period if until is None else until - ends_at
    if further > now + _LONGEST_EXTENSION - ends_at:
        raise errors.InvalidInput.at("/until", _TOO_LATE)
    return ends_at + further


@lru_cache(maxsize=1024)
def _whole_milliseconds(seconds: float) -> timedelta:
    return timedelta(milliseconds=max(1, round(seconds * 1000)))


class HoldLimits(NamedTuple):
    """0 is no limit."""

    per_visitor: int = 3
    per_address: int = 20
    rehold_seconds: float = 60.0
    share_percent: int = 20
    """Of a project's units on sale or held, for one network; but always as many as one visitor may hold."""

    @property
    def slots(self) -> tuple[int, ...]:
        """How many slots there are, in the order of ``Slots``."""
        return self.per_address, self.per_visitor, 2 * self.per_address, 4 * self.per_address

    def share_of(self, units: int) -> int:
        """Return how many of so many units the buyers of one network may hold."""
        return max(self.per_visitor, 1, math.ceil(units * self.share_percent / 100))


NO_LIMITS = HoldLimits(0, 0, 0, 0)


class HoldRequest(NamedTuple):
    draft: Draft
    caller: Caller
    periods: HoldPeriods
    limits: HoldLimits = NO_LIMITS
    token_hash: bytes | None = None
    """Of a booking that the caller already has."""


def get_unit(snapshot: UnitSnapshot, code: str) -> Unit:
    if snapshot.unit is None:
        raise errors.UnknownUnit(snapshot.project.slug, code)
    return snapshot.unit


def open_unit(snapshot: UnitSnapshot, code: str, request: HoldRequest, now: datetime) -> Decision:
    unit = get_unit(snapshot, code)
    own = snapshot.booking
    # A buyer who comes back: the token identifies them whatever else is sent.
    if own is not None and own.status in HOLDING and own.token_hash == request.token_hash:
        return Decision(unit, booking=own, action=Action.OPEN)
    idempotency_id = request.draft.idempotency_id
    if idempotency_id is not None:
        for booking in (*snapshot.others.values(), *((own,) if own else ())):
            if booking.idempotency_id == idempotency_id:
                return _replay(unit, booking, request.draft, now)
    step = _opening_transition(unit, request.caller, now)
    slots = _take_slots(snapshot, request, now)
    expires_at = now + request.periods.hold(snapshot.project)
    held, events = move(unit, step, now, hold_expires_at=expires_at)
    booking = new_booking(
        request.draft, unit, BookingStatus.OPEN, now, hold_expires_at=expires_at, slots=slots
    )
    return Decision(held, events=events, booking=booking, action=Action.OPEN)


def _replay(unit: Unit, booking: Booking, draft: Draft, now: datetime) -> Decision:
    """Repeat the first response to the same Idempotency-Key, which has the token, to the same buyer alone.

    After the signature that token opens the buyer's data, so it is not repeated any more.
    """
    if booking.status is BookingStatus.LAPSED:
        raise errors.HoldLapsed("The hold of this Idempotency-Key has lapsed.", unit.status)
    visitor_id, first = draft.holder.visitor_id, booking.holder
    is_same_visitor = visitor_id is not None and visitor_id == first.visitor_id
    is_same_address = draft.holder.address_id == first.address_id
    is_recent = now - booking.created_at <= REPEATED_WITHIN
    is_unchanged = booking.status is BookingStatus.OPEN and booking.token_hash == draft.token_hash
    if not is_unchanged or not (is_same_visitor or (is_same_address and is_recent)):
        raise errors.IdempotencyKeyUsed(_KEY_USED, unit.status)
    return Decision(unit, booking=booking, action=Action.OPEN)


def _opening_transition(unit: Unit, caller: Caller, now: datetime) -> Transition:
    """Buyers get the error NotAvailable, staff the one of the status table."""
    if caller is not Caller.BUYER:
        return allowed_transition(unit, Action.OPEN, caller, now)
    step = find_transition(Action.OPEN, caller, unit.status, unit.archived)
    if step is not None:
        return step
    message: errors.AnyMessage = errors.Message("The unit is %(unit_status)s.", {"unit_status": unit.status})
    if unit.status is Status.UNAVAILABLE:
        message = "The unit is not on sale."
    elif unit.status is Status.HELD:
        message = "The unit is held. If the hold is yours, send its token."
    raise errors.NotAvailable(message, unit.status, (), unit.hold_expires_at, now)


def _take_slots(snapshot: UnitSnapshot, request: HoldRequest, now: datetime) -> Slots:
    holder, limits = request.draft.holder, request.limits
    if snapshot.others:
        check_rehold(_last_expiry(snapshot, request), limits.rehold_seconds, now)
    held = holder.project_network_id and snapshot.network_holds.get(holder.project_network_id)
    if held and held.live >= (share := limits.share_of(held.units)):
        raise _too_many(NETWORK, held.live, share, held.first_end or now, now)
    return Slots(
        *(
            None if holder_id is None else free_slot(snapshot.live_holds.get(holder_id, ()), limit, who, now)
            for holder_id, limit, who in zip(holder, limits.slots, _HOLDERS, strict=False)
        )
    )


def _last_expiry(snapshot: UnitSnapshot, request: HoldRequest) -> datetime | None:
    visitor_id, token_hash = request.draft.holder.visitor_id, request.token_hash
    ends = [
        booking.ended_at
        for booking in snapshot.others.values()
        if booking.status is BookingStatus.LAPSED
        and booking.ended_at is not None
        and (
            (visitor_id is not None and booking.holder.visitor_id == visitor_id)
            or (token_hash is not None and booking.token_hash == token_hash)
        )
    ]
    return max(ends, default=None)


def free_slot(holds: Sequence[LiveHold], limit: int, who: str, now: datetime) -> int | None:
    """Return the lowest free slot. Two concurrent requests get the same, and the database takes one.

    There are as many slots as holds are allowed, so no more holds than that can be stored. The slot of an
    expired hold is the last to be taken: the transaction that writes its end still has it, and is waited for.
    """
    if not limit:
        return None
    if not holds:
        return 1
    live = {hold.slot: hold.expires_at for hold in holds if hold.expires_at > now}
    if len(live) >= limit:
        raise _too_many(who, len(live), limit, min(live.values()), now)
    slots, taken = set(range(1, limit + 1)), {hold.slot for hold in holds}
    return min(slots - taken or slots - live.keys())


def _too_many(who: str, count: int, limit: int, first_end: datetime, now: datetime) -> errors.TooManyHolds:
    error = errors.TooManyHolds if who == VISITOR else errors.TooManyHoldsAtAddress
    message = "%(who)s already holds %(count)s units, and the limit is %(limit)s."
    return error(
        (first_end - now).total_seconds(),
        errors.Message(message, {"who": who, "count": count, "limit": limit}),
    )


def check_rehold(expired_at: datetime | None, rehold_seconds: float, now: datetime) -> None:
    """``expired_at``: when the same visitor's last hold of the same unit expired."""
    if expired_at is None or not rehold_seconds:
        return
    wait = (expired_at + timedelta(seconds=rehold_seconds) - now).total_seconds()
    if wait > 0:
        message = "Your hold on this unit has just lapsed; for %(seconds)s seconds only others can hold it."
        raise errors.HeldTooRecently(wait, errors.Message(message, {"seconds": f"{rehold_seconds:g}"}))


# Expiry of many units at once, by the clock. It does the same as ``decision.expire`` does to one unit, from
# the few columns that it needs; a test compares the two.

_ENDINGS = {
    Status.HELD: (Action.LAPSE_HOLD, "hold_expires_at", BookingStatus.LAPSED),
    Status.RESERVED: (Action.LAPSE_RESERVATION, "reserved_until", BookingStatus.REFUND_DUE),
}
_STEPS = {
    status: transition(action, Caller.CLOCK, status, archived=False)
    for status, (action, _, _) in _ENDINGS.items()
}


class DueUnit(NamedTuple):
    id: UUID
    project_id: UUID
    status: Status
    ends_at: datetime
    version: int
    updated_at: datetime
    code: str
    project_slug: str


class LiveBooking(NamedTuple):
    number: int
    reference: str
    status: BookingStatus


class ExpiredUnit(NamedTuple):
    unit_id: UUID
    version: int
    at: datetime
    booking_number: int | None
    booking_status: BookingStatus
    ended_at: datetime
    event: UnitEvent
    entry: AuditEntry


def expire_due_unit(unit: DueUnit, booking: LiveBooking | None) -> ExpiredUnit:
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
    return ExpiredUnit(
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
