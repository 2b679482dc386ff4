"""The schemas of the API description, all together."""

from __future__ import annotations

from holdfast.domain.event import EventName
from holdfast.domain.project import NAME_LENGTH
from holdfast.domain.status import Status
from holdfast.operations.many_units import OUTCOMES
from holdfast.web.openapi.administration_schemas import administration_schemas
from holdfast.web.openapi.forms import (
    BOOKING_REFERENCE,
    READ_CODE,
    SLUG,
    TEXT,
    TIME,
    UUID,
    Schema,
    page,
    record,
    reference,
)
from holdfast.web.openapi.payments import payment_schemas
from holdfast.web.openapi.people import people_schemas
from holdfast.web.openapi.problem_schemas import problem_schemas
from holdfast.web.openapi.selling_bodies import selling_bodies
from holdfast.web.openapi.selling_schemas import selling_schemas
from holdfast.web.openapi.staff_schemas import staff_schemas
from holdfast.web.openapi.texts import FIELDS
from holdfast.web.openapi.units import unit_schemas
from holdfast.web.openapi.webhook_bodies import webhook_bodies
from holdfast.web.openapi.webhook_schemas import webhook_schemas


def schemas() -> dict[str, Schema]:
    units = unit_schemas()
    staff = staff_schemas(units["Unit"], _project())
    return {
        **units,
        **selling_schemas(units["Unit"]),
        **staff,
        **administration_schemas(staff["HistoryEntry"]),
        **people_schemas(),
        **selling_bodies(),
        **payment_schemas(),
        **webhook_schemas(),
        **webhook_bodies(),
        "Status": {"type": "string", "enum": [*Status], "description": FIELDS["status"]},
        "UnitList": page("units", "Unit"),
        "Project": _project(),
        "ProjectList": page("projects", "Project"),
        "BulkResult": _bulk_result(),
        "BulkCounts": record({outcome: {"type": "integer", "minimum": 0} for outcome in OUTCOMES}),
        "BulkUnitResult": _bulk_unit_result(),
        "EventName": {"type": "string", "enum": [*EventName], "description": "What happened to the unit."},
        "UnitEvent": _unit_event(),
        "UnitEventData": _unit_event_data(),
        "UnitChange": _unit_change(),
        "BookingReference": record({"reference": BOOKING_REFERENCE | {"description": FIELDS["reference"]}}),
        "EventList": _event_list(),
        "Ping": _ping(),
        "Health": record({"status": TEXT | {"enum": ["alive", "ready"]}}),
        **problem_schemas(),
    }


def _project() -> Schema:
    name = TEXT | {
        "minLength": NAME_LENGTH[0],
        "maxLength": NAME_LENGTH[1],
        "description": FIELDS["projectName"],
    }
    slug = SLUG | {"description": FIELDS["projectSlug"]}
    return record({"id": UUID, "slug": slug, "name": name, "createdAt": TIME})


def _bulk_result() -> Schema:
    properties: dict[str, Schema] = {
        "counts": reference("BulkCounts"),
        "results": {
            "type": "array",
            "items": reference("BulkUnitResult"),
            "description": "One for each unit of the body, in the order sent.",
        },
        "missing": {
            "type": "array",
            "items": TEXT,
            "description": "With `reconcile=true`: the codes of the project that the body did not name.",
        },
    }
    return record(properties, optional=("missing",))


def _bulk_unit_result() -> Schema:
    properties: dict[str, Schema] = {
        "code": {"type": ["string", "null"], "description": "As sent; null where no text was sent."},
        "outcome": TEXT | {"enum": [*OUTCOMES]},
        "problem": reference("Problem"),
    }
    return record(properties, optional=("problem",))


def _event_list() -> Schema:
    cursor = TEXT | {"description": "The `after` to go on from. It is always there: the feed has no end."}
    return record({"events": {"type": "array", "items": reference("UnitEvent")}, "nextCursor": cursor})


def _unit_event() -> Schema:
    return record(
        {
            "id": UUID | {"description": "In a delivery the same as `X-Service-Delivery`."},
            "type": reference("EventName"),
            "createdAt": TIME | {"description": "When the unit changed."},
            "data": reference("UnitEventData"),
        }
    )


def _unit_event_data() -> Schema:
    booking = {
        "anyOf": [reference("BookingReference"), {"type": "null"}],
        "description": "An object on `unit.reserved` and `unit.sold`, null on every other event.",
    }
    return record({"unit": reference("UnitChange"), "booking": booking})


def _unit_change() -> Schema:
    before = reference("Status") | {"description": "The status before the change."}
    after = reference("Status") | {"description": "The status after the change."}
    return record(
        {"id": UUID, "code": READ_CODE, "projectSlug": SLUG, "status": after, "previousStatus": before}
    )


def _ping() -> Schema:
    nothing: Schema = {"type": "null"}
    data = record({"unit": nothing, "booking": nothing})
    return record({"id": UUID, "type": {"type": "string", "const": "ping"}, "createdAt": TIME, "data": data})
