"""A unit, and its steps from status to status. Pure: time and ids are arguments."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.errors import Fault, TransitionNotAllowed
from holdfast.domain.event import UnitEvent, event_id, id_within
from holdfast.domain.message import Message
from holdfast.domain.project import Project
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status, Transition, transition

CODE_LENGTH = (1, 50)
ONE_MILLISECOND = timedelta(milliseconds=1)

Media = str | Mapping[str, str | None]
"""A URL, or an object with ``url`` and perhaps ``name``; kept in the form in which it was sent."""


class UnitFields(NamedTuple):
    """What an external system writes, status apart."""

    type: str
    area_sqm: Decimal
    price_sar: Decimal
    vat_included: bool | None = None
    vat_rate: Decimal | None = None
    deposit_percent: Decimal | None = None
    bedrooms: int | None = None
    bathrooms: int | None = None
    delivery_year: int | None = None
    description: str | None = None
    images: tuple[Media, ...] = ()
    files: tuple[Media, ...] = ()


class Unit(NamedTuple):
    id: UUID
    project_id: UUID
    code: str
    ref: str
    """Issued by the database when the unit is stored; empty before."""
    fields: UnitFields
    status: Status
    archived: bool
    hold_expires_at: datetime | None
    reserved_until: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime


class Step(NamedTuple):
    """A unit after a transition, and the event that tells of it."""

    unit: Unit
    event: UnitEvent | None


def code_fault(code: str, pointer: str = "/path/code") -> Fault | None:
    shortest, longest = CODE_LENGTH
    if not shortest <= len(code) <= longest:
        message = "A code has %(least)s to %(most)s characters."
        return Fault(pointer, Message(message, {"least": shortest, "most": longest}))
    if not code.isprintable() or code != code.strip():
        return Fault(pointer, "A code is printable text with no space at either end.")
    if not (code.isascii() or unicodedata.is_normalized("NFC", code)):
        return Fault(pointer, "A code is Unicode text in the form NFC.")
    return None


def revision(unit: Unit, project: Project) -> str:
    """Names one representation of the unit; the project is part of it, for its name is shown.

    So is the status: whoever looks between the end of a hold and the commit of what was decided just
    before it sees a release that is never written, under the version that is.
    """
    return f"{unit.version}{unit.status[0]}-{project.version}"


def unit_id(project_id: UUID, code: str) -> UUID:
    """A project never has two units of one code, so a repeated write makes the same unit."""
    return id_within(project_id, code)


def ends_at(unit: Unit) -> datetime | None:
    """When the unit's hold or reservation lapses."""
    return unit.hold_expires_at or unit.reserved_until


def is_lapsed(unit: Unit, now: datetime) -> bool:
    end = ends_at(unit)
    return end is not None and end <= now


def step_for(unit: Unit, action: Action, caller: Caller, now: datetime) -> Transition:
    """The line of the status table, or the refusal with all that explains it."""
    try:
        return transition(action, caller, unit.status, unit.archived)
    except TransitionNotAllowed:
        hold_end = unit.hold_expires_at if _helps_to_wait(action, caller) else None
        others_may = _is_possible(action, unit)
        raise TransitionNotAllowed(
            action, unit.status, unit.archived, hold_end, now, others_may=others_may
        ) from None


def _helps_to_wait(action: Action, caller: Caller) -> bool:
    """A hold that ends leaves the unit available."""
    return any(
        row.action is action and caller in row.callers and row.source is Status.AVAILABLE
        for row in TRANSITIONS
    )


def _is_possible(action: Action, unit: Unit) -> bool:
    """For some caller."""
    return any(
        row.action is action and row.source is unit.status and (row.from_archived or not unit.archived)
        for row in TRANSITIONS
    )


def release_by_clock(unit: Unit) -> Step:
    """What the end of a hold or reservation makes of the unit, at the moment of that end."""
    end = ends_at(unit)
    assert end is not None
    action = Action.LAPSE_HOLD if unit.status is Status.HELD else Action.LAPSE_RESERVATION
    return move(unit, transition(action, Caller.CLOCK, unit.status, unit.archived), end)


def as_seen(unit: Unit, now: datetime) -> Unit:
    """What the clock has made of it, exactly as the release writes it."""
    return release_by_clock(unit).unit if is_lapsed(unit, now) else unit


def move(
    unit: Unit,
    step: Transition,
    now: datetime,
    *,
    fields: UnitFields | None = None,
    archived: bool = False,
    hold_expires_at: datetime | None = None,
    reserved_until: datetime | None = None,
    booking_reference: str | None = None,
) -> Step:
    moved = Unit(
        *unit[:4],
        fields=unit.fields if fields is None else fields,
        status=step.target,
        archived=archived,
        hold_expires_at=hold_expires_at,
        reserved_until=reserved_until,
        version=unit.version + 1,
        created_at=unit.created_at,
        updated_at=moment_after(unit, now),
    )
    return Step(moved, _event(unit, moved, step, booking_reference))


def moment_after(unit: Unit, moment: datetime) -> datetime:
    """A change is later than the one before, even when the clock is not: versions and times agree."""
    return max(moment, unit.updated_at + ONE_MILLISECOND)


def _event(before: Unit, after: Unit, step: Transition, booking_reference: str | None) -> UnitEvent | None:
    if step.event is None:
        return None
    return UnitEvent(
        event_id(after.id, after.version), after.project_id, after.id, after.version,
        step.event, before.status, after.status, booking_reference, after.updated_at, after.code,
    )  # fmt: skip
