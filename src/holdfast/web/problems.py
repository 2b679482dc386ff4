"""From a refusal to its answer (RFC 9457). The table is total: a test walks the tree of refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from holdfast.domain import refusals
from holdfast.domain.refusals import Refusal
from holdfast.web import problem_types as types
from holdfast.web import refusals as http
from holdfast.web.answer import Header, JsonAnswer
from holdfast.web.problem_types import ProblemType
from holdfast.web.wire import camel_case, time_text

MEDIA_TYPE = "application/problem+json"

PROBLEM_OF: dict[type[Exception], ProblemType] = {
    refusals.NoCredentials: types.NO_CREDENTIALS,
    refusals.KeyRefused: types.INVALID_KEY,
    refusals.SignatureRefused: types.SIGNATURE_REFUSED,
    refusals.ScopeMissing: types.INSUFFICIENT_SCOPE,
    refusals.KeyLimited: types.INSUFFICIENT_SCOPE,
    refusals.InvalidInput: types.INVALID_INPUT,
    refusals.UnknownProject: types.UNKNOWN_PROJECT,
    refusals.UnknownUnit: types.UNKNOWN_UNIT,
    refusals.UnknownBooking: types.UNKNOWN_BOOKING,
    refusals.UnknownKey: types.UNKNOWN_KEY,
    refusals.UnknownEndpoint: types.UNKNOWN_ENDPOINT,
    refusals.UnknownDelivery: types.UNKNOWN_DELIVERY,
    refusals.SignInRefused: types.SIGN_IN_REFUSED,
    refusals.SecondFactorNeeded: types.SECOND_FACTOR_NEEDED,
    refusals.UnknownStaff: types.UNKNOWN_STAFF,
    refusals.SetupLinkRefused: types.SETUP_LINK_REFUSED,
    refusals.PreconditionFailed: types.PRECONDITION_FAILED,
    refusals.StatusLocked: types.STATUS_LOCKED,
    refusals.TermsLocked: types.TERMS_LOCKED,
    refusals.NotAvailable: types.NOT_AVAILABLE,
    refusals.NotSigned: types.NOT_SIGNED,
    refusals.HoldLapsed: types.HOLD_LAPSED,
    refusals.TransitionNotAllowed: types.TRANSITION_NOT_ALLOWED,
    refusals.ProjectExists: types.PROJECT_EXISTS,
    refusals.StaffExists: types.STAFF_EXISTS,
    refusals.LastAdmin: types.LAST_ADMIN,
    refusals.EndpointRemoved: types.ENDPOINT_REMOVED,
    refusals.CursorExpired: types.CURSOR_EXPIRED,
    refusals.TooManyRequests: types.TOO_MANY_REQUESTS,
    refusals.TooManyAttempts: types.TOO_MANY_ATTEMPTS,
    refusals.TooManyHolds: types.TOO_MANY_HOLDS,
    refusals.TooManyHoldsAtAddress: types.TOO_MANY_HOLDS,
    refusals.HeldTooRecently: types.HELD_TOO_RECENTLY,
    refusals.SchemaNotCurrent: types.SCHEMA_NOT_CURRENT,
    refusals.SecretsUnreadable: types.SECRETS_UNREADABLE,
    refusals.DatabaseAway: types.DATABASE_AWAY,
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
    for kind in type(failure).__mro__:
        if kind in PROBLEM_OF:
            return PROBLEM_OF[kind]
    return types.INTERNAL_ERROR


def problem_document(failure: Exception, request_id: str) -> dict[str, Any]:
    kind = problem_type(failure)
    document: dict[str, Any] = {
        "type": kind.path,
        "title": kind.title,
        "status": kind.status,
        "detail": str(failure) if isinstance(failure, Refusal) else kind.explanation,
        "requestId": request_id,
    }
    if isinstance(failure, refusals.InvalidInput):
        document["errors"] = [
            {"pointer": fault.pointer, "message": str(fault.message)} for fault in failure.faults
        ]
    if isinstance(failure, refusals.Conflict):
        document |= _conflict_members(failure)
    if isinstance(failure, refusals.EndpointRemoved):
        document["reason"] = failure.reason
    return document


def problem_answer(failure: Exception, request_id: str) -> JsonAnswer:
    document = problem_document(failure, request_id)
    return JsonAnswer(document, document["status"], *problem_headers(failure), media_type=MEDIA_TYPE.encode())


def _conflict_members(conflict: refusals.Conflict) -> dict[str, Any]:
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
    if isinstance(failure, refusals.PreconditionFailed) and failure.current:
        yield b"etag", f'"{failure.current}"'.encode()
    if challenge := _challenge(failure):
        yield b"www-authenticate", challenge.encode()


def add_problem_headers(page: Response, failure: Exception) -> None:
    """For pages, which tell the rest in words."""
    for name, value in problem_headers(failure):
        page.headers[name.decode()] = value.decode()


def _challenge(failure: Exception) -> str | None:
    if isinstance(failure, refusals.NoCredentials):
        return "Bearer"
    if isinstance(failure, refusals.KeyRefused):
        return 'Bearer error="invalid_token"'
    if isinstance(failure, refusals.SignatureRefused):
        return "PaymentSignature"
    if isinstance(failure, refusals.ScopeMissing):
        return f'Bearer error="insufficient_scope", scope="{failure.scope}"'
    return None
