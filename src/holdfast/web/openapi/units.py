"""The schemas of a unit. Fields and bounds come from the code that checks and writes them."""

from __future__ import annotations

import msgspec
from pydantic import TypeAdapter

from holdfast.domain.unit import UnitFields
from holdfast.web.fields import NO_NUL
from holdfast.web.openapi.forms import (
    CODE,
    READ_CODE,
    REFERENCE,
    SLUG,
    TEXT,
    TIME,
    URL_PATTERN,
    Schema,
    described,
    either_or_null,
    record,
    reference,
    untitled,
)
from holdfast.web.openapi.texts import FIELDS
from holdfast.web.unit_bodies import PATCH, REPLACE
from holdfast.web.unit_bounds import LONGEST_MEDIA_NAME, LONGEST_URL
from holdfast.web.wire import UnitDocument, camel_case

WRITABLE = frozenset(camel_case(name) for name in UnitFields._fields)

_WIRE_FORMS: dict[str, Schema] = {
    "code": READ_CODE,
    "projectSlug": SLUG,
    "holdExpiresAt": TIME,
    "createdAt": TIME,
    "updatedAt": TIME,
}
"""What the wire's own types do not tell: these are all text to the encoder."""


def unit_schemas() -> dict[str, Schema]:
    return {
        "Unit": _unit(),
        "UnitReplacement": _body("ReplaceBody"),
        "UnitPatch": _body("PatchBody"),
        "BulkUnit": _bulk_unit(),
        "SettableStatus": untitled(_bodies()["PatchBody"]["properties"]["status"])
        | {"description": FIELDS["settableStatus"]},
        "Media": _media(),
        "MediaFile": _media_file(),
    }


def _bodies() -> dict[str, Schema]:
    adapters = [("replace", "validation", REPLACE), ("patch", "validation", PATCH)]
    _, found = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)  # type: ignore[arg-type]
    definitions: dict[str, Schema] = found["$defs"]
    return definitions


def _body(name: str) -> Schema:
    """As pydantic tells it, in the order in which a unit is shown, and with our words."""
    body = _bodies()[name]
    properties = {field: described(body["properties"][field], FIELDS[field]) for field in _wire_names()}
    properties["status"] = reference("SettableStatus")
    shape = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": body["required"]} if "required" in body else {})


def _unit() -> Schema:
    writable = _bodies()["PatchBody"]["properties"]
    wire = msgspec.json.schema_components([UnitDocument])[1]["UnitDocument"]
    properties = {name: _wire_field(name, own, writable[name]) for name, own in wire["properties"].items()}
    return record(properties, description="A unit, as it stands. Values that are not set are null.")


def _wire_field(name: str, own: Schema, sent: Schema) -> Schema:
    """Nullable where the wire says so; otherwise bounded like the field of a request."""
    if name == "status":
        return reference("Status")
    if name in WRITABLE:
        schema = untitled(_not_null(sent))
    else:
        schema = _WIRE_FORMS.get(name, _not_null(own)) | {"readOnly": True}
    description = f"{FIELDS[name]} {schema.get('description', '')}".strip()
    return (either_or_null(schema) if _is_nullable(own) else schema) | {"description": description}


def _is_nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def _not_null(schema: Schema) -> Schema:
    inner: Schema = schema["anyOf"][0] if _is_nullable(schema) else schema
    return inner


def _wire_names() -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(UnitDocument)]


def _bulk_unit() -> Schema:
    body = _body("ReplaceBody")
    properties = body["properties"] | {"code": CODE | {"description": FIELDS["code"]}}
    return body | {"properties": properties, "required": ["code", *body["required"]]}


def _url() -> Schema:
    return TEXT | {"maxLength": LONGEST_URL, "pattern": URL_PATTERN, "description": "An http or https URL."}


def _media() -> Schema:
    return {
        "description": "A URL, or an object with a URL and a name. It is given back as it was sent.",
        "anyOf": [_url(), reference("MediaFile")],
    }


def _media_file() -> Schema:
    text = TEXT | {"maxLength": LONGEST_MEDIA_NAME, "pattern": NO_NUL}
    name = either_or_null(text) | {"description": "What people see."}
    return record({"url": _url(), "name": name}, optional=("name",), additionalProperties=False)
