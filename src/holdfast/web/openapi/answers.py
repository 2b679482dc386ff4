"""The answers of the API description: headers, and the problems that each error status stands for."""

from __future__ import annotations

from typing import Any

from holdfast.web import problem_types as types
from holdfast.web.call import JSON
from holdfast.web.openapi import examples as examples
from holdfast.web.openapi.forms import TEXT, reference
from holdfast.web.problem_types import ProblemType
from holdfast.web.problems import MEDIA_TYPE

Answers = dict[str, dict[str, Any]]

HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "Names the request in logs; the caller's own, if it sent a sane one.",
        "required": True,
        "schema": TEXT | {"minLength": 1, "maxLength": 128},
        "example": examples.REQUEST_ID,
    },
    "ETag": {
        "description": "The revision of the unit, for `If-Match` and `If-None-Match`.",
        "schema": TEXT,
        "example": examples.ETAG,
    },
    "Retry-After": {
        "description": "Seconds to wait.",
        "schema": {"type": "integer", "minimum": 1},
        "example": 1,
    },
    "WWW-Authenticate": {
        "description": 'With `error="invalid_token"` or `error="insufficient_scope"` where a key was sent.',
        "required": True,
        "schema": TEXT,
        "example": 'Bearer error="invalid_token"',
    },
    "Cache-Control": {
        "description": "`no-store`: the answer holds what opens something, and is for its reader alone.",
        "schema": TEXT,
        "example": "no-store",
    },
    "Allow": {
        "description": "The methods of the path.",
        "required": True,
        "schema": TEXT,
        "example": "GET, HEAD",
    },
}

_PROBLEMS: dict[str, tuple[tuple[ProblemType, ...], tuple[str, ...]]] = {
    "MalformedRequest": ((types.MALFORMED_REQUEST,), ()),
    "MalformedBody": ((types.MALFORMED_BODY, types.MALFORMED_REQUEST), ()),
    "Unauthorized": ((types.NO_CREDENTIALS, types.INVALID_KEY), ("WWW-Authenticate",)),
    "Forbidden": ((types.INSUFFICIENT_SCOPE,), ("WWW-Authenticate",)),
    "UnknownProject": ((types.UNKNOWN_PROJECT,), ()),
    "UnknownUnit": ((types.UNKNOWN_UNIT, types.UNKNOWN_PROJECT), ()),
    "MethodNotAllowed": ((types.METHOD_NOT_ALLOWED,), ("Allow",)),
    "StatusConflict": (
        (types.STATUS_LOCKED, types.TERMS_LOCKED, types.TRANSITION_NOT_ALLOWED),
        ("Retry-After",),
    ),
    "CursorExpired": ((types.CURSOR_EXPIRED,), ()),
    "PreconditionFailed": ((types.PRECONDITION_FAILED,), ("ETag",)),
    "BodyTooLarge": ((types.BODY_TOO_LARGE,), ()),
    "UnsupportedMediaType": ((types.UNSUPPORTED_MEDIA_TYPE,), ()),
    "InvalidRequest": ((types.INVALID_INPUT,), ()),
    "TooManyRequests": ((types.TOO_MANY_REQUESTS,), ("Retry-After",)),
    "DatabaseAway": ((types.DATABASE_AWAY,), ("Retry-After",)),
    "NoToken": ((types.NO_CREDENTIALS,), ("WWW-Authenticate",)),
    "Unsigned": ((types.SIGNATURE_REFUSED,), ("WWW-Authenticate",)),
    "ForbiddenInBackOffice": ((types.INSUFFICIENT_SCOPE,), ("WWW-Authenticate",)),
    "ForbiddenToPayments": ((types.INSUFFICIENT_SCOPE,), ("WWW-Authenticate",)),
    "ForbiddenToStaff": ((types.INSUFFICIENT_SCOPE,), ("WWW-Authenticate",)),
    "ForeignSite": ((types.FOREIGN_FORM,), ()),
    "UnknownBooking": ((types.UNKNOWN_BOOKING,), ()),
    "UnknownEndpoint": ((types.UNKNOWN_ENDPOINT,), ()),
    "UnknownEndpointOrProject": ((types.UNKNOWN_ENDPOINT, types.UNKNOWN_PROJECT), ()),
    "UnknownKey": ((types.UNKNOWN_KEY,), ()),
    "UnknownStaff": ((types.UNKNOWN_STAFF,), ()),
    "UnknownDelivery": ((types.UNKNOWN_DELIVERY,), ()),
    "HoldRefused": (
        (types.NOT_AVAILABLE, types.HOLD_LAPSED, types.TRANSITION_NOT_ALLOWED),
        ("Retry-After",),
    ),
    "BuyerRefused": ((types.HOLD_LAPSED, types.TRANSITION_NOT_ALLOWED), ("Retry-After",)),
    "ActionRefused": ((types.TRANSITION_NOT_ALLOWED,), ("Retry-After",)),
    "BookingRefused": ((types.TRANSITION_NOT_ALLOWED,), ("Retry-After",)),
    "DepositRefused": ((types.NOT_SIGNED, types.TRANSITION_NOT_ALLOWED), ("Retry-After",)),
    "PaymentRefused": ((types.NOT_SIGNED, types.TRANSITION_NOT_ALLOWED), ()),
    "NotSigned": ((types.NOT_SIGNED,), ()),
    "ProjectExists": ((types.PROJECT_EXISTS,), ()),
    "StaffExists": ((types.STAFF_EXISTS,), ()),
    "LastAdmin": ((types.LAST_ADMIN,), ()),
    "EndpointRemoved": ((types.ENDPOINT_REMOVED,), ()),
    "TooManyFromAddress": ((types.TOO_MANY_REQUESTS,), ("Retry-After",)),
    "TooManyHolds": (
        (types.TOO_MANY_HOLDS, types.HELD_TOO_RECENTLY, types.TOO_MANY_REQUESTS),
        ("Retry-After",),
    ),
    "NotReady": ((types.DATABASE_AWAY, types.SCHEMA_NOT_CURRENT), ("Retry-After",)),
}
"""By name: the problems that share a status, and the headers that come with them."""

_SCHEMAS = {
    "ProjectExists": "Problem",
    "StaffExists": "Problem",
    "LastAdmin": "Problem",
    "EndpointRemoved": "EndpointRemoved",
}
_SCHEMAS_BY_STATUS = {409: "Conflict", 422: "InvalidInput"}

ANYWHERE = ("MalformedRequest", "MethodNotAllowed")
WITH_KEY = (*ANYWHERE, "Unauthorized", "Forbidden", "InvalidRequest", "TooManyRequests", "DatabaseAway")
OF_A_PROJECT = (*WITH_KEY, "UnknownProject")
OF_A_UNIT = (*WITH_KEY, "UnknownUnit")
OF_STAFF = (*WITH_KEY, "ForbiddenInBackOffice")
WITH_BODY = ("MalformedBody", "BodyTooLarge", "UnsupportedMediaType")
OF_A_CHANGE = (*WITH_BODY, "PreconditionFailed", "StatusConflict")


def components() -> Answers:
    return {name: _problem_answer(name, kinds, headers) for name, (kinds, headers) in _PROBLEMS.items()}


def problems(*names: str) -> Answers:
    """By status; where two names share one, the later stands."""
    found = {str(_PROBLEMS[name][0][0].status): {"$ref": f"#/components/responses/{name}"} for name in names}
    return dict(sorted(found.items()))


def answer(description: str, *headers: str, **media: Any) -> dict[str, Any]:
    return {"description": description, "headers": _header_references(headers), **media}


def json_answer(description: str, schema: str, example: Any, *headers: str) -> dict[str, Any]:
    content = {JSON: {"schema": reference(schema), "example": example}}
    return answer(description, *headers, content=content)


def _problem_answer(name: str, kinds: tuple[ProblemType, ...], headers: tuple[str, ...]) -> dict[str, Any]:
    media = {
        "schema": reference(_SCHEMAS.get(name) or _SCHEMAS_BY_STATUS.get(kinds[0].status, "Problem")),
        "examples": {
            kind.name: {"summary": kind.title, "value": examples.problem(kind.name, name)} for kind in kinds
        },
    }
    description = "\n\n".join(f"[{kind.title}]({kind.path}). {kind.explanation}" for kind in kinds)
    return answer(description, *headers, content={MEDIA_TYPE: media})


def _header_references(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}
