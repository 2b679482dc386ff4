"""What a command finds, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.audit import Change
from holdfast.domain.booking import CLAIMING, NOBODY, Booking, Holder, end
from holdfast.domain.event import UnitEvent
from holdfast.domain.hold_limits import LiveHold
from holdfast.domain.project import Project
from holdfast.domain.status import Action, Status
from holdfast.domain.unit import Unit, UnitFields, release_by_clock

_NOTHING: Mapping[Any, Any] = {}


class UnitSnapshot(NamedTuple):
    """What a command finds when its turn comes."""

    project: Project
    unit: Unit | None
    booking: Booking | None = None
    """The one that claims the unit; known where a command wants it, or the clock has ended it."""
    others: Mapping[int, Booking] = _NOTHING
    """Bookings of this unit that a command names, by number, and that do not claim it."""
    live_holds: Mapping[UUID, Sequence[LiveHold]] = _NOTHING
    """Of the holders that commands name."""
    turn: int = 0
    """One more each time the unit or its booking is stored: two that have seen the same saw the same."""

    def booking_numbered(self, number: int) -> Booking | None:
        if self.booking is not None and self.booking.number == number:
            return self.booking
        return self.others.get(number)


class Wanted(NamedTuple):
    """What a command must know beside the unit."""

    claim: bool = False
    """The booking that claims the unit, if one does."""
    booking_number: int | None = None
    holder: Holder = NOBODY
    """Whose live holds count."""
    visitor_id: UUID | None = None
    token_hash: bytes | None = None
    """Whose lapsed holds of the unit count."""
    lapsed_within_seconds: float = 0.0
    """How long ago they may have lapsed, to count."""
    idempotency_id: UUID | None = None
    """Of the request; what it has made before is wanted, whatever became of it."""


class Decision(NamedTuple):
    unit: Unit
    created: bool = False
    events: tuple[UnitEvent, ...] = ()
    booking: Booking | None = None
    """That the command is about, changed or not."""
    action: str = "change"


def lapse(standing: UnitSnapshot) -> Decision:
    """Release the unit, whose hold or reservation is over, and end its booking."""
    assert standing.unit is not None
    unit, event = release_by_clock(standing.unit)
    held = standing.unit.status is Status.HELD
    return Decision(
        unit,
        events=(event,) if event else (),
        booking=_ended_by_clock(standing.booking),
        action=Action.LAPSE_HOLD if held else Action.LAPSE_RESERVATION,
    )


def after(standing: UnitSnapshot, decision: Decision) -> UnitSnapshot:
    """What the next command finds."""
    project, _, claim, others, live_holds, turn = standing
    booking = decision.booking
    if booking is not None:
        others = {**others, booking.number: booking}
        if claim is None or claim.number == booking.number:
            claim = booking if booking.status in CLAIMING else None
    return UnitSnapshot(project, decision.unit, claim, others, live_holds, turn)


def change_made(before: UnitSnapshot, decision: Decision) -> Change:
    """The difference, in the domain's names. Nothing of the buyer's person, which can be erased."""
    old, new = _unit_differences(before.unit, decision.unit)
    booking = decision.booking
    found = None if booking is None else before.booking_numbered(booking.number)
    if booking is not None and booking is not found:
        if found is not None and found.status is not booking.status:
            old["booking_status"] = found.status
        if found is None or found.status is not booking.status:
            new["booking_status"] = booking.status
    return Change(None if before.unit is None else old, new)


_STATE = ("status", "archived", "hold_expires_at", "reserved_until")
# One slice compares them all, which is why they stand together.
_STATE_FROM = Unit._fields.index(_STATE[0])
_STATE_TO = _STATE_FROM + len(_STATE)
assert Unit._fields[_STATE_FROM:_STATE_TO] == _STATE


def _unit_differences(before: Unit | None, after: Unit) -> tuple[dict[str, Any], dict[str, Any]]:
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    if before is None:
        fields = zip(UnitFields._fields, after.fields, strict=True)
        new = {name: value for name, value in fields if value or (value is not None and value != ())}
        new["status"] = after.status
        return old, new
    if before.fields is not after.fields:
        _note_differences(UnitFields._fields, before.fields, after.fields, old, new)
    was, is_now = before[_STATE_FROM:_STATE_TO], after[_STATE_FROM:_STATE_TO]
    if was != is_now:
        _note_differences(_STATE, was, is_now, old, new)
    return old, new


def _note_differences(
    names: Sequence[str],
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    old: dict[str, Any],
    new: dict[str, Any],
) -> None:
    for name, was, is_now in zip(names, before, after, strict=True):
        if was != is_now:
            old[name], new[name] = was, is_now


def _ended_by_clock(booking: Booking | None) -> Booking | None:
    if booking is None or booking.ends_at is None:
        return None
    return end(booking, booking.ends_at, lapsed=True)
