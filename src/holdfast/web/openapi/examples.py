"""Examples for the document: made from the schemas, with the values of one unit of the demo."""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.domain.event import EventName, event_id
from holdfast.domain.status import TRANSITIONS
from holdfast.web.api.models import unit_document
from holdfast.web.cursors import cursor_text
from holdfast.web.openapi.samples import (
    ENDPOINT_ID,
    NOW,
    PROJECT,
    REFERENCE,
    REQUEST_ID,
    UNIT,
    as_json,
)
from holdfast.web.openapi.schemas import REFERENCE as SCHEMA_REFERENCE
from holdfast.web.openapi.schemas import Schema
from holdfast.web.wire import time_text

ETAG = '"7a-1"'

_STEPS = {row.event: (row.source, row.target) for row in reversed(TRANSITIONS)}
_BOOKED = (EventName.RESERVED, EventName.SOLD)

_VALUES: dict[str, Any] = {
    **as_json(unit_document(UNIT, PROJECT)),
    "slug": PROJECT.slug,
    "project": PROJECT.slug,
    "unitCode": UNIT.code,
    "reference": REFERENCE,
    "bookingReference": REFERENCE,
    "buyerName": "Sara Al-Harbi",
    "buyerEmail": "sara@example.com",
    "buyerPhone": "+966 50 123 4567",
    "email": "sara@example.com",
    "phone": "+966 50 123 4567",
    "totalSar": 1493850,
    "depositSar": 149385,
    "amountSar": 149385,
    "token": "hft_4kT0mE1xQm5yWc2bQ8hP7vZr3uJ9sNdL",
    "setupUrl": "https://units.example.com/backoffice/set-up/4kT0mE1xQm5yWc2bQ8hP7vZr3uJ9sNdL",
    "url": "https://erp.example.com/hooks/holdfast",
    "endpointId": str(ENDPOINT_ID),
    "nextCursor": None,
    "requestId": REQUEST_ID,
    "missing": ["A-0306"],
    "maxInFlight": 8,
    "holdSeconds": 300,
    "reservationDays": 14,
    "building": "A",
    "floor": 3,
    "position": 4,
    "expiresInDays": 365,
}
"""By the name of a member, wherever it stands; used where the schema allows it."""


def first_put() -> str:
    """A command that works when it is pasted, on a server with the demo project."""
    body = json.dumps({name: _VALUES[name] for name in ("type", "areaSqm", "priceSar", "bedrooms")})
    return (
        f"curl -X PUT http://127.0.0.1:8000/v1/integration/projects/{PROJECT.slug}/units/C-0101 \\\n"
        f'  -H "Authorization: Bearer $KEY" \\\n'
        f'  -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )


def event(name: EventName) -> dict[str, Any]:
    before, after = _STEPS[name]
    changed = {
        "id": str(UNIT.id),
        "code": UNIT.code,
        "projectSlug": PROJECT.slug,
        "status": after,
        "previousStatus": before,
    }
    booking = {"reference": REFERENCE} if name in _BOOKED else None
    return _event_body(name, {"unit": changed, "booking": booking})


def ping() -> dict[str, Any]:
    return _event_body("ping", {"unit": None, "booking": None})


def _event_body(name: str, data: dict[str, Any]) -> dict[str, Any]:
    own_id = str(event_id(UNIT.id, UNIT.version))
    return {"id": own_id, "type": str(name), "createdAt": time_text(NOW), "data": data}


def example_body(schema: Schema, components: dict[str, Schema]) -> Any:
    """An example of a request body, without what may only be sent back."""
    if "$ref" not in schema:
        return example(schema, components)
    members = components[schema["$ref"].removeprefix(SCHEMA_REFERENCE)]["properties"]
    sent = {name: one for name, one in members.items() if "sent back" not in one.get("description", "")}
    return {name: example(one, components, name) for name, one in sent.items()}


def example(schema: Schema, components: dict[str, Schema], name: str = "") -> Any:
    """A value that obeys the schema, and is like a real one where the name of the member is known."""
    if "$ref" in schema:
        return example(components[schema["$ref"].removeprefix(SCHEMA_REFERENCE)], components, name)
    for given in ("const", "example"):
        if given in schema:
            return schema[given]
    if "examples" in schema:
        return schema["examples"][0]
    if "enum" in schema:
        is_known = name in _VALUES and _VALUES[name] in schema["enum"]
        return _VALUES[name] if is_known else schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], components, name)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "object" in kinds:
        members = schema.get("properties", {})
        return {member: example(one, components, member) for member, one in members.items()}
    if "array" in kinds:
        if name in _VALUES:
            return _VALUES[name]
        return [example(schema.get("items", {}), components, name.removesuffix("s"))]
    return _simple(schema, kinds, name)


def _simple(schema: Schema, kinds: list[Any], name: str) -> Any:
    known = _VALUES.get(name)
    if name in _VALUES and _fits(known, kinds, schema):
        return known
    if "boolean" in kinds:
        return False
    if "integer" in kinds or "number" in kinds:
        return schema.get("minimum", 1)
    if "string" not in kinds:
        return None
    formats = {"uuid": str(UNIT.id), "date-time": time_text(NOW)}
    if schema.get("format") in formats:
        return formats[schema["format"]]
    return cursor_text(UNIT.code) if "ursor" in name else "Text"


def _fits(value: Any, kinds: list[Any], schema: Schema) -> bool:
    if value is None:
        return "null" in kinds
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, int | float):
        is_number = "number" in kinds or ("integer" in kinds and isinstance(value, int))
        return is_number and schema.get("minimum", value) <= value <= schema.get("maximum", value)
    is_text = (
        isinstance(value, str) and "string" in kinds and len(value) <= schema.get("maxLength", len(value))
    )
    return is_text and re.search(schema.get("pattern", ""), value) is not None
