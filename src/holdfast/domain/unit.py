"""A unit, and what a replacement or a patch makes of it. Pure: time and ids are arguments."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.event import EventName, UnitEvent, event_id
from holdfast.domain.names import id_within
from holdfast.domain.precondition import UNCONDITIONAL, Precondition
from holdfast.domain.project import Project
from holdfast.domain.refusals import (
    Fault,
    InvalidInput,
    StatusLocked,
    TermsLocked,
    TransitionNotAllowed,
    UnknownUnit,
)
from holdfast.domain.status import LOCKED, MID_BOOKING, Action, Caller, Status, Transition, transition

CODE_LENGTH = (1, 50)
STATUS_MESSAGE = "The status can be set to `available` or `unavailable` only."
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


TERMS = ("price_sar", "deposit_percent", "vat_included", "vat_rate")
"""The fields that a buyer agreed to, which stand still while the buyer is mid-booking."""


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


class Standing(NamedTuple):
    """What a command finds when its turn comes."""

    project: Project
    unit: Unit | None


class Decision(NamedTuple):
    unit: Unit
    created: bool = False
    event: UnitEvent | None = None


def code_fault(code: str, pointer: str = "/path/code") -> Fault | None:
    shortest, longest = CODE_LENGTH
    if not shortest <= len(code) <= longest:
        return Fault(pointer, f"A code has {shortest} to {longest} characters.")
    if not code.isprintable() or code != code.strip():
        return Fault(pointer, "A code is printable text with no space at either end.")
    if not (code.isascii() or unicodedata.is_normalized("NFC", code)):
        return Fault(pointer, "A code is Unicode text in the form NFC.")
    return None


def revision(unit: Unit, project: Project) -> str:
    """Names one representation of the unit; the project is part of it, for its name is shown."""
    return f"{unit.version}-{project.version}"


def lapse(unit: Unit, now: datetime) -> Decision:
    """Release the unit if its hold or reservation is over. Readers see exactly what this writes."""
    ends_at = unit.hold_expires_at or unit.reserved_until
    if ends_at is None or ends_at > now:
        return Decision(unit)
    action = Action.LAPSE_HOLD if unit.status is Status.HELD else Action.LAPSE_RESERVATION
    step = transition(action, Caller.CLOCK, unit.status, unit.archived)
    return _move(unit, unit.fields, step, _moment_after(unit, ends_at))


def unit_id(project_id: UUID, code: str) -> UUID:
    """A project never has two units of one code, so a repeated write makes the same unit."""
    return id_within(project_id, code)


def replace(
    standing: Standing,
    code: str,
    fields: UnitFields,
    status: Status | None,
    precondition: Precondition,
    now: datetime,
) -> Decision:
    """PUT: the unit as a whole, created if there is none."""
    unit = standing.unit
    _refuse_status_names_of_the_service(unit, status)
    if precondition is not UNCONDITIONAL:
        precondition.check(revision(unit, standing.project) if unit else None)
    if unit is None:
        created = _create(standing.project, code, fields, status or Status.AVAILABLE, now)
        return Decision(created, created=True)
    return _change(unit, fields, status, now)


def patch(
    standing: Standing,
    code: str,
    changes: Mapping[str, Any],
    status: Status | None,
    precondition: Precondition,
    now: datetime,
) -> Decision:
    """PATCH: only what is named in ``changes`` changes."""
    unit = standing.unit
    _refuse_status_names_of_the_service(unit, status)
    if unit is None:
        raise UnknownUnit(standing.project.slug, code)
    if precondition is not UNCONDITIONAL:
        precondition.check(revision(unit, standing.project))
    return _change(unit, unit.fields._replace(**changes), status, now)


def _create(project: Project, code: str, fields: UnitFields, status: Status, now: datetime) -> Unit:
    """No event: creation is no change of status."""
    return Unit(
        id=unit_id(project.id, code),
        project_id=project.id,
        code=code,
        ref="",
        fields=fields,
        status=status,
        archived=False,
        hold_expires_at=None,
        reserved_until=None,
        version=1,
        created_at=now,
        updated_at=now,
    )


def _change(unit: Unit, fields: UnitFields, status: Status | None, now: datetime) -> Decision:
    if status is not None and unit.status in LOCKED:
        raise StatusLocked(
            f"The status cannot be set while the unit is {unit.status}.",
            unit.status,
            ["status"],
            unit.hold_expires_at,
            _seconds_until(unit.hold_expires_at, now),
        )
    if unit.status in MID_BOOKING:
        _refuse_changed_terms(unit, fields, now)
    if status is None or status is unit.status:
        return Decision(unit) if fields == unit.fields else Decision(_renew(unit, fields, now))
    return _move(unit, fields, _step_to(status, unit), _moment_after(unit, now))


def _step_to(status: Status, unit: Unit) -> Transition:
    action = Action.PUT_ON_SALE if status is Status.AVAILABLE else Action.TAKE_OFF_SALE
    try:
        return transition(action, Caller.API, unit.status, unit.archived)
    except TransitionNotAllowed as refusal:
        refusal.fields = ("status",)
        raise


def _refuse_status_names_of_the_service(unit: Unit | None, status: Status | None) -> None:
    locked = unit is not None and unit.status in LOCKED
    if status in LOCKED and not locked:
        raise InvalidInput.at("/status", STATUS_MESSAGE)


def _refuse_changed_terms(unit: Unit, fields: UnitFields, now: datetime) -> None:
    changed = [name for name in TERMS if getattr(unit.fields, name) != getattr(fields, name)]
    if changed:
        raise TermsLocked(
            "Price, deposit and VAT cannot change while a buyer is mid-booking.",
            unit.status,
            changed,
            unit.hold_expires_at,
            _seconds_until(unit.hold_expires_at, now),
        )


def _renew(unit: Unit, fields: UnitFields, now: datetime) -> Unit:
    return Unit(*unit[:4], fields, *unit[5:9], unit.version + 1, unit.created_at, _moment_after(unit, now))


def _move(unit: Unit, fields: UnitFields, step: Transition, at: datetime) -> Decision:
    """Only for steps out of a claim or on and off sale: the claims' own ends are cleared."""
    moved = unit._replace(
        fields=fields,
        status=step.target,
        archived=False,
        hold_expires_at=None,
        reserved_until=None,
        version=unit.version + 1,
        updated_at=at,
    )
    return Decision(moved, event=_event(unit, moved, step.event))


def _event(before: Unit, after: Unit, name: EventName | None) -> UnitEvent | None:
    if name is None:
        return None
    return UnitEvent(
        id=event_id(after.id, after.version),
        project_id=after.project_id,
        unit_id=after.id,
        unit_version=after.version,
        type=name,
        previous_status=before.status,
        status=after.status,
        booking_reference=None,
        created_at=after.updated_at,
    )


def _moment_after(unit: Unit, moment: datetime) -> datetime:
    """A change is later than the one before, even when the clock is not: versions and times agree."""
    return max(moment, unit.updated_at + ONE_MILLISECOND)


def _seconds_until(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else (moment - now).total_seconds()
