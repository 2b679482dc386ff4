"""Problem documents for errors (RFC 9457). The table is total: a test walks the tree of errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.errors import Refusal
from holdfast.domain.status import Status
from holdfast.web import problem_types as types
from holdfast.web import refusals as http
from holdfast.web.json import Header, JsonResponse
from holdfast.web.problem_types import ProblemType
from holdfast.web.wire import camel_case, time_text

MEDIA_TYPE = "application/problem+json"

_POINTER = (
    "Where: `/priceSar` in the body, `/path/slug` in the path, `/query/limit` in the query, "
    "`/header/Idempotency-Key` in a header."
)

_ERRORS = "Every fault of the request; of more than 100 the first, and how many more there are."
_HOLD_ENDS = "Of a conflict: when the hold that is in the way ends."
_REASON = "Of a conflict: why, as a name."
_REASONS = [*(kind.reason for kind in errors.Conflict.__subclasses__()), errors.EndpointRemoved.reason]
_TIME = {"format": "date-time"}
_FAULTS_SHOWN = 100
_LARGEST_PROBLEM = 64 * 1000
_LONGEST_DETAIL = 2000
_LONGEST_POINTER = 500


class FaultDocument(msgspec.Struct):
    pointer: Annotated[str, Meta(description=_POINTER)]
    message: str


class ProblemDocument(msgspec.Struct, rename="camel"):
    """What went wrong (RFC 9457). The optional members are those of some problems only."""

    type: Annotated[str, Meta(description="A path under `/problems/`, which explains it.")]
    title: str
    status: Annotated[int, Meta(ge=400, le=599, description="The status of the response.")]
    detail: Annotated[str, Meta(description="What is wrong with this request, in a sentence.")]
    request_id: Annotated[str, Meta(description="The `X-Request-Id` of the response.")]
    errors: Annotated[list[FaultDocument], Meta(description=_ERRORS)] | UnsetType = UNSET
    reason: Annotated[str, Meta(description=_REASON, extra_json_schema={"enum": _REASONS})] | UnsetType = (
        UNSET
    )
    current_status: Annotated[Status, Meta(description="Of a conflict: the unit's status.")] | UnsetType = (
        UNSET
    )
    hold_expires_at: Annotated[str, Meta(description=_HOLD_ENDS, extra_json_schema=_TIME)] | UnsetType = UNSET
    fields: Annotated[list[str], Meta(description="Of a conflict: the offending fields.")] | UnsetType = UNSET


PROBLEM_OF: dict[type[Exception], ProblemType] = {
    errors.NoCredentials: types.NO_CREDENTIALS,
    errors.KeyRefused: types.INVALID_KEY,
    errors.SignatureRefused: types.SIGNATURE_REFUSED,
    errors.ScopeMissing: types.INSUFFICIENT_SCOPE,
    errors.KeyLimited: types.INSUFFICIENT_SCOPE,
    errors.InvalidInput: types.INVALID_INPUT,
    errors.UnknownProject: types.UNKNOWN_PROJECT,
    errors.UnknownUnit: types.UNKNOWN_UNIT,
    errors.UnknownBooking: types.UNKNOWN_BOOKING,
    errors.UnknownKey: types.UNKNOWN_KEY,
    errors.UnknownEndpoint: types.UNKNOWN_ENDPOINT,
    errors.UnknownDelivery: types.UNKNOWN_DELIVERY,
    errors.SignInRefused: types.SIGN_IN_REFUSED,
    errors.SecondFactorNeeded: types.SECOND_FACTOR_NEEDED,
    errors.UnknownStaff: types.UNKNOWN_STAFF,
    errors.SetupLinkRefused: types.SETUP_LINK_REFUSED,
    errors.PreconditionFailed: types.PRECONDITION_FAILED,
    errors.StatusLocked: types.STATUS_LOCKED,
    errors.TermsLocked: types.TERMS_LOCKED,
    errors.NotAvailable: types.NOT_AVAILABLE,
    errors.NotSigned: types.NOT_SIGNED,
    errors.HoldLapsed: types.HOLD_LAPSED,
    errors.TransitionNotAllowed: types.TRANSITION_NOT_ALLOWED,
    errors.ProjectExists: types.PROJECT_EXISTS,
    errors.StaffExists: types.STAFF_EXISTS,
    errors.LastAdmin: types.LAST_ADMIN,
    errors.EndpointRemoved: types.ENDPOINT_REMOVED,
    errors.CursorExpired: types.CURSOR_EXPIRED,
    errors.TooManyRequests: types.TOO_MANY_REQUESTS,
    errors.TooManyAttempts: types.TOO_MANY_ATTEMPTS,
    errors.TooManyHolds: types.TOO_MANY_HOLDS,
    errors.TooManyHoldsAtAddress: types.TOO_MANY_HOLDS,
    errors.HeldTooRecently: types.HELD_TOO_RECENTLY,
    errors.SchemaNotCurrent: types.SCHEMA_NOT_CURRENT,
    errors.SecretsUnreadable: types.SECRETS_UNREADABLE,
    errors.DatabaseAway: types.DATABASE_AWAY,
    http.MalformedBody: types.MALFORMED_BODY,
    http.MalformedRequest: types.MALFORMED_REQUEST,
    http.TwoCredentials: types.MALFORMED_REQUEST,
    http.BodyTooLarge: types.BODY_TOO_LARGE,
    http.UnsupportedMediaType: types.UNSUPPORTED_MEDIA_TYPE,
    http.MethodNotAllowed: types.METHOD_NOT_ALLOWED,
    http.UnknownRoute: types.NOT_FOUND,
    http.NotYours: types.NOT_YOURS,
    http.ForeignForm: types.FOREIGN_FORM,
}


def problem_type(failure: Exception) -> ProblemType:
    return problem_type_of(type(failure))


def problem_type_of(error: type[Exception]) -> ProblemType:
    return next((PROBLEM_OF[kind] for kind in error.__mro__ if kind in PROBLEM_OF), types.INTERNAL_ERROR)


def problem_document(failure: Exception, request_id: str) -> dict[str, Any]:
    kind = problem_type(failure)
    document: dict[str, Any] = {
        "type": kind.path,
        "title": kind.title,
        "status": kind.status,
        "detail": str(failure) if isinstance(failure, Refusal) else kind.explanation,
        "requestId": request_id,
    }
    if isinstance(failure, errors.InvalidInput):
        document["errors"] = [
            {"pointer": fault.pointer, "message": str(fault.message)} for fault in failure.faults
        ]
    if isinstance(failure, errors.Conflict):
        document |= _conflict_members(failure)
    if isinstance(failure, errors.EndpointRemoved):
        document["reason"] = failure.reason
    return document


def problem_response(failure: Exception, request_id: str) -> JsonResponse:
    document = problem_document(failure, request_id)
    document["detail"] = _clipped(document["detail"], _LONGEST_DETAIL)
    faults = document.get("errors", [])
    shown = _FAULTS_SHOWN
    response = _response(document, faults, shown, failure)
    while len(response.body) > _LARGEST_PROBLEM:
        shown //= 2
        response = _response(document, faults, shown, failure)
    return response


def _response(
    document: dict[str, Any], faults: list[dict[str, str]], shown: int, failure: Exception
) -> JsonResponse:
    if faults:
        listed = [
            {**fault, "pointer": _clipped(fault["pointer"], _LONGEST_POINTER)} for fault in faults[:shown]
        ]
        if len(faults) > shown:
            listed.append({"pointer": "", "message": f"And {len(faults) - shown} more."})
        document = {**document, "errors": listed}
    return JsonResponse(document, document["status"], problem_headers(failure), MEDIA_TYPE)


def _clipped(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _conflict_members(conflict: errors.Conflict) -> dict[str, Any]:
    members: dict[str, Any] = {"reason": conflict.reason, "currentStatus": conflict.status}
    if conflict.hold_expires_at is not None:
        members["holdExpiresAt"] = time_text(conflict.hold_expires_at)
    if conflict.fields:
        members["fields"] = [camel_case(name) for name in conflict.fields]
    return members


def problem_headers(failure: Exception) -> Iterator[Header]:
    retry_after = getattr(failure, "retry_after_seconds", None)
    if retry_after is not None:
        yield b"retry-after", b"%d" % max(1, math.ceil(retry_after))
    if isinstance(failure, http.MethodNotAllowed):
        yield b"allow", ", ".join(failure.allowed).encode()
    if isinstance(failure, errors.PreconditionFailed) and failure.current:
        yield b"etag", f'"{failure.current}"'.encode()
    if challenge := _challenge(failure):
        yield b"www-authenticate", challenge.encode()


def add_problem_headers(page: Response, failure: Exception) -> None:
    """For pages, which tell the rest in words."""
    for name, value in problem_headers(failure):
        page.headers[name.decode()] = value.decode()


def _challenge(failure: Exception) -> str | None:
    if isinstance(failure, errors.NoCredentials):
        return "Bearer"
    if isinstance(failure, errors.KeyRefused):
        return 'Bearer error="invalid_token"'
    if isinstance(failure, errors.SignatureRefused):
        return "PaymentSignature"
    if isinstance(failure, errors.ScopeMissing):
        return f'Bearer error="insufficient_scope", scope="{failure.scope}"'
    return None
