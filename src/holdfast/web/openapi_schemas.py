"""The schemas of the API description. Fields and bounds come from the code that checks and writes them."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import TypeAdapter

from holdfast.domain.event import EventName
from holdfast.domain.project import NAME_LENGTH, SLUG_LENGTH, SLUG_PATTERN
from holdfast.domain.refusals import Conflict
from holdfast.domain.status import Status
from holdfast.domain.unit import CODE_LENGTH
from holdfast.web.integration.bodies import PATCH, REPLACE
from holdfast.web.integration.bulk import OUTCOMES
from holdfast.web.integration.schemas import LONGEST_MEDIA_NAME, LONGEST_URL
from holdfast.web.openapi_texts import FIELDS
from holdfast.web.wire import UnitDocument

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/{model}"

# Control characters, separators other than the space, and invisible signs. No pattern language that all
# validators share can tell every printable character, so the pattern lets through a little too much.
UNPRINTABLE = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb"
)
CODE_PATTERN = f"^[^ {UNPRINTABLE}]([^{UNPRINTABLE}]*[^ {UNPRINTABLE}])?$"
URL_PATTERN = f"^[Hh][Tt][Tt][Pp][Ss]?://[^ /?#{UNPRINTABLE}][^ {UNPRINTABLE}]*$"

UUID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
TEXT: Schema = {"type": "string"}
CODE: Schema = TEXT | {"minLength": CODE_LENGTH[0], "maxLength": CODE_LENGTH[1], "pattern": CODE_PATTERN}
SLUG: Schema = TEXT | {"minLength": SLUG_LENGTH[0], "maxLength": SLUG_LENGTH[1], "pattern": SLUG_PATTERN}

_WIRE_FORMS: dict[str, Schema] = {
    "code": CODE,
    "projectSlug": SLUG,
    "holdExpiresAt": TIME,
    "createdAt": TIME,
    "updatedAt": TIME,
}
"""What the wire's own types do not tell: these are all text to the encoder."""


def reference(name: str) -> Schema:
    return {"$ref": REFERENCE.format(model=name)}


def either_or_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def record(properties: dict[str, Schema], optional: tuple[str, ...] = (), **more: Any) -> Schema:
    """An answer's object. It may get more members in later releases; readers pass over what they do not know."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **more}


def schemas() -> dict[str, Schema]:
    return {
        "Unit": _unit(),
        "UnitReplacement": _body("ReplaceBody"),
        "UnitPatch": _body("PatchBody"),
        "BulkUnit": _bulk_unit(),
        "Media": _media(),
        "MediaFile": _media_file(),
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


def _bodies() -> dict[str, Schema]:
    adapters = [("replace", "validation", REPLACE), ("patch", "validation", PATCH)]
    _, found = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)  # type: ignore[arg-type]
    definitions: dict[str, Schema] = found["$defs"]
    return definitions


def _body(name: str) -> Schema:
    """As pydantic tells it, in the order in which a unit is shown, and with our words."""
    body = _bodies()[name]
    properties = {field: _described(field, body["properties"][field]) for field in _wire_names()}
    shape = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": body["required"]} if "required" in body else {})


def _described(field: str, found: Schema) -> Schema:
    schema = {name: value for name, value in found.items() if name != "title"}
    match schema.get("anyOf"):
        case [first, {"type": "null"}]:
            schema = either_or_null(first)
    own = schema.get("description")
    return schema | {"description": f"{FIELDS[field]} {own}" if own else FIELDS[field]}


def _unit() -> Schema:
    writable = _bodies()["PatchBody"]["properties"]
    wire = msgspec.json.schema_components([UnitDocument], ref_template=REFERENCE)[1]["UnitDocument"]
    properties = {name: _wire_field(name, own, writable[name]) for name, own in wire["properties"].items()}
    return record(properties, description="A unit, as it stands. Values that are not set are null.")


def _wire_field(name: str, own: Schema, sent: Schema) -> Schema:
    """Nullable where the wire says so; otherwise bounded like the field of a request."""
    if name == "status":
        return reference("Status")
    if _is_sent_back(sent):
        schema = _WIRE_FORMS.get(name, _not_null(own)) | {"readOnly": True}
    else:
        schema = {key: value for key, value in _not_null(sent).items() if key != "title"}
    description = f"{FIELDS[name]} {schema.get('description', '')}".strip()
    return (either_or_null(schema) if _is_nullable(own) else schema) | {"description": description}


def _is_sent_back(sent: Schema) -> bool:
    return str(sent.get("description", "")).startswith("May be sent back")


def _is_nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def _not_null(schema: Schema) -> Schema:
    inner: Schema = schema["anyOf"][0] if _is_nullable(schema) else schema
    return inner


def _wire_names() -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(UnitDocument)]


def _bulk_unit() -> Schema:
    body = _body("ReplaceBody")
    properties = {"code": CODE | {"description": FIELDS["code"]}, **body["properties"]}
    properties["code"] = CODE | {"description": FIELDS["code"]}
    return body | {"properties": properties, "required": ["code", *body["required"]]}


def _url() -> Schema:
    return TEXT | {"maxLength": LONGEST_URL, "pattern": URL_PATTERN, "description": "An http or https URL."}


def _media() -> Schema:
    return {
        "description": "A URL, or an object with a URL and a name. It is given back in the form in which it was sent.",
        "anyOf": [_url(), reference("MediaFile")],
    }


def _media_file() -> Schema:
    name = either_or_null(TEXT | {"maxLength": LONGEST_MEDIA_NAME, "description": "What people see."})
    return record({"url": _url(), "name": name}, optional=("name",), additionalProperties=False)


def _project() -> Schema:
    name = TEXT | {"minLength": NAME_LENGTH[0], "maxLength": NAME_LENGTH[1], "description": FIELDS["projectName"]}
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
        "code": {"description": "As sent: text, or whatever stood in its place; null if there was none."},
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
    return record({"id": UUID, "code": CODE, "projectSlug": SLUG, "status": after, "previousStatus": before})


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
        "requestId": TEXT | {"description": "The `X-Request-Id` of the answer; name it when you ask for help."},
    }
    errors: Schema = {"type": "array", "minItems": 1, "items": reference("Fault"), "description": FIELDS["errors"]}
    conflict: dict[str, Schema] = {
        "reason": TEXT | {"enum": sorted(kind.reason for kind in Conflict.__subclasses__())},
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
        "Fault": record(fault),
    }
