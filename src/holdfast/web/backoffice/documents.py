"""Units, projects and entries as staff see them."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.domain.booking import CLAIMING
from holdfast.domain.project import Project
from holdfast.operations.projects import Placed, Recorded
from holdfast.operations.staff_units import StaffUnit
from holdfast.operations.write_path import Written
from holdfast.web.wire import camel_case, optional_time_text, project_document, time_text, unit_document


def written_unit_document(written: Written) -> dict[str, Any]:
    booking = written.decision.booking
    claim = booking if booking and booking.status in CLAIMING else None
    return staff_unit_document(StaffUnit(written.unit, written.project, claim))


def staff_unit_document(found: StaffUnit) -> dict[str, Any]:
    """The unit of the integration API, and what staff alone know of it."""
    unit, project, booking = found
    members = msgspec.structs.asdict(unit_document(unit, project))
    return {
        **{camel_case(name): value for name, value in members.items()},
        "archived": unit.archived,
        "reservedUntil": optional_time_text(unit.reserved_until),
        "bookingReference": booking.reference if booking else None,
    }


def staff_project_document(project: Project) -> dict[str, Any]:
    return {
        **project_document(project),
        "holdSeconds": _number(project.hold_seconds),
        "reservationDays": _number(project.reservation_days),
    }


def layout_document(slug: str, placed: list[Placed]) -> dict[str, Any]:
    return {
        "projectSlug": slug,
        "units": [
            {"code": code, **place._asdict(), "guessed": is_guessed} for code, place, is_guessed in placed
        ],
    }


def entry_document(entry: Recorded) -> dict[str, Any]:
    return {
        "at": time_text(entry.at),
        "actor": {"kind": entry.actor_kind, "id": entry.actor_id, "name": entry.key_name},
        "action": entry.action,
        "bookingReference": entry.booking_reference,
        "before": None if entry.before is None else msgspec.Raw(entry.before.encode()),
        "after": msgspec.Raw(entry.after.encode()),
        "requestId": entry.request_id,
    }


def _number(value: float | None) -> float | int | None:
    return int(value) if value is not None and value.is_integer() else value
