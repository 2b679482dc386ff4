"""What a caller demands of a unit's revision before it changes (If-Match, If-None-Match)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import (
    InvalidInput,
    PreconditionFailed,
    StatusLocked,
    TermsLocked,
    TransitionNotAllowed,
    UnknownUnit,
)
from holdfast.domain.message import Message
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, MID_BOOKING, Action, Caller, Status, Transition, transition
from holdfast.domain.unit import Unit, UnitFields, moment_after, move, revision, unit_id

ANY = "*"


class Precondition(NamedTuple):
    match: frozenset[str] | None = None
    """The unit is in one of these revisions; ``*``: it exists."""
    none_match: frozenset[str] | None = None
    """The unit is in none of these revisions; ``*``: it does not exist."""

    def check(self, current: str | None) -> None:
        if self.match is not None and not _names(self.match, current):
            raise PreconditionFailed(current)
        if self.none_match is not None and _names(self.none_match, current):
            raise PreconditionFailed(current)


UNCONDITIONAL = Precondition()


def _names(revisions: frozenset[str], current: str | None) -> bool:
    return current is not None and (ANY in revisions or current in revisions)


# What an external system makes of a unit: a replacement or a patch. Pure.

STATUS_MESSAGE = "The status can be set to `available` or `unavailable` only."

TERMS = ("price_sar", "deposit_percent", "vat_included", "vat_rate")
"""The fields that a buyer agreed to, which stand still while the buyer is mid-booking."""


def replace(
    standing: UnitSnapshot,
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
        return Decision(created, created=True, action="create")
    return _change(unit, fields, status, now)


def patch(
    standing: UnitSnapshot,
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
        message = "The status cannot be set while the unit is %(unit_status)s."
        raise StatusLocked(
            Message(message, {"unit_status": unit.status}),
            unit.status,
            ["status"],
            unit.hold_expires_at,
            now,
        )
    if unit.status in MID_BOOKING:
        _refuse_changed_terms(unit, fields, now)
    if status is None or status is unit.status:
        return Decision(unit) if fields == unit.fields else Decision(_renew(unit, fields, now))
    step = _step_to(status, unit)
    moved, event = move(unit, step, now, fields=fields)
    return Decision(moved, events=(event,) if event else (), action=step.action)


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
            now,
        )


def _renew(unit: Unit, fields: UnitFields, now: datetime) -> Unit:
    return Unit(*unit[:4], fields, *unit[5:9], unit.version + 1, unit.created_at, moment_after(unit, now))
