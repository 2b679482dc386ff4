"""A unit, and its transitions from status to status. Pure: time and ids are arguments."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID

from holdfast.domain.errors import Fault, Message
from holdfast.domain.event import UnitEvent, event_id, named_uuid
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller, Transition, transition

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
    floor: int | None = None
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


class MovedUnit(NamedTuple):
    unit: Unit
    events: tuple[UnitEvent, ...]


def code_fault(code: str, pointer: str = "/path/code") -> Fault | None:
    shortest, longest = CODE_LENGTH
    if not shortest <= len(code) <= longest:
        message = "A code must have %(least)s to %(most)s characters."
        return Fault(pointer, Message(message, {"least": shortest, "most": longest}))
    if not code.isprintable() or code != code.strip():
        return Fault(pointer, "A code is printable text with no space at either end.")
    if not (code.isascii() or unicodedata.is_normalized("NFC", code)):
        return Fault(pointer, "A code is Unicode text in normalization form NFC.")
    return None


def revision(unit: Unit, project: Project) -> str:
    """Name one representation of the unit; the project is part of it, for its name is shown.

    So is the status: a reader between the end of a hold and the commit of a decision made just before that
    end sees an expiry that is never written, under the version of that decision.
    """
    return f"{unit.version}{unit.status[0]}-{project.version}"


def unit_id(project_id: UUID, code: str) -> UUID:
    """A project never has two units of one code, so a repeated write makes the same unit."""
    return named_uuid(project_id, code)


def ends_at(unit: Unit) -> datetime | None:
    return unit.hold_expires_at or unit.reserved_until


def is_expired(unit: Unit, now: datetime) -> bool:
    end = ends_at(unit)
    return end is not None and end <= now


def allowed_transition(unit: Unit, action: Action, caller: Caller, now: datetime) -> Transition:
    return transition(action, caller, unit.status, unit.archived, unit.hold_expires_at, now)


def expire_unit(unit: Unit) -> MovedUnit:
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
) -> MovedUnit:
    moved = unit._replace(
        fields=unit.fields if fields is None else fields,
        status=step.target,
        archived=archived,
        hold_expires_at=hold_expires_at,
        reserved_until=reserved_until,
        version=unit.version + 1,
        updated_at=_next_timestamp(unit, now),
    )
    if step.event is None:
        return MovedUnit(moved, ())
    event = UnitEvent(
        event_id(moved.id, moved.version), moved.project_id, moved.id, moved.version,
        step.event, unit.status, moved.status, booking_reference, moved.updated_at, moved.code,
    )  # fmt: skip
    return MovedUnit(moved, (event,))


def with_fields(unit: Unit, fields: UnitFields, now: datetime) -> Unit:
    return Unit(
        unit.id, unit.project_id, unit.code, unit.ref, fields, unit.status, unit.archived,
        unit.hold_expires_at, unit.reserved_until, unit.version + 1, unit.created_at,
        _next_timestamp(unit, now),
    )  # fmt: skip


def _next_timestamp(unit: Unit, now: datetime) -> datetime:
    """Return a time later than that of the last change, even when the clock went back."""
    return max(now, unit.updated_at + ONE_MILLISECOND)
