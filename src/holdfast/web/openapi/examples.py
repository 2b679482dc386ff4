"""Examples for the document, about one unit of the demo. Those of request bodies are in their models."""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.event import EventName, event_id
from holdfast.domain.status import TRANSITIONS
from holdfast.web.api.models import unit_document
from holdfast.web.api.unit_bodies import UnitReplacement
from holdfast.web.json import time_text
from holdfast.web.openapi.samples import NOW, PROJECT, REFERENCE, UNIT, as_json

ETAG = '"7a-1"'

_STEPS = {row.event: (row.source, row.target) for row in reversed(TRANSITIONS)}
_BOOKED = (EventName.RESERVED, EventName.SOLD)


def unit() -> Any:
    return as_json(unit_document(UNIT, PROJECT))


def first_put() -> str:
    """A command that works when it is pasted, on a server with the demo project."""
    body = json.dumps(
        {name: UnitReplacement.example[name] for name in ("type", "areaSqm", "priceSar", "bedrooms")}
    )
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
