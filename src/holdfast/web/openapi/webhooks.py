"""The webhooks of the API description: what Holdfast sends, seen from the receiver."""

from __future__ import annotations

from typing import Any

from holdfast.domain.endpoint import PING
from holdfast.domain.event import EventName
from holdfast.web.call import JSON
from holdfast.web.openapi import examples as examples
from holdfast.web.openapi import texts as texts
from holdfast.web.openapi.forms import TEXT, UUID, reference

AGENT = "Service-Webhooks/1"

_HEADERS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "X-Service-Delivery": (
        UUID,
        "The delivery; equal to `id` in the body, on every attempt.",
        examples.ping()["id"],
    ),
    "X-Service-Timestamp": (
        TEXT | {"pattern": "^[0-9]+$"},
        "Unix time of the attempt in seconds.",
        "1794648600",
    ),
    "X-Service-Signature": (
        TEXT | {"pattern": "^sha256=[0-9a-f]{64}$"},
        "HMAC-SHA256, in hex, of the timestamp, a dot and the raw body.",
        f"sha256={'9f86d081884c7d65' * 4}",
    ),
}


def webhooks() -> dict[str, dict[str, Any]]:
    unit_events = {str(name): _webhook(name, "UnitEvent", examples.event(name)) for name in EventName}
    return {**unit_events, PING: _webhook(PING, "Ping", examples.ping())}


def _webhook(name: str, schema: str, example: dict[str, Any]) -> dict[str, Any]:
    operation = {
        "operationId": f"on{_title(name)}",
        "summary": texts.EVENTS[name],
        "description": texts.DELIVERY,
        "security": [],
        "parameters": _headers(name),
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": reference(schema), "example": example}},
        },
        "responses": {
            "2XX": {"description": "Received. The body of the answer does not matter."},
            "default": {"description": "Not received: it is sent again. Redirects are not followed."},
        },
    }
    return {"post": operation}


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("."))


def _headers(name: str) -> list[dict[str, Any]]:
    fixed = {
        "User-Agent": (TEXT | {"const": AGENT}, "Names the version of the webhooks.", AGENT),
        "X-Service-Event": (TEXT | {"const": name}, "The event.", name),
    }
    return [_header(title, *values) for title, values in {**fixed, **_HEADERS}.items()]


def _header(name: str, schema: dict[str, Any], description: str, example: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }
