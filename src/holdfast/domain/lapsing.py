"""The end of a hold or reservation, as the clock writes it for many units at once. Pure.

It is the same that ``decision.lapse`` makes of one unit, from no more than what it needs: a test holds
the two against each other.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import CLOCK, Change, Entry
from holdfast.domain.booking import BookingStatus
from holdfast.domain.event import UnitEvent, event_id
from holdfast.domain.status import Action, Caller, Status, transition
from holdfast.domain.unit import ONE_MILLISECOND

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


class ClaimingBooking(NamedTuple):
    number: int
    reference: str
    status: BookingStatus


class Release(NamedTuple):
    unit_id: UUID
    version: int
    at: datetime
    booking_number: int | None
    booking_status: BookingStatus
    ended_at: datetime
    event: UnitEvent
    entry: Entry


def release(unit: LapsedUnit, booking: ClaimingBooking | None) -> Release:
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
    return Release(
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
        Entry(unit.id, unit.project_id, at, CLOCK, action, reference, Change(before, after)),
    )  # fmt: skip
