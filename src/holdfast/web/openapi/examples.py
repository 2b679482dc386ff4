"""Examples for the API description, written by the same code that writes the real answers.

They name a unit of the demo project, so that they work as they stand.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.event import EventName, event_id
from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields
from holdfast.web.cursors import cursor_text
from holdfast.web.integration.routes import PREFIX as INTEGRATION
from holdfast.web.openapi.example_unit import NOW, REFERENCE, as_json
from holdfast.web.openapi.example_unit import PROJECT as PROJECT
from holdfast.web.openapi.example_unit import REQUEST_ID as REQUEST_ID
from holdfast.web.openapi.example_unit import UNIT as UNIT
from holdfast.web.openapi.problem_examples import problem as problem
from holdfast.web.wire import camel_case, project_document, time_text, unit_document

ETAG = '"7a-1"'
CURSOR = cursor_text(UNIT.code)
POSITION = cursor_text("1204")

_BEFORE = {
    EventName.HELD: (Status.AVAILABLE, Status.HELD),
    EventName.RELEASED: (Status.HELD, Status.AVAILABLE),
    EventName.RESERVED: (Status.HELD, Status.RESERVED),
    EventName.SOLD: (Status.RESERVED, Status.SOLD),
    EventName.AVAILABLE: (Status.UNAVAILABLE, Status.AVAILABLE),
    EventName.UNAVAILABLE: (Status.AVAILABLE, Status.UNAVAILABLE),
}
_BOOKED = (EventName.RESERVED, EventName.SOLD)


def unit() -> Any:
    return as_json(unit_document(UNIT, PROJECT))


def full_body() -> dict[str, Any]:
    return {name: unit()[name] for name in map(camel_case, UnitFields._fields)}


def least_body() -> dict[str, Any]:
    return {name: unit()[name] for name in ("type", "areaSqm", "priceSar")}


def bulk_bodies() -> list[dict[str, Any]]:
    return [{"code": code, **least_body()} for code in (UNIT.code, "A-0305")]


def first_put() -> str:
    """A command that works when it is pasted, on a server with the demo project."""
    body = json.dumps(least_body() | {"bedrooms": UNIT.fields.bedrooms})
    return (
        f"curl -X PUT http://127.0.0.1:8000{INTEGRATION}/projects/{PROJECT.slug}/units/C-0101 \\\n"
        f'  -H "Authorization: Bearer $KEY" \\\n'
        f'  -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )


def project() -> Any:
    return as_json(project_document(PROJECT))


def event(name: EventName) -> dict[str, Any]:
    before, after = _BEFORE[name]
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
    return {
        "id": str(event_id(UNIT.id, UNIT.version)),
        "type": name,
        "createdAt": time_text(NOW),
        "data": data,
    }


def bulk_result() -> dict[str, Any]:
    refused = problem("invalid-input")
    return {
        "counts": {"created": 1, "replaced": 0, "unchanged": 0, "refused": 1},
        "results": [
            {"code": UNIT.code, "outcome": "created"},
            {"code": "A-0305", "outcome": "refused", "problem": refused},
        ],
    }
