"""A unit, and its transitions from status to status. Pure: time and ids are arguments."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID, uuid5

from holdfast.domain.errors import Fault, TransitionNotAllowed
from holdfast.domain.event import UnitEvent, event_id
from holdfast.domain.message import Message
from holdfast.domain.project import Project
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status, Transition, transition

CODE_LENGTH = (1, 50)
ONE_MILLISECOND = timedelta(milliseconds=1)

Media = str | Mapping[str, str | None]
"""A URL, or an object with ``url`` and perhaps ``name``; kept in the form in which it was sent."""


class UnitFields(NamedTuple):
    """The fields that an external system writes, status apart.

    Columns, rows, cells of spreadsheets and differences follow from this definition.
    """

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


REQUIRED_FIELDS = tuple(name for name in UnitFields._fields if name not in UnitFields._field_defaults)


def fields_of_type(kind: type) -> frozenset[str]:
    """Return the fields that hold values of this type, or None."""
    hints = get_type_hints(UnitFields).items()
    return frozenset(name for name, hint in hints if kind in (hint, get_origin(hint), *get_args(hint)))


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
    """A unit after a transition, and its event."""

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
    """Name one representation of the unit; the project is part of it, for its name is shown.

    So is the status: a reader between the end of a hold and the commit of a decision made just before that
    end sees an expiry that is never written, under the version of that decision.
    """
    return f"{unit.version}{unit.status[0]}-{project.version}"


def unit_id(project_id: UUID, code: str) -> UUID:
    """A project never has two units of one code, so a repeated write makes the same unit."""
    return uuid5(project_id, code)


def ends_at(unit: Unit) -> datetime | None:
    """Return when the unit's hold or reservation expires."""
    return unit.hold_expires_at or unit.reserved_until


def is_expired(unit: Unit, now: datetime) -> bool:
    end = ends_at(unit)
    return end is not None and end <= now


def allowed_transition(unit: Unit, action: Action, caller: Caller, now: datetime) -> Transition:
    """Return the row of the status table, or raise the error with all that explains it."""
    try:
        return transition(action, caller, unit.status, unit.archived)
    except TransitionNotAllowed:
        rows = [row for row in TRANSITIONS if row.action is action]
        # A hold that ends leaves the unit available, so waiting helps where the action starts from there.
        waiting_helps = any(caller in row.callers and row.source is Status.AVAILABLE for row in rows)
        others_may = any(
            row.source is unit.status and (row.from_archived or not unit.archived) for row in rows
        )
        hold_end = unit.hold_expires_at if waiting_helps else None
        raise TransitionNotAllowed(
            action, unit.status, unit.archived, hold_end, now, others_may=others_may
        ) from None


def expire_unit(unit: Unit) -> Step:
    """Release the unit at the end of its hold or reservation."""
    end = ends_at(unit)
    assert end is not None
    action = Action.LAPSE_HOLD if unit.status is Status.HELD else Action.LAPSE_RESERVATION
    return move(unit, transition(action, Caller.CLOCK, unit.status, unit.archived), end)


def as_seen(unit: Unit, now: datetime) -> Unit:
    """Return the unit as readers see it: expired at its end, whether that is written already or not."""
    return expire_unit(unit).unit if is_expired(unit, now) else unit


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
    moved = unit._replace(
        fields=unit.fields if fields is None else fields,
        status=step.target,
        archived=archived,
        hold_expires_at=hold_expires_at,
        reserved_until=reserved_until,
        version=unit.version + 1,
        updated_at=next_timestamp(unit, now),
    )
    if step.event is None:
        return Step(moved, None)
    event = UnitEvent(
        event_id(moved.id, moved.version), moved.project_id, moved.id, moved.version,
        step.event, unit.status, moved.status, booking_reference, moved.updated_at, moved.code,
    )  # fmt: skip
    return Step(moved, event)


def next_timestamp(unit: Unit, now: datetime) -> datetime:
    """A change is later than the one before, even when the clock is not: versions and times agree."""
    return max(now, unit.updated_at + ONE_MILLISECOND)
