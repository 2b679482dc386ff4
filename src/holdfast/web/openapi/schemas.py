"""JSON schemas of request and response models, as one set of components."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args, get_type_hints
from uuid import UUID

import msgspec
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from holdfast.domain import errors
from holdfast.domain.errors import Fault
from holdfast.domain.event import EventName, event_id
from holdfast.domain.project import Project
from holdfast.domain.status import SettableStatus, Status
from holdfast.domain.transitions import TRANSITIONS
from holdfast.domain.unit import Unit, UnitFields
from holdfast.domain.wire_format import camel_case, format_timestamp
from holdfast.operations.documents import Document
from holdfast.web import errors as http
from holdfast.web.api.bodies import component_name
from holdfast.web.api.models import FIELD_TEXTS, unit_document
from holdfast.web.api.unit_bodies import MediaObject, UnitReplacement, UnitValues, Url, check_unit
from holdfast.web.fields import BUYER_NAME, EMAIL_ADDRESS, NO_NUL, PHONE_NUMBER, UNPRINTABLE, WEB_ADDRESS
from holdfast.web.json import encode, parse_json, time_text
from holdfast.web.problems import PROBLEM_OF, problem_document, problem_headers, problem_type
from holdfast.web.request import BODY_LIMIT, JSON

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/"

_INVISIBLE = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u180e\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
# What is dropped at the ends of a buyer's details: spaces of every kind, and marks of direction.
_ENDS = (
    r"[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u200e\u200f"
    r"\u2028-\u202f\u205f\u2066-\u2069\u3000]*"
)
MEDIA_URL_PATTERN = f"^[Hh][Tt][Tt][Pp][Ss]?://[^ /?#{UNPRINTABLE}][^ {UNPRINTABLE}]*$"
# More than the letters and digits of all scripts.
_LETTER = rf"[^\u0000-@\[-`{{-\u00a9\u0660-\u0669\u06f0-\u06f9{UNPRINTABLE}]"
_DIGIT = rf"[^ ()./+A-Za-z@\u2010-\u2013{UNPRINTABLE}-]"
_BETWEEN = r"[ ()./\u00a0\u202f\u2010-\u2013-]*"
_PATTERNS = {
    NO_NUL: r"^[^\u0000]*$",
    WEB_ADDRESS: MEDIA_URL_PATTERN,
    BUYER_NAME: (
        f"^{_ENDS}([^ {UNPRINTABLE}][^{_INVISIBLE}]*)?{_LETTER}[^{_INVISIBLE}]*{_LETTER}"
        f"([^{_INVISIBLE}]*[^ {UNPRINTABLE}])?{_ENDS}$"
    ),
    EMAIL_ADDRESS: f"^{_ENDS}[^ @{UNPRINTABLE}]+@[^ @{UNPRINTABLE}]+{_ENDS}$",
    PHONE_NUMBER: rf"^{_ENDS}([+]|[0\u0660\u06f0]{{2}})?({_BETWEEN}{_DIGIT}){{7,15}}{_BETWEEN}{_ENDS}$",
}
"""The patterns of our models, which are for Rust's regex engine, in syntax that every validator supports."""


def component_schemas(responses: Iterable[Any], bodies: Iterable[type[BaseModel]]) -> dict[str, Schema]:
    _, structs = msgspec.json.schema_components(list(responses), ref_template=REFERENCE + "{name}")
    _describe(structs, Document)
    models = models_json_schema(
        [(model, "validation") for model in bodies], ref_template=REFERENCE + "{model}"
    )
    media = {
        "anyOf": [TypeAdapter(Url).json_schema(), {"$ref": REFERENCE + "MediaFile"}],
        "description": "An http(s) URL, or an object with `url` and `name`; given back as it was sent.",
    }
    found = {
        **structs,
        **models[1].get("$defs", {}),
        "Media": media,
        "MediaFile": TypeAdapter(MediaObject).json_schema(),
        "SettableStatus": {"type": "string", "enum": list(get_args(SettableStatus))},
    }
    return {component_name(name): _tidy(schema) for name, schema in sorted(found.items())}


def _describe(structs: dict[str, Schema], kind: type[Document]) -> None:
    """Add the texts of ``Annotated`` fields, of the class and of those that derive from it."""
    members = structs.get(kind.__name__, {}).get("properties", {})
    hints = get_type_hints(kind, include_extras=True) if members else {}
    for name, hint in hints.items():
        for text in getattr(hint, "__metadata__", ()):
            if isinstance(text, str):
                members[camel_case(name)]["description"] = text
    for one in kind.__subclasses__():
        _describe(structs, one)


def schema_of(kind: type) -> Schema:
    return {"$ref": REFERENCE + component_name(kind.__name__)}


def _tidy(schema: Any) -> Any:
    """Decimals are numbers on the wire, null is one of the types, and generators name no class by a title."""
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {
        name: _tidy_member(name, value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and value is None)
    }
    if tidied.get("format") == "decimal":
        tidied = {**tidied, "type": "number"}
        del tidied["format"]
    if "allOf" in tidied:
        # A reference to a component that pydantic does not know.
        (own,) = tidied.pop("allOf")
        tidied = {**own, **tidied}
    if "enum" in tidied and "type" not in tidied:
        tidied["type"] = "string"
    if "$ref" in tidied:
        tidied["$ref"] = REFERENCE + component_name(tidied["$ref"].removeprefix(REFERENCE))
    if "pattern" in tidied:
        tidied["pattern"] = _PATTERNS.get(tidied["pattern"], tidied["pattern"])
    return _with_null(tidied)


def _tidy_member(name: str, value: Any) -> Any:
    if name == "properties":
        texts = FIELD_TEXTS if "areaSqm" in value else {}
        members = {member: _tidy(schema) for member, schema in value.items()}
        for member in members.keys() & texts.keys():
            members[member].setdefault("description", texts[member])
        return members
    return value if name in ("enum", "const", "example", "examples", "required", "default") else _tidy(value)


def _with_null(schema: Schema) -> Schema:
    """``anyOf`` of a simple type and null is a list of types, which more generators know."""
    null, alternatives = {"type": "null"}, schema.get("anyOf", [])
    others = [one for one in alternatives if one != null]
    if null not in alternatives or len(others) != 1 or "enum" in others[0]:
        return schema
    if not isinstance(others[0].get("type"), str):
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**others[0], **rest, "type": [others[0]["type"], "null"]}


def objects(value: Any) -> Iterator[Schema]:
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(one)


# The unit that the examples of the API description are about. It is one of the demo project.

REQUEST_ID = "5f0f6c3a1e7b4d0c9a52f1f7d8c4b6e3"

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
HOLD_ENDS = NOW + timedelta(minutes=5)

PROJECT = Project(UUID("0d9c1f5e-6f0b-4a53-9a35-4b1b0c5f7a10"), "narjis-heights", "Narjis Heights", 1, NOW)


def _fields() -> UnitFields:
    body = parse_json(json.dumps(UnitReplacement.example))
    values = check_unit(UnitReplacement, body, PROJECT.slug, "A-0304")
    assert isinstance(values, UnitValues)
    return values.replacement()


UNIT = Unit(
    id=UUID("7b1d3c52-2f4a-4f0e-8f0c-5d2c9e6a1b34"),
    project_id=PROJECT.id,
    code="A-0304",
    ref="U-100042",
    fields=_fields(),
    status=Status.AVAILABLE,
    archived=False,
    hold_expires_at=None,
    reserved_until=None,
    version=7,
    created_at=NOW - timedelta(days=30),
    updated_at=NOW,
)

BOOKING_REFERENCE = "Q39-4F6-4K6"
ENDPOINT_ID = UUID("c4a0f7de-1b1e-4d0c-8a77-2f6d3a9b5e21")
DELIVERY_ID = UUID("f26f5d0a-93a7-5b0e-9d3c-6a0c4b1f8e57")


def as_json(value: Any) -> Any:
    return json.loads(encode(value))


# One sample of every problem, as a response carries it; the errors that are not listed have no arguments.

_SAMPLES: tuple[Exception, ...] = (
    errors.InvalidSignature(
        "The timestamp is more than 300 seconds from now: sign anew, or set the clock."
    ),
    errors.ScopeMissing("integration"),
    errors.InvalidInput(
        [
            Fault("/priceSar", "This must have at most 2 decimals."),
            Fault("/color", "There is no field with this name."),
        ]
    ),
    errors.UnknownProject(PROJECT.slug),
    errors.UnknownUnit(PROJECT.slug, UNIT.code),
    errors.UnknownBooking(BOOKING_REFERENCE),
    errors.UnknownKey(PROJECT.id),
    errors.UnknownEndpoint(ENDPOINT_ID),
    errors.UnknownDelivery(DELIVERY_ID),
    errors.PreconditionFailed("8a-1"),
    errors.StatusLocked(
        "The status cannot be set while the unit is held.", Status.HELD, ["status"], HOLD_ENDS, NOW
    ),
    errors.TermsLocked(
        "Price, deposit and VAT cannot change while a buyer is mid-booking.",
        Status.HELD, ["price_sar"], HOLD_ENDS, NOW,
    ),
    errors.NotAvailable(
        "The unit is held. If the hold is yours, send its token.", Status.HELD, (), HOLD_ENDS, NOW
    ),
    errors.NotSigned(
        f"The buyer has not signed yet; the hold ends at {format_timestamp(HOLD_ENDS)}.", Status.HELD
    ),
    errors.HoldLapsed("The hold has lapsed. The unit is available again.", Status.AVAILABLE),
    errors.PaymentUsed("The payment pay_7Kq2Xw has confirmed another booking.", Status.HELD),
    errors.IdempotencyKeyUsed(
        "This Idempotency-Key was used for this unit before; send a new one with a new request.", Status.HELD
    ),
    errors.TransitionNotAllowed(
        "`open` is not possible while the unit is held.", Status.HELD, (), HOLD_ENDS, NOW
    ),
    errors.ProjectExists(PROJECT.slug),
    errors.SecondFactorNeeded("ticket"),
    errors.UnknownStaff("sara@example.com"),
    errors.StaffExists("sara@example.com"),
    errors.TooManyAttempts(60.0),
    errors.TooManyRequests(1),
    errors.TooManyHolds(212, "This visitor already holds 3 units, and the limit is 3."),
    errors.HeldTooRecently(41, "Your hold on this unit has just lapsed; wait for a moment."),
    http.MalformedBody("The body is not JSON: Expecting value (character 12)."),
    http.TwoCredentials(),
    http.BodyTooLarge(BODY_LIMIT),
    http.UnsupportedMediaType((JSON,)),
    http.MethodNotAllowed("DELETE", ("GET", "PUT", "PATCH", "HEAD")),
    Exception(),
)  # fmt: skip

_SAMPLE_OF = {problem_type(sample).name: sample for sample in _SAMPLES}
_SAMPLE_OF |= {kind.name: error() for error, kind in PROBLEM_OF.items() if kind.name not in _SAMPLE_OF}


def sample_problem(name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", as_json(problem_document(_SAMPLE_OF[name], REQUEST_ID)))


def sample_headers(name: str) -> list[str]:
    """The headers that a response with this problem can carry, in lower case."""
    return [header.decode() for header, _ in problem_headers(_SAMPLE_OF[name])]


# Examples for the document, about one unit of the demo. Those of request bodies are in their models.

ETAG = '"7a-1"'

_STEPS = {row.event: (row.source, row.target) for row in reversed(TRANSITIONS)}
_BOOKED = (EventName.RESERVED, EventName.SOLD)


def unit() -> Any:
    return as_json(unit_document(UNIT, PROJECT))


def first_put(address: str = "http://127.0.0.1:8000") -> str:
    """A command that works when it is pasted, on a server with this project."""
    body = json.dumps(
        {name: UnitReplacement.example[name] for name in ("type", "areaSqm", "priceSar", "bedrooms")}
    )
    return (
        f"curl -X PUT {address}/v1/integration/projects/{PROJECT.slug}/units/C-0101 \\\n"
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
    booking = {"reference": BOOKING_REFERENCE} if name in _BOOKED else None
    return _event_body(name, {"unit": changed, "booking": booking})


def ping() -> dict[str, Any]:
    return _event_body("ping", {"unit": None, "booking": None})


def _event_body(name: str, data: dict[str, Any]) -> dict[str, Any]:
    own_id = str(event_id(UNIT.id, UNIT.version))
    return {"id": own_id, "type": str(name), "createdAt": time_text(NOW), "data": data}
