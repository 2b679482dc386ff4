"""Decisions on a unit: the data that a command loads, and the changes that it decides on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain import errors
from holdfast.domain.audit import Change
from holdfast.domain.booking import CLAIMING, NOBODY, Booking, Holder, LiveHold, NetworkHolds, end
from holdfast.domain.email import NewEmail
from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, MID_BOOKING, Status
from holdfast.domain.transitions import Action, Caller, transition
from holdfast.domain.unit import Unit, UnitFields, expire_unit, move, revision, unit_id, with_fields

ANY = "*"
STATUS_MESSAGE = "The status can be set to `available` or `unavailable` only."

TERMS = ("price_sar", "deposit_percent", "vat_included", "vat_rate")
"""The fields that a buyer agreed to, which do not change while the buyer is mid-booking."""

_STATE = ("status", "archived", "hold_expires_at", "reserved_until")
_state_of = attrgetter(*_STATE)
_NOTHING: dict[Any, Any] = {}


class UnitSnapshot(NamedTuple):
    project: Project
    unit: Unit | None
    live_holds: dict[UUID, list[LiveHold]] = _NOTHING
    """Of the holders that commands name."""
    turn: int = 0
    """Rises each time the unit or its booking is stored: equal turns mean equal data."""
    booking: Booking | None = None
    """The one that claims the unit; loaded where a command needs it, or the clock has ended it."""
    others: Mapping[int, Booking] = _NOTHING
    """Bookings of this unit that a command names, by number, and that do not claim it."""
    payments: dict[str, int | None] = _NOTHING
    """The number of the booking that each payment has confirmed, of the payments that commands name."""
    network_holds: dict[UUID, NetworkHolds] = _NOTHING
    """By ``Holder.project_network_id``, of the buyers who ask for holds."""

    def booking_numbered(self, number: int) -> Booking | None:
        if self.booking is not None and self.booking.number == number:
            return self.booking
        return self.others.get(number)


class Needs(NamedTuple):
    claim: bool = False
    booking_number: int | None = None
    holder: Holder = NOBODY
    visitor_id: UUID | None = None
    token_hash: bytes | None = None
    """The visitor or token whose expired holds of the unit count."""
    expired_within_seconds: float = 0.0
    """How long ago they may have expired, to count."""
    idempotency_id: UUID | None = None
    """Of the request: the booking that it has made before, whatever its status."""
    payment_id: str | None = None
    share_percent: int = 0
    """Of a network, to hold of the units of its project."""


class Decision(NamedTuple):
    unit: Unit
    created: bool = False
    events: tuple[UnitEvent, ...] = ()
    booking: Booking | None = None
    action: str = "change"
    email: NewEmail | None = None


class Precondition(NamedTuple):
    """The revisions of a unit that a caller allows or forbids (If-Match, If-None-Match)."""

    match: frozenset[str] | None = None
    """The unit is in one of these revisions; ``*``: it exists."""
    none_match: frozenset[str] | None = None
    """The unit is in none of these revisions; ``*``: it does not exist."""

    def check(self, current: str | None) -> None:
        revisions = frozenset() if current is None else {ANY, current}
        if self.match is not None and not self.match & revisions:
            raise errors.PreconditionFailed(current)
        if self.none_match is not None and self.none_match & revisions:
            raise errors.PreconditionFailed(current)


UNCONDITIONAL = Precondition()


def replace(
    snapshot: UnitSnapshot,
    code: str,
    fields: UnitFields,
    status: Status | None,
    precondition: Precondition,
    now: datetime,
) -> Decision:
    """PUT: the unit as a whole, created if there is none."""
    unit = snapshot.unit
    _check_settable(unit, status)
    if precondition is not UNCONDITIONAL:
        precondition.check(revision(unit, snapshot.project) if unit else None)
    if unit is None:
        # No event: creation is no change of status.
        created = Unit(
            id=unit_id(snapshot.project.id, code),
            project_id=snapshot.project.id,
            code=code,
            ref="",
            fields=fields,
            status=status or Status.AVAILABLE,
            archived=False,
            hold_expires_at=None,
            reserved_until=None,
            version=snapshot.project.first_unit_version,
            created_at=now,
            updated_at=now,
        )
        return Decision(created, created=True, action="create")
    return _change(unit, fields, status, now)


def patch(
    snapshot: UnitSnapshot,
    code: str,
    changes: Mapping[str, Any],
    status: Status | None,
    precondition: Precondition,
    now: datetime,
) -> Decision:
    """PATCH: only the fields in ``changes`` change."""
    unit = snapshot.unit
    _check_settable(unit, status)
    if unit is None:
        raise errors.UnknownUnit(snapshot.project.slug, code)
    if precondition is not UNCONDITIONAL:
        precondition.check(revision(unit, snapshot.project))
    return _change(unit, unit.fields._replace(**changes), status, now)


def expire(snapshot: UnitSnapshot) -> Decision:
    assert snapshot.unit is not None
    unit, events = expire_unit(snapshot.unit)
    booking = snapshot.booking
    ended = None
    if booking is not None and booking.ends_at is not None:
        ended = end(booking, booking.ends_at, expired=True)
    held = snapshot.unit.status is Status.HELD
    action = Action.LAPSE_HOLD if held else Action.LAPSE_RESERVATION
    return Decision(unit, events=events, booking=ended, action=action)


def apply(snapshot: UnitSnapshot, decision: Decision) -> UnitSnapshot:
    """Return the snapshot that the next command finds."""
    claim, others, booking = snapshot.booking, snapshot.others, decision.booking
    if booking is not None:
        others = {**others, booking.number: booking}
        if claim is None or claim.number == booking.number:
            claim = booking if booking.status in CLAIMING else None
    return snapshot._replace(unit=decision.unit, booking=claim, others=others)


def describe_change(before: UnitSnapshot, decision: Decision) -> Change:
    """Return the difference, without the buyer's personal data, which can be erased."""
    old, new = _unit_differences(before.unit, decision.unit)
    booking = decision.booking
    found = None if booking is None else before.booking_numbered(booking.number)
    if booking is not None and (found is None or found.status is not booking.status):
        if found is not None:
            old["booking_status"] = found.status
        new["booking_status"] = booking.status
    return Change(None if before.unit is None else old, new)


def _change(unit: Unit, fields: UnitFields, status: Status | None, now: datetime) -> Decision:
    if status is not None and unit.status in LOCKED:
        text = "The status cannot be set while the unit is %(unit_status)s."
        message = errors.Message(text, {"unit_status": unit.status})
        raise errors.StatusLocked(message, unit.status, ["status"], unit.hold_expires_at, now)
    if unit.status in MID_BOOKING:
        changed = [name for name in TERMS if getattr(unit.fields, name) != getattr(fields, name)]
        if changed:
            text = "Price, deposit and VAT cannot change while a buyer is mid-booking."
            raise errors.TermsLocked(text, unit.status, changed, unit.hold_expires_at, now)
    if status is None or status is unit.status:
        return Decision(unit if fields == unit.fields else with_fields(unit, fields, now))
    action = Action.PUT_ON_SALE if status is Status.AVAILABLE else Action.TAKE_OFF_SALE
    try:
        step = transition(action, Caller.API, unit.status, unit.archived)
    except errors.TransitionNotAllowed as error:
        error.fields = ("status",)
        raise
    moved, events = move(unit, step, now, fields=fields)
    return Decision(moved, events=events, action=action)


def _check_settable(unit: Unit | None, status: Status | None) -> None:
    """Only the service sets the other statuses."""
    locked = unit is not None and unit.status in LOCKED
    if status in LOCKED and not locked:
        raise errors.InvalidInput.at("/status", STATUS_MESSAGE)


def _unit_differences(before: Unit | None, after: Unit) -> tuple[dict[str, Any], dict[str, Any]]:
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    if before is None:
        fields = zip(UnitFields._fields, after.fields, strict=True)
        new = {name: value for name, value in fields if value or (value is not None and value != ())}
        return old, {**new, "status": after.status}
    if before.fields is not after.fields:
        for name, was, is_now in zip(UnitFields._fields, before.fields, after.fields, strict=True):
            if was != is_now:
                old[name], new[name] = was, is_now
    if _state_of(before) != _state_of(after):
        for name in _STATE:
            was, is_now = getattr(before, name), getattr(after, name)
            if was != is_now:
                old[name], new[name] = was, is_now
    return old, new
