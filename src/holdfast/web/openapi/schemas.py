"""The schemas of the API description, all together."""

from __future__ import annotations

from holdfast.domain.event import EventName
from holdfast.domain.project import NAME_LENGTH
from holdfast.domain.refusals import Conflict
from holdfast.domain.status import Status
from holdfast.web.integration.bulk import OUTCOMES
from holdfast.web.openapi.forms import (
    READ_CODE,
    SLUG,
    TEXT,
    TIME,
    UUID,
    Schema,
    either_or_null,
    record,
    reference,
)
from holdfast.web.openapi.texts import FIELDS
from holdfast.web.openapi.units import unit_schemas


def schemas() -> dict[str, Schema]:
    return {
        **unit_schemas(),
        "Status": {"type": "string", "enum": [*Status], "description": FIELDS["status"]},
        "UnitList": _page("units", "Unit"),
        "Project": _project(),
        "ProjectList": _page("projects", "Project"),
        "BulkResult": _bulk_result(),
        "BulkCounts": record({outcome: {"type": "integer", "minimum": 0} for outcome in OUTCOMES}),
        "BulkUnitResult": _bulk_unit_result(),
        "EventName": {"type": "string", "enum": [*EventName], "description": "What happened to the unit."},
        "UnitEvent": _unit_event(),
        "UnitEventData": _unit_event_data(),
        "UnitChange": _unit_change(),
        "BookingReference": record({"reference": TEXT | {"description": FIELDS["reference"]}}),
        "EventList": _event_list(),
        "Ping": _ping(),
        "Health": record({"status": TEXT | {"enum": ["alive", "ready"]}}),
        **_problems(),
    }


def _project() -> Schema:
    name = TEXT | {
        "minLength": NAME_LENGTH[0],
        "maxLength": NAME_LENGTH[1],
        "description": FIELDS["projectName"],
    }
    slug = SLUG | {"description": FIELDS["projectSlug"]}
    return record({"id": UUID, "slug": slug, "name": name, "createdAt": TIME})


def _page(plural: str, item: str) -> Schema:
    cursor = either_or_null(TEXT) | {"description": "The `cursor` of the next page; null on the last."}
    return record({plural: {"type": "array", "items": reference(item)}, "nextCursor": cursor})


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


def _problems() -> dict[str, Schema]:
    base: dict[str, Schema] = {
        "type": TEXT
        | {"format": "uri-reference", "description": "The path of the page that explains the problem."},
        "title": TEXT | {"description": "The same for every problem of this type."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": TEXT | {"description": "What it was this time."},
        "requestId": TEXT
        | {"description": "The `X-Request-Id` of the answer; name it when you ask for help."},
    }
    errors: Schema = {
        "type": "array",
        "minItems": 1,
        "items": reference("Fault"),
        "description": FIELDS["errors"],
    }
    conflict: dict[str, Schema] = {
        "reason": reference("ConflictReason"),
        "currentStatus": reference("Status"),
        "holdExpiresAt": TIME | {"description": "There where a hold is what blocks."},
        "fields": {"type": "array", "items": TEXT, "description": "The names of the offending fields."},
    }
    fault = {"pointer": TEXT | {"description": FIELDS["pointer"]}, "message": TEXT}
    rare = ("holdExpiresAt", "fields")
    return {
        "Problem": record({**base, "errors": errors, **conflict}, optional=("errors", *conflict)),
        "InvalidInput": record({**base, "errors": errors}),
        "Conflict": record({**base, **conflict}, optional=rare),
        "ConflictReason": TEXT | {"enum": sorted(kind.reason for kind in Conflict.__subclasses__())},
        "Fault": record(fault),
    }
