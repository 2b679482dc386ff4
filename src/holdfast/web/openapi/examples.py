"""Examples for the API description, written by the same code that writes the real answers.

They name a unit of the demo project, so that they work as they stand.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdfast.domain import refusals
from holdfast.domain.event import EventName, event_id
from holdfast.domain.project import Project
from holdfast.domain.refusals import Fault
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields
from holdfast.web import refusals as http
from holdfast.web.call import BODY_LIMIT, JSON
from holdfast.web.integration.routes import PREFIX as INTEGRATION
from holdfast.web.problems import problem_document, problem_type
from holdfast.web.queries import cursor_text
from holdfast.web.wire import camel_case, encode, project_document, time_text, unit_document

REQUEST_ID = "5f0f6c3a1e7b4d0c9a52f1f7d8c4b6e3"

_NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
_HOLD_ENDS = _NOW + timedelta(minutes=5)

PROJECT = Project(UUID("0d9c1f5e-6f0b-4a53-9a35-4b1b0c5f7a10"), "narjis-heights", "Narjis Heights", 1, _NOW)
UNIT = Unit(
    id=UUID("7b1d3c52-2f4a-4f0e-8f0c-5d2c9e6a1b34"),
    project_id=PROJECT.id,
    code="A-0304",
    ref="U-100042",
    fields=UnitFields(
        type="3-bedroom apartment",
        area_sqm=Decimal("148.6"),
        price_sar=Decimal(1299000),
        vat_included=False,
        vat_rate=Decimal(15),
        deposit_percent=Decimal(10),
        bedrooms=3,
        bathrooms=3,
        delivery_year=2027,
        description="Corner apartment with a view of the garden.",
        images=("https://media.example.com/a-0304/living-room.jpg",),
        files=({"url": "https://media.example.com/a-0304/plan.pdf", "name": "Floor plan"},),
    ),
    status=Status.AVAILABLE,
    archived=False,
    hold_expires_at=None,
    reserved_until=None,
    version=7,
    created_at=_NOW - timedelta(days=30),
    updated_at=_NOW,
)

ETAG = '"7-1"'
CURSOR = cursor_text(UNIT.code)
POSITION = cursor_text("1204")
UNIX_TIME = str(int(_NOW.timestamp()))

_BEFORE = {
    EventName.HELD: (Status.AVAILABLE, Status.HELD),
    EventName.RELEASED: (Status.HELD, Status.AVAILABLE),
    EventName.RESERVED: (Status.HELD, Status.RESERVED),
    EventName.SOLD: (Status.RESERVED, Status.SOLD),
    EventName.AVAILABLE: (Status.UNAVAILABLE, Status.AVAILABLE),
    EventName.UNAVAILABLE: (Status.AVAILABLE, Status.UNAVAILABLE),
}
_BOOKED = (EventName.RESERVED, EventName.SOLD)


def as_json(value: Any) -> Any:
    return json.loads(encode(value))


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
    booking = {"reference": "HF-7K2M-94QX"} if name in _BOOKED else None
    return _event_body(name, {"unit": changed, "booking": booking})


def ping() -> dict[str, Any]:
    return _event_body("ping", {"unit": None, "booking": None})


def _event_body(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": str(event_id(UNIT.id, UNIT.version)),
        "type": name,
        "createdAt": time_text(_NOW),
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


_FAILURES: tuple[Exception, ...] = (
    refusals.NoCredentials(),
    refusals.KeyRefused(),
    refusals.ScopeMissing("integration"),
    refusals.InvalidInput(
        [
            Fault("/priceSar", "This must have at most 2 decimals."),
            Fault("/color", "There is no field of this name."),
        ]
    ),
    refusals.UnknownProject(PROJECT.slug),
    refusals.UnknownUnit(PROJECT.slug, UNIT.code),
    refusals.UnknownBooking("Q39-4F6-4K6"),
    refusals.UnknownKey(PROJECT.id),
    refusals.PreconditionFailed("8-1"),
    refusals.StatusLocked(
        "The status cannot be set while the unit is held.", Status.HELD, ["status"], _HOLD_ENDS, _NOW
    ),
    refusals.TermsLocked(
        "Price, deposit and VAT cannot change while a buyer is mid-booking.",
        Status.HELD, ["price_sar"], _HOLD_ENDS, _NOW,
    ),
    refusals.NotAvailable("The unit is held for another buyer.", Status.HELD, (), _HOLD_ENDS, _NOW),
    refusals.NotSigned("The buyer has not signed.", Status.HELD, (), _HOLD_ENDS, _NOW),
    refusals.HoldLapsed("The hold has lapsed; the unit is open to everybody again.", Status.AVAILABLE),
    refusals.TransitionNotAllowed("put-on-sale", Status.UNAVAILABLE, True),
    refusals.ProjectExists(PROJECT.slug),
    refusals.CursorExpired(),
    refusals.TooManyRequests(1),
    refusals.TooManyHolds("This visitor holds 3 units already, and 3 is the most at a time.", 212),
    refusals.HeldTooRecently("Your hold of this unit has just lapsed; wait for a moment.", 41),
    refusals.DatabaseAway(),
    refusals.SchemaNotCurrent(),
    http.MalformedBody("The body is not JSON: Expecting value (character 12)."),
    http.TwoCredentials(),
    http.BodyTooLarge(BODY_LIMIT),
    http.UnsupportedMediaType((JSON,)),
    http.MethodNotAllowed("DELETE", ("GET", "PUT", "PATCH", "HEAD")),
    http.UnknownRoute(),
    Exception(),
)  # fmt: skip

_PROBLEMS = {
    problem_type(failure).name: as_json(problem_document(failure, REQUEST_ID)) for failure in _FAILURES
}


def problem(name: str) -> dict[str, Any]:
    """The problem of this name, as an answer carries it."""
    document: dict[str, Any] = _PROBLEMS[name]
    return document
