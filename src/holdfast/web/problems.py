"""Every problem that Holdfast answers with, as its page explains it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from random import getrandbits
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.status import Status
from holdfast.web import errors as http
from holdfast.web.json import Header, JsonResponse, camel_case, time_text

logger = logging.getLogger("holdfast.web")


class ProblemType(NamedTuple):
    name: str
    status: int
    title: str
    explanation: str
    remedy: str

    @property
    def path(self) -> str:
        return f"/problems/{self.name}"


INTERNAL_ERROR = ProblemType(
    "internal-error", 500, "Internal server error",
    "Holdfast failed to handle the request. The request is not at fault. The server's log has the error.",
    "Report it with the `requestId` of the response.",
)  # fmt: skip

PROBLEM_OF: dict[type[Exception], ProblemType] = {
    errors.NoCredentials: ProblemType(
        "no-credentials", 401, "No credentials were sent",
        "This route needs an API key or the token of a booking. The request had neither.",
        "Send `Authorization: Bearer <key>`. `holdfast key add` creates a key. A buyer gets a token with "
        "the hold.",
    ),
    errors.InvalidApiKey: ProblemType(
        "invalid-key", 401, "The API key is not valid",
        "The key is unknown, revoked or expired, or it was sent in the query string, where it would end up "
        "in logs. The response is the same in all these cases, so that it reveals nothing about the key.",
        "Check that the key is complete, or create a new one. Send it in the `Authorization` header.",
    ),
    errors.InvalidSignature: ProblemType(
        "signature-refused", 401, "The signature is not valid",
        "A payment callback must be signed with the payment secret, over the timestamp and the exact bytes "
        "of the body, at most 300 seconds ago. This one is not.",
        "`detail` says what is wrong. The payments guide shows how to sign.",
    ),
    errors.ScopeMissing: ProblemType(
        "insufficient-scope", 403, "The API key lacks the scope",
        "The key is valid, but its scopes do not include this route.",
        "Use a key with the scope that the response names.",
    ),
    http.MalformedRequest: ProblemType(
        "malformed-request", 400, "The request is malformed",
        "Holdfast cannot read the request: it breaks the rules of HTTP or has two `Authorization` headers.",
        "Send one well-formed HTTP/1.1 request with a `Content-Length` or a chunked body.",
    ),
    http.MalformedBody: ProblemType(
        "malformed-body", 400, "The body is not JSON",
        "The body must be JSON in UTF-8 that every parser reads in the same way. Holdfast also rejects a "
        "byte order mark, a name that occurs twice in an object, NaN and Infinity, text after the value, "
        "extreme nesting, and numbers of more than a thousand characters.",
        "Send one JSON value as defined in RFC 8259. `detail` says where the fault is.",
    ),
    errors.InvalidInput: ProblemType(
        "invalid-input", 422, "The request is not valid",
        "Holdfast could read the request, but a value in it is not valid. Nothing was changed.",
        "`errors` lists the faults, each with a pointer: `/priceSar` is a field of the body, `/path/slug` "
        "a part of the path, `/query/limit` a query parameter, `/header/…` a header.",
    ),
    http.UnsupportedMediaType: ProblemType(
        "unsupported-media-type", 415, "The content type is not supported",
        "A body must be `application/json` in UTF-8. The bulk route also takes `application/x-ndjson`. "
        "Compressed bodies are not accepted.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    http.BodyTooLarge: ProblemType(
        "body-too-large", 413, "The body is too large",
        "A body may be up to 1 MiB unless its route names another limit. The bulk route takes up to 32 MiB "
        "and 200 000 units. A query may have up to 200 parameters and 16 KiB.",
        "Send fewer units in one request. A layout may leave out the units whose place follows from their "
        "code.",
    ),
    http.MethodNotAllowed: ProblemType(
        "method-not-allowed", 405, "The method is not allowed",
        "The path exists but does not support this method.",
        "Use a method from the `Allow` header.",
    ),
    http.UnknownRoute: ProblemType(
        "not-found", 404, "There is nothing at this path",
        "No route of Holdfast has this path.",
        "`/docs` lists every route. Write a slash in a unit code as `%2F`.",
    ),
    http.Forbidden: ProblemType(
        "not-permitted", 403, "Your role does not allow this",
        "You are signed in to the back office, but your role does not allow this action.",
        "Ask an admin to change your role. The back office guide lists what each role may do.",
    ),
    http.ForeignForm: ProblemType(
        "foreign-form", 403, "The form is out of date",
        "Each form has a token of the session that it was made for. This request had no token, or another "
        "one. Or a page of another site tried to hold a unit, and its origin is not in "
        "`HOLDFAST_CORS_ORIGINS`.",
        "Reload the page and send the form again. If the other site is yours, add its origin to that "
        "setting.",
    ),
    errors.UnknownProject: ProblemType(
        "unknown-project", 404, "There is no such project",
        "No project has this slug, or the key may not use it. The response is the same in both cases, so "
        "that it does not reveal other projects.",
        "`GET /v1/integration/projects` lists the projects that the key may use.",
    ),
    errors.UnknownUnit: ProblemType(
        "unknown-unit", 404, "There is no such unit",
        "The project has no unit with this code. Codes are case-sensitive.",
        "Create the unit with PUT, or find its code in the list of units.",
    ),
    errors.UnknownBooking: ProblemType(
        "unknown-booking", 404, "There is no such booking",
        "No booking has this reference, or the token or key does not give access to it. The response is "
        "the same in both cases.",
        "Check the reference for a typing error. If a buyer has lost the token, staff can issue a new one.",
    ),
    errors.UnknownKey: ProblemType(
        "unknown-key", 404, "There is no such key",
        "No API key has this id.",
        "`holdfast key list` lists the keys with their ids.",
    ),
    errors.UnknownEndpoint: ProblemType(
        "unknown-endpoint", 404, "There is no such endpoint",
        "No endpoint has this id, the endpoint was removed, or the key is limited to other projects. The "
        "response is the same in all these cases.",
        "`GET /v1/backoffice/endpoints` lists the endpoints that the key may see.",
    ),
    errors.UnknownDelivery: ProblemType(
        "unknown-delivery", 404, "There is no such delivery",
        "No delivery has this id, it is too old to be kept in the log, or the key is limited to other "
        "projects.",
        "`GET /v1/backoffice/deliveries` lists the deliveries that the key may see.",
    ),
    errors.UnknownStaff: ProblemType(
        "unknown-staff", 404, "There is no such member of staff",
        "No member of staff has this id or e-mail address.",
        "`GET /v1/backoffice/staff` lists the staff with their ids.",
    ),
    errors.InvalidSetupLink: ProblemType(
        "setup-link-refused", 404, "The set-up link is not valid",
        "The link is unknown, was already used, was replaced by a newer one, or is more than a day old. "
        "The response is the same in all these cases.",
        "Ask an admin for a new link: the page Staff and `holdfast staff reset` create one. If there is no "
        "staff yet, each start of `holdfast serve` prints a link for the first admin.",
    ),
    errors.LoginFailed: ProblemType(
        "sign-in-refused", 422, "The sign-in was refused",
        "The e-mail address is unknown, the password or the code is wrong, or the account is disabled. The "
        "response is the same in all these cases.",
        "Try again, or ask an admin for a new set-up link.",
    ),
    errors.SecondFactorNeeded: ProblemType(
        "second-factor-needed", 422, "A sign-in code is required",
        "This account has a second factor, so the password alone is not enough.",
        "Enter the code that your authenticator app shows for Holdfast. If you have lost the app, ask an "
        "admin for a reset.",
    ),
    errors.StaffExists: ProblemType(
        "staff-exists", 409, "The e-mail address is already in use",
        "A member of staff has this e-mail address. Upper and lower case make no difference.",
        "Change the role of that person, or enable their account again.",
    ),
    errors.LastAdmin: ProblemType(
        "last-admin", 409, "This is the last admin",
        "No other admin can sign in, so nobody could manage the back office without this one. Nothing was "
        "changed.",
        "Give another person the role admin first.",
    ),
    errors.EndpointRemoved: ProblemType(
        "endpoint-removed", 409, "The endpoint was removed",
        "The delivery is still in the log, but its endpoint was removed, so there is no address to send it "
        "to. Nothing was changed.",
        "Register the URL again if it should receive events. The event feed has the events that it missed.",
    ),
    errors.ProjectExists: ProblemType(
        "project-exists", 409, "The project already exists",
        "Another project has this slug.",
        "Choose another slug.",
    ),
    errors.PreconditionFailed: ProblemType(
        "precondition-failed", 412, "The unit does not meet the precondition",
        "`If-Match` or `If-None-Match` does not match the current state of the unit. Nothing was changed.",
        "Read the unit, check whether your change still applies, and send it with the new `ETag`.",
    ),
    errors.StatusLocked: ProblemType(
        "status-locked", 409, "The status is locked",
        "While a unit is held, reserved or sold, its booking decides its status. A request with `status` "
        "is rejected as a whole. Nothing was changed.",
        "Send the request without `status`, or try again later. If a hold is the cause, `Retry-After` says "
        "when.",
    ),
    errors.TermsLocked: ProblemType(
        "terms-locked", 409, "The terms are locked",
        "While a unit is held or reserved, price, deposit and VAT stay as the buyer saw them. A PUT that "
        "leaves one of them out would clear it, so it is rejected too. Nothing was changed.",
        "Leave these fields unchanged, or wait until the booking ends. `fields` lists them.",
    ),
    errors.NotAvailable: ProblemType(
        "not-available", 409, "The unit is not available",
        "Another buyer holds, has reserved or has bought the unit, or it is not on sale.",
        "Choose another unit. If a hold is the cause, `holdExpiresAt` and `Retry-After` say when it ends.",
    ),
    errors.NotSigned: ProblemType(
        "not-signed", 409, "The buyer has not signed",
        "A deposit can be confirmed only after the buyer has signed. This booking has no signature. "
        "Nothing was changed.",
        "Let the buyer sign while the hold lasts. If you have received money without a signature, return "
        "it: Holdfast has not recorded it.",
    ),
    errors.HoldLapsed: ProblemType(
        "hold-lapsed", 409, "The hold has lapsed",
        "The time of the hold is over, by the database's clock.",
        "`currentStatus` is the status of the unit now. If it is `available`, hold the unit again.",
    ),
    errors.PaymentUsed: ProblemType(
        "payment-used", 409, "The payment belongs to another booking",
        "A payment can confirm the deposit of one booking only. This one has already confirmed another. "
        "Nothing was changed.",
        "Report each payment with its own id, and with the reference that the payment page received.",
    ),
    errors.IdempotencyKeyUsed: ProblemType(
        "idempotency-key-used", 409, "The Idempotency-Key was already used",
        "A request with this `Idempotency-Key` was already carried out. Its response cannot be repeated: "
        "it is older than 60 seconds, it belongs to another client, or the booking or endpoint has changed "
        "since. Nothing was changed.",
        "Look up what the first request created: `id` names it if you may see it. Send a new key with a "
        "new request.",
    ),
    errors.TransitionNotAllowed: ProblemType(
        "transition-not-allowed", 409, "The status does not allow this action",
        "The current status does not allow this action, or not for this caller. Only staff can put an "
        "archived unit on sale again, so that a nightly sync cannot undo their decision.",
        "`currentStatus` is the status of the unit. If waiting for the end of a hold helps, "
        "`holdExpiresAt` and `Retry-After` say when it ends.",
    ),
    errors.CursorExpired: ProblemType(
        "cursor-expired", 410, "The cursor is too old",
        "The events after this cursor are no longer kept.",
        "Read all units of your projects once (`GET …/units`), then start the feed again without a cursor.",
    ),
    errors.TooManyRequests: ProblemType(
        "too-many-requests", 429, "Too many requests",
        "The key, or without a key the network address, has sent more requests than its limit allows. Or "
        "the address has sent too many wrong keys.",
        "Wait for the number of seconds in `Retry-After`. To send many units, use the bulk route.",
    ),
    errors.TooManyAttempts: ProblemType(
        "too-many-attempts", 429, "Too many attempts to sign in",
        "Too many sign-ins have failed for this account or from this network address.",
        "Wait for the number of seconds in `Retry-After`. Existing sessions continue.",
    ),
    errors.TooManyHolds: ProblemType(
        "too-many-holds", 429, "Too many units are held",
        "A visitor, a network address and a network may each hold a limited number of units at a time, so "
        "that nobody can block a whole building.",
        "Cancel a hold, or wait for the seconds in `Retry-After`, when the next one ends.",
    ),
    errors.HeldTooRecently: ProblemType(
        "held-too-recently", 429, "Your hold on this unit has just lapsed",
        "After a hold has lapsed, the same visitor must wait before holding the unit again. This gives "
        "other buyers a chance.",
        "Wait for the number of seconds in `Retry-After`.",
    ),
    errors.DatabaseUnavailable: ProblemType(
        "database-away", 503, "The database is unavailable",
        "The database cannot be reached right now. No change is ever half done.",
        "Repeat the request after the seconds in `Retry-After`. PUT, PATCH and deposits are safe to "
        "repeat; a hold only with an `Idempotency-Key`. Before you repeat any other POST, check whether it "
        "was done.",
    ),
    errors.Overloaded: ProblemType(
        "overloaded", 503, "The server is overloaded",
        "Too many changes are waiting to be stored, this one has waited too long, or bulk bodies use all "
        "the memory reserved for them. Nothing of the request was stored.",
        "Repeat the request after the seconds in `Retry-After`. They differ from response to response.",
    ),
    errors.SchemaNotCurrent: ProblemType(
        "schema-not-current", 503, "The schema is not current",
        "The database can be reached, but its schema is older or newer than this release supports.",
        "Run `holdfast migrate` with the newest release, and restart the processes of older ones.",
    ),
    errors.SecretsUnreadable: ProblemType(
        "secrets-unreadable", 503, "The signing secrets cannot be read",
        "None of the encryption keys of this installation can open the signing secret of an endpoint.",
        "The operator must add the key that encrypted the secrets to `HOLDFAST_ENCRYPTION_KEYS`, beside "
        "the new one.",
    ),
}  # fmt: skip
"""By error, subclasses included. The table is total: a test walks the tree of errors."""

PROBLEM_TYPES = {kind.name: kind for kind in (*PROBLEM_OF.values(), INTERNAL_ERROR)}

MEDIA_TYPE = "application/problem+json"

_CHALLENGES = {
    errors.NoCredentials: "Bearer",
    errors.InvalidApiKey: 'Bearer error="invalid_token"',
    errors.InvalidSignature: "PaymentSignature",
    errors.ScopeMissing: 'Bearer error="insufficient_scope", scope="{error.scope}"',
}
_POINTER = (
    "Where: `/priceSar` in the body, `/path/slug` in the path, `/query/limit` in the query, "
    "`/header/Idempotency-Key` in a header."
)
_ERRORS = "Every fault of the request; of more than 100 the first, and how many more there are."
_HOLD_ENDS = "Of a conflict: when the hold that is in the way ends."
_WITH_REASON = (*errors.Conflict.__subclasses__(), errors.EndpointRemoved)
_REASON = {"enum": [PROBLEM_OF[error].name for error in _WITH_REASON]}
_FAULTS_SHOWN = 100
_LARGEST_PROBLEM = 64 * 1000
_LONGEST_DETAIL = 2000
_LONGEST_POINTER = 500

_Reason = Annotated[str, Meta(description="Of a conflict: why, as a name.", extra_json_schema=_REASON)]
_CurrentStatus = Annotated[Status, Meta(description="Of a conflict: the unit's status.")]
_HoldEnd = Annotated[str, Meta(description=_HOLD_ENDS, extra_json_schema={"format": "date-time"})]


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
    reason: _Reason | UnsetType = UNSET
    current_status: _CurrentStatus | UnsetType = UNSET
    hold_expires_at: _HoldEnd | UnsetType = UNSET
    fields: Annotated[list[str], Meta(description="Of a conflict: the offending fields.")] | UnsetType = UNSET
    id: Annotated[UUID, Meta(description="Of a used `Idempotency-Key`: what it made.")] | UnsetType = UNSET


def problem_type(failure: Exception) -> ProblemType:
    return problem_type_of(type(failure))


def problem_type_of(error: type[Exception]) -> ProblemType:
    return next((PROBLEM_OF[kind] for kind in error.__mro__ if kind in PROBLEM_OF), INTERNAL_ERROR)


def problem_document(failure: Exception, request_id: str) -> ProblemDocument:
    kind = problem_type(failure)
    detail = str(failure) if isinstance(failure, errors.DomainError) else kind.explanation
    document = ProblemDocument(kind.path, kind.title, kind.status, detail, request_id)
    if isinstance(failure, errors.InvalidInput):
        document.errors = [FaultDocument(fault.pointer, str(fault.message)) for fault in failure.faults]
    if isinstance(failure, _WITH_REASON):
        document.reason = kind.name
    if isinstance(failure, errors.Conflict):
        document.current_status = failure.status or UNSET
        document.fields = [camel_case(name) for name in failure.fields] or UNSET
        if failure.hold_expires_at is not None:
            document.hold_expires_at = time_text(failure.hold_expires_at)
    if isinstance(failure, errors.IdempotencyKeyUsed):
        document.id = failure.made_id or UNSET
    return document


def problem_response(failure: Exception, request_id: str) -> JsonResponse:
    """Return the response for an error, with as many of its faults as it has room for."""
    document = problem_document(failure, request_id)
    document.detail = _clip(document.detail, _LONGEST_DETAIL)
    faults, shown = document.errors or [], _FAULTS_SHOWN
    while True:
        if faults:
            document.errors = [
                FaultDocument(_clip(one.pointer, _LONGEST_POINTER), one.message) for one in faults[:shown]
            ]
            if len(faults) > shown:
                document.errors.append(FaultDocument("", f"And {len(faults) - shown} more."))
        response = JsonResponse(document, document.status, problem_headers(failure), MEDIA_TYPE)
        if len(response.body) <= _LARGEST_PROBLEM:
            return response
        shown //= 2


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def problem_headers(failure: Exception) -> Iterator[Header]:
    retry_after = getattr(failure, "retry_after_seconds", None)
    if isinstance(failure, errors.Overloaded):
        retry_after = 1 + getrandbits(2)  # They must not all come back at once.
    if retry_after is not None:
        yield b"retry-after", b"%d" % max(1, math.ceil(retry_after))
    if isinstance(failure, http.MethodNotAllowed):
        yield b"allow", ", ".join(failure.allowed).encode()
    if isinstance(failure, errors.PreconditionFailed) and failure.current:
        yield b"etag", f'"{failure.current}"'.encode()
    for kind, challenge in _CHALLENGES.items():
        if isinstance(failure, kind):
            yield b"www-authenticate", challenge.format(error=failure).encode()


def add_problem_headers(page: Response, failure: Exception) -> None:
    for name, value in problem_headers(failure):
        page.headers[name.decode()] = value.decode()


def log_failure(request_id: str, failure: Exception) -> None:
    logger.error("request failed", exc_info=failure, extra={"fields": {"requestId": request_id}})
