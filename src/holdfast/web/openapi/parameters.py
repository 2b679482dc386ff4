"""The parameters of the API description."""

from __future__ import annotations

from typing import Any

from holdfast.web.openapi import examples as examples
from holdfast.web.openapi import texts as texts
from holdfast.web.openapi.example_unit import REFERENCE
from holdfast.web.openapi.forms import CODE, SLUG, TEXT, TIME, TYPED_REFERENCE, reference
from holdfast.web.queries import DEFAULT_LIMIT, LARGEST_LIMIT
from holdfast.web.storefront.visitors import VISITOR_COOKIE

_CURSOR_SCHEMA = TEXT | {"minLength": 1, "pattern": "^[A-Za-z0-9_-]+$"}
_FLAG = {"type": "boolean", "default": False}


def _parameter(place: str, name: str, schema: Any, description: str, example: Any = None) -> dict[str, Any]:
    parameter = {"name": name, "in": place, "description": description, "schema": schema}
    if place == "path":
        parameter["required"] = True
    return parameter if example is None else parameter | {"example": example}


PARAMETERS: dict[str, dict[str, Any]] = {
    "slug": _parameter("path", "slug", SLUG, texts.FIELDS["projectSlug"], examples.PROJECT.slug),
    "code": _parameter(
        "path",
        "code",
        CODE,
        f"{texts.FIELDS['code']} `A%2F101` in the path is the code `A/101`.",
        examples.UNIT.code,
    ),
    "reference": _parameter(
        "path",
        "reference",
        TYPED_REFERENCE,
        "The reference of the booking. Lower case and left-out hyphens are fine.",
        REFERENCE,
    ),
    "limit": _parameter(
        "query",
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT},
        "How many at most.",
    ),
    "cursor": _parameter("query", "cursor", _CURSOR_SCHEMA, "The `nextCursor` of the page before."),
    "after": _parameter("query", "after", _CURSOR_SCHEMA, "The `nextCursor` of the reading before."),
    "status": _parameter("query", "status", reference("Status"), "Only units of this status."),
    "statusOnSale": _parameter("query", "status", reference("StatusOnSale"), "Only units of this status."),
    "bookingStatus": _parameter(
        "query", "status", reference("BookingStatus"), "Only bookings of this status."
    ),
    "project": _parameter(
        "query",
        "project",
        SLUG,
        "Only bookings of the project with this slug; 404 if there is none, or not for this key.",
    ),
    "unitCode": _parameter("query", "unitCode", CODE, "Only bookings of units with this code."),
    "updatedSince": _parameter(
        "query",
        "updatedSince",
        TIME,
        "Only units that have changed at this time or later. UTC without an offset.",
    ),
    "dryRun": _parameter("query", "dryRun", _FLAG, "Decide everything and store nothing."),
    "reconcile": _parameter(
        "query", "reconcile", _FLAG, "Answer with `missing` too: the codes that the body did not name."
    ),
    "ifMatch": _parameter(
        "header",
        "If-Match",
        TEXT,
        "Change the unit only if its ETag is one of these; `*`: only if it exists.",
    ),
    "ifNoneMatch": _parameter(
        "header",
        "If-None-Match",
        TEXT,
        "Change the unit only if its ETag is none of these; `*`: only create it.",
    ),
    "unlessMatch": _parameter(
        "header",
        "If-None-Match",
        TEXT,
        "Act only if the unit's ETag is none of these; `*` is every one, and so always 412.",
    ),
    "idempotencyKey": _parameter(
        "header",
        "Idempotency-Key",
        TEXT | {"minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
        "A text that you make for this request and send with each repetition: however often it arrives, "
        "one hold is made. Make it random, such as a UUID: whoever sends the same key for the same unit from "
        "the same address (and with the same visitor cookie, if one is sent) is given the token.",
    ),
    "visitor": _parameter(
        "cookie",
        VISITOR_COOKIE,
        TEXT | {"minLength": 8, "maxLength": 128, "pattern": "^[A-Za-z0-9_.~-]+$"},
        "The visitor, as the pages of Holdfast mark one. Live holds are counted for each visitor; without "
        "it, for the address alone.",
    ),
    "ifChanged": _parameter(
        "header", "If-None-Match", TEXT, "The ETag that you know: if it still holds, 304."
    ),
}
