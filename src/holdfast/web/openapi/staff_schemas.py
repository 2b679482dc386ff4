"""The schemas of what staff read: units, their history, projects, layouts."""

from __future__ import annotations

from holdfast.domain.audit import ActorKind
from holdfast.domain.layout import FLOORS, POSITIONS
from holdfast.web.openapi.forms import (
    BOOKING_REFERENCE,
    READ_CODE,
    SLUG,
    TEXT,
    TIME,
    Schema,
    either_or_null,
    page,
    record,
    reference,
)
from holdfast.web.openapi.selling_schemas import optional_time
from holdfast.web.openapi.selling_texts import FIELDS

_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_PERIOD: Schema = {"type": "number", "exclusiveMinimum": 0}


def staff_schemas(unit: Schema, project: Schema) -> dict[str, Schema]:
    return {
        "StaffUnit": _staff_unit(unit),
        "StaffUnitList": page("units", "StaffUnit"),
        "HistoryEntry": _entry(),
        "History": page("entries", "HistoryEntry"),
        "Actor": _actor(),
        "StaffProject": _staff_project(project),
        "StaffProjectList": page("projects", "StaffProject"),
        "Layout": _layout(),
        "Place": _place(),
    }


def _staff_unit(unit: Schema) -> Schema:
    own: dict[str, Schema] = {
        "archived": {"type": "boolean", "description": FIELDS["archived"]},
        "reservedUntil": optional_time("reservedUntil"),
        "bookingReference": _optional(BOOKING_REFERENCE, "bookingReference"),
    }
    return record({**unit["properties"], **own}, description="A unit, with what staff alone know of it.")


def _entry() -> Schema:
    return record(
        {
            "at": TIME,
            "actor": reference("Actor"),
            "action": TEXT | {"description": FIELDS["action"]},
            "bookingReference": _optional(BOOKING_REFERENCE, "entryReference"),
            "before": _optional(_OBJECT, "before"),
            "after": _OBJECT | {"description": FIELDS["after"]},
            "requestId": _optional(TEXT, "requestId"),
        }
    )


def _actor() -> Schema:
    kind = TEXT | {"enum": [*ActorKind], "description": FIELDS["actorKind"]}
    return record(
        {"kind": kind, "id": _optional(TEXT, "actorId"), "name": _optional(TEXT, "actorName")},
        description="Who did it.",
    )


def _staff_project(project: Schema) -> Schema:
    periods = {name: _optional(_PERIOD, name) for name in ("holdSeconds", "reservationDays")}
    return record({**project["properties"], **periods}, description="A project, with its settings.")


def _layout() -> Schema:
    places: Schema = {"type": "array", "items": reference("Place"), "description": FIELDS["places"]}
    return record({"projectSlug": SLUG | {"description": FIELDS["projectSlug"]}, "units": places})


def _place() -> Schema:
    return record(
        {
            "code": READ_CODE | {"description": FIELDS["code"]},
            "building": _optional(TEXT, "building"),
            "floor": _optional(_integer(FLOORS), "floor"),
            "position": _optional(_integer(POSITIONS), "position"),
            "guessed": {"type": "boolean", "description": FIELDS["guessed"]},
        }
    )


def _integer(bounds: tuple[int, int]) -> Schema:
    return {"type": "integer", "minimum": bounds[0], "maximum": bounds[1]}


def _optional(schema: Schema, name: str) -> Schema:
    return either_or_null(schema) | {"description": FIELDS[name]}
