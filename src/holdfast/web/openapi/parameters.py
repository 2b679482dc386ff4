"""The parameters of the API description."""

from __future__ import annotations

from typing import Any

from holdfast.web.openapi import examples as examples
from holdfast.web.openapi import texts as texts
from holdfast.web.openapi.administration_schemas import ADMINISTRATION_PARAMETERS
from holdfast.web.openapi.example_unit import REFERENCE
from holdfast.web.openapi.forms import CODE, CURSOR, SLUG, TEXT, TIME, TYPED_REFERENCE, parameter, reference
from holdfast.web.openapi.people_parameters import PEOPLE_PARAMETERS
from holdfast.web.openapi.webhook_parameters import WEBHOOK_PARAMETERS
from holdfast.web.queries import DEFAULT_LIMIT, LARGEST_LIMIT
from holdfast.web.storefront.visitors import VISITOR_COOKIE

_FLAG = {"type": "boolean", "default": False}


PARAMETERS: dict[str, dict[str, Any]] = {
    "slug": parameter("path", "slug", SLUG, texts.FIELDS["projectSlug"], examples.PROJECT.slug),
    "code": parameter(
        "path",
        "code",
        CODE,
        f"{texts.FIELDS['code']} `A%2F101` in the path is the code `A/101`.",
        examples.UNIT.code,
    ),
    "reference": parameter(
        "path",
        "reference",
        TYPED_REFERENCE,
        "The reference of the booking. Lower case and left-out hyphens are fine.",
        REFERENCE,
    ),
    "limit": parameter(
        "query",
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT},
        "How many at most.",
    ),
    "cursor": parameter("query", "cursor", CURSOR, "The `nextCursor` of the page before."),
    "after": parameter("query", "after", CURSOR, "The `nextCursor` of the reading before."),
    "status": parameter("query", "status", reference("Status"), "Only units of this status."),
    "statusOnSale": parameter("query", "status", reference("StatusOnSale"), "Only units of this status."),
    "bookingStatus": parameter(
        "query", "status", reference("BookingStatus"), "Only bookings of this status."
    ),
    "project": parameter(
        "query",
        "project",
        SLUG,
        "Only bookings of the project with this slug; 404 if there is none, or not for this key.",
    ),
    "unitCode": parameter("query", "unitCode", CODE, "Only bookings of units with this code."),
    "updatedSince": parameter(
        "query",
        "updatedSince",
        TIME,
        "Only units that have changed at this time or later. UTC without an offset.",
    ),
    "dryRun": parameter("query", "dryRun", _FLAG, "Decide everything and store nothing."),
    "reconcile": parameter(
        "query", "reconcile", _FLAG, "Answer with `missing` too: the codes that the body did not name."
    ),
    "ifMatch": parameter(
        "header",
        "If-Match",
        TEXT,
        "Change the unit only if its ETag is one of these; `*`: only if it exists.",
    ),
    "ifNoneMatch": parameter(
        "header",
        "If-None-Match",
        TEXT,
        "Change the unit only if its ETag is none of these; `*`: only create it.",
    ),
    "unlessMatch": parameter(
        "header",
        "If-None-Match",
        TEXT,
        "Act only if the unit's ETag is none of these; `*` is every one, and so always 412.",
    ),
    "idempotencyKey": parameter(
        "header",
        "Idempotency-Key",
        TEXT | {"minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
        "A text that you make for this request and send with each repetition: however often it arrives, "
        "one hold is made. Make it random, such as a UUID: whoever sends the same key for the same unit from "
        "the same address (and with the same visitor cookie, if one is sent) is given the token.",
    ),
    "visitor": parameter(
        "cookie",
        VISITOR_COOKIE,
        TEXT | {"minLength": 8, "maxLength": 128, "pattern": "^[A-Za-z0-9_.~-]+$"},
        "The visitor, as the pages of Holdfast mark one. Live holds are counted for each visitor; without "
        "it, for the address alone.",
    ),
    "ifChanged": parameter(
        "header", "If-None-Match", TEXT, "The ETag that you know: if it still holds, 304."
    ),
    **WEBHOOK_PARAMETERS,
    **ADMINISTRATION_PARAMETERS,
    **PEOPLE_PARAMETERS,
}
