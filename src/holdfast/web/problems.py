"""Every problem that Holdfast answers with, as its page explains it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from random import getrandbits
from typing import Annotated, Any, NamedTuple
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
    "internal-error", 500, "Something went wrong in Holdfast",
    "This is a fault of Holdfast, not of the request. It has been written to the log.",
    "Report it with the `requestId` of the answer.",
)  # fmt: skip

PROBLEM_OF: dict[type[Exception], ProblemType] = {
    errors.NoCredentials: ProblemType(
        "no-credentials", 401, "No credentials were sent",
        "This part of Holdfast is open to API keys only, or to the token of a booking, and the request "
        "carried neither.",
        "Send the key or token in the header `Authorization: Bearer <key>`. Keys are made with `holdfast key "
        "add`; a buyer's token comes with the hold.",
    ),
    errors.InvalidApiKey: ProblemType(
        "invalid-key", 401, "The API key is not valid",
        "The key is unknown, revoked or expired, or it was sent in the query string, where logs would keep "
        "it. The answer is the same in all these cases on purpose.",
        "Check the key for a missing character, or make a new one. Send it in the Authorization header only.",
    ),
    errors.InvalidSignature: ProblemType(
        "signature-refused", 401, "The signature is not valid",
        "A payment callback is signed with the payment secret, over the timestamp and the body exactly as it "
        "is sent, and not longer than 300 seconds ago. This one is not.",
        "The detail says what is wrong with it. The guide to payments shows how to sign.",
    ),
    errors.ScopeMissing: ProblemType(
        "insufficient-scope", 403, "The API key lacks the scope",
        "The key is valid, but it was not made for this part of Holdfast.",
        "Use a key with the scope that the answer names.",
    ),
    http.MalformedRequest: ProblemType(
        "malformed-request", 400, "The request is malformed",
        "The request as such cannot be read: it breaks the rules of HTTP, or carries two Authorization "
        "headers.",
        "Send one well-formed HTTP/1.1 request, with either a Content-Length or a chunked body.",
    ),
    http.MalformedBody: ProblemType(
        "malformed-body", 400, "The body is not JSON",
        "The body is not JSON in UTF-8 that every parser would read alike. A byte order mark, a name that "
        "is given twice in one object, NaN or Infinity, text after the value, extreme nesting and numbers of "
        "more than a thousand characters are refused as well.",
        "Send one JSON value as RFC 8259 describes it. The detail says where the fault is.",
    ),
    errors.InvalidInput: ProblemType(
        "invalid-input", 422, "The request is not valid",
        "The request could be read, but what it asks for is not possible in this form. Nothing was changed.",
        "`errors` lists every fault at once, each with a pointer to the place: `/priceSar` is a field of the "
        "body, `/path/slug` a part of the path, `/query/limit` a query parameter, `/header/…` a header.",
    ),
    http.UnsupportedMediaType: ProblemType(
        "unsupported-media-type", 415, "The content type is not supported",
        "Bodies are `application/json` in UTF-8; the bulk route takes `application/x-ndjson` too. Compressed "
        "bodies are not accepted.",
        "Set the header `Content-Type: application/json` and send no Content-Encoding.",
    ),
    http.BodyTooLarge: ProblemType(
        "body-too-large", 413, "The body is too large",
        "A body has at most 1 MiB, unless its operation names another limit; the bulk route takes 32 MiB and "
        "200 000 units. A query of more than 200 parameters or 16 KiB is refused in the same way.",
        "Send fewer units in one request. A layout may leave out those that stand where their code says.",
    ),
    http.MethodNotAllowed: ProblemType(
        "method-not-allowed", 405, "The method is not possible here",
        "The path exists, but it does not take this method.",
        "The header `Allow` lists the methods that it takes.",
    ),
    http.UnknownRoute: ProblemType(
        "not-found", 404, "There is nothing at this path",
        "No route of Holdfast has this path.",
        "`/docs` lists every route. A slash inside a unit code is written as `%2F`.",
    ),
    http.Forbidden: ProblemType(
        "not-permitted", 403, "Your role does not include this",
        "Somebody is signed in to the back office, and their role does not let them do this.",
        "Ask an admin for another role. What each role may do stands in the documentation.",
    ),
    http.ForeignForm: ProblemType(
        "foreign-form", 403, "The form is out of date",
        "Every form of our pages carries a token of the browser or session that it was made for. This one "
        "has none, or one of another. Or a page of another site has a browser hold a unit, and its origin is "
        "not in `HOLDFAST_CORS_ORIGINS`.",
        "Reload the page and send the form again; name the origin in that setting if its pages are yours.",
    ),
    errors.UnknownProject: ProblemType(
        "unknown-project", 404, "There is no such project",
        "No project has this slug, or the key is limited to other projects; the answer is the same on "
        "purpose.",
        "`GET /v1/integration/projects` lists the projects that the key may use.",
    ),
    errors.UnknownUnit: ProblemType(
        "unknown-unit", 404, "There is no such unit",
        "The project has no unit with this code. Codes are case-sensitive.",
        "Create the unit with PUT, or look its code up in the list of units.",
    ),
    errors.UnknownBooking: ProblemType(
        "unknown-booking", 404, "There is no such booking",
        "No booking has this reference, or the token or key is not one that opens it; the answer is the same "
        "on purpose.",
        "Check the reference for a misread character. A buyer who has lost the token gets a new one from "
        "staff.",
    ),
    errors.UnknownKey: ProblemType(
        "unknown-key", 404, "There is no such key",
        "No key has this id.",
        "`holdfast key list` lists the keys with their ids.",
    ),
    errors.UnknownEndpoint: ProblemType(
        "unknown-endpoint", 404, "There is no such endpoint",
        "No endpoint has this id, it was removed, or the key is limited to other projects; the answer is the "
        "same on purpose.",
        "`GET /v1/backoffice/endpoints` lists the endpoints that the key may see.",
    ),
    errors.UnknownDelivery: ProblemType(
        "unknown-delivery", 404, "There is no such delivery",
        "No delivery has this id, it ended too long ago to be kept in the log, or the key is limited to "
        "other projects.",
        "`GET /v1/backoffice/deliveries` lists the deliveries that the key may see.",
    ),
    errors.UnknownStaff: ProblemType(
        "unknown-staff", 404, "There is no such member of staff",
        "Nobody in the staff has this id or e-mail address.",
        "`GET /v1/backoffice/staff` lists the staff with their ids.",
    ),
    errors.InvalidSetupLink: ProblemType(
        "setup-link-refused", 404, "The set-up link is not valid",
        "The link is unknown, it was used, a newer one has taken its place, or it is older than a day. The "
        "answer is the same in all these cases on purpose.",
        "An admin makes a new one on the page of the staff, or with `holdfast staff reset`. The link for the "
        "first admin is printed at each start of `holdfast serve` while there is no staff.",
    ),
    errors.LoginFailed: ProblemType(
        "sign-in-refused", 422, "The sign-in was refused",
        "The e-mail address is unknown, the password or the code is wrong, or the account is disabled. The "
        "answer is the same in all these cases on purpose.",
        "Try again. An admin can give you a new set-up link.",
    ),
    errors.SecondFactorNeeded: ProblemType(
        "second-factor-needed", 422, "A code is needed",
        "This account has a second factor, and the password alone does not open it.",
        "Type the code that the authenticator app shows for Holdfast. Who has lost it asks an admin for a "
        "reset.",
    ),
    errors.StaffExists: ProblemType(
        "staff-exists", 409, "There is such a member of staff already",
        "Somebody in the staff has this e-mail address; capitals make no difference.",
        "Change the role of that person, or enable them again.",
    ),
    errors.LastAdmin: ProblemType(
        "last-admin", 409, "This is the last admin",
        "Without an admin who can sign in, nobody could administer the back office. Nothing was changed.",
        "Make somebody else an admin first.",
    ),
    errors.EndpointRemoved: ProblemType(
        "endpoint-removed", 409, "The endpoint was removed",
        "The delivery is still in the log, but its endpoint was removed, so there is nowhere to send it. "
        "Nothing was changed.",
        "Register the URL again if it is to receive events. What it missed is in the event feed.",
    ),
    errors.ProjectExists: ProblemType(
        "project-exists", 409, "The project exists already",
        "Another project has this slug.",
        "Choose another slug.",
    ),
    errors.PreconditionFailed: ProblemType(
        "precondition-failed", 412, "The unit is not in the state asked for",
        "The request was made for another state of the unit (If-Match, If-None-Match). Nothing was changed.",
        "Read the unit again, decide anew, and send the new ETag.",
    ),
    errors.StatusLocked: ProblemType(
        "status-locked", 409, "The status is locked",
        "While a unit is held, reserved or sold its status belongs to the buyer's booking, and a request "
        "that carries `status` is refused whole. Nothing was changed.",
        "Send the request without `status`, or wait: where a hold is what blocks, `Retry-After` says how "
        "long.",
    ),
    errors.TermsLocked: ProblemType(
        "terms-locked", 409, "The terms are locked",
        "While a buyer is mid-booking (the unit is held or reserved), price, deposit and VAT stand as the "
        "buyer saw them. A PUT that leaves one of them out would clear it, so that is refused too. Nothing "
        "changed.",
        "Leave these fields as they are, or wait for the end of the booking. `fields` names them.",
    ),
    errors.NotAvailable: ProblemType(
        "not-available", 409, "The unit is not available",
        "Somebody else holds or has bought the unit, or it is not on sale. One unit is never held twice.",
        "Choose another unit. Where a hold is what blocks, `holdExpiresAt` and `Retry-After` say when it "
        "ends.",
    ),
    errors.NotSigned: ProblemType(
        "not-signed", 409, "The buyer has not signed",
        "A deposit is confirmed after the buyer has signed, and this booking has no signature. Nothing "
        "changed.",
        "While the hold lives, let the buyer sign first. If money has arrived all the same, return it: "
        "Holdfast has not recorded it.",
    ),
    errors.HoldLapsed: ProblemType(
        "hold-lapsed", 409, "The hold has lapsed",
        "The time of the hold is over, to the millisecond of the database's clock.",
        "`currentStatus` says whether the unit is free again. If it is available, open it anew.",
    ),
    errors.PaymentUsed: ProblemType(
        "payment-used", 409, "The payment belongs to another booking",
        "A payment confirms the deposit of one booking, and this one has confirmed another. Nothing was "
        "changed.",
        "Report every payment with an id of its own, and with the reference that came to the payment page.",
    ),
    errors.IdempotencyKeyUsed: ProblemType(
        "idempotency-key-used", 409, "The Idempotency-Key was used",
        "A request with this `Idempotency-Key` was carried out already, and its response is not repeated: it "
        "is older than 60 seconds, belongs to another client, or the booking or endpoint has changed "
        "since. Nothing was changed.",
        "Look up what the first request has made: `id` names it, where the caller may see it. Send a new key "
        "with a new request.",
    ),
    errors.TransitionNotAllowed: ProblemType(
        "transition-not-allowed", 409, "The status does not allow it",
        "The action is not possible from the present status, or not for this caller. An archived unit is put "
        "on sale again by staff only, so that a nightly sync cannot undo their decision.",
        "`currentStatus` is the status of the unit. Where waiting for the end of a hold helps, "
        "`holdExpiresAt` and `Retry-After` say when it ends.",
    ),
    errors.CursorExpired: ProblemType(
        "cursor-expired", 410, "The cursor is too old",
        "The events that would follow this cursor are no longer kept.",
        "Read all units of your projects once (`GET …/units`), then start the feed again without a cursor.",
    ),
    errors.TooManyRequests: ProblemType(
        "too-many-requests", 429, "Too many requests",
        "The key, or without one the network address, has sent more requests than its limit allows. Or the "
        "address has sent too many wrong keys.",
        "Wait for the seconds in `Retry-After`. Many units go in one request through the bulk route.",
    ),
    errors.TooManyAttempts: ProblemType(
        "too-many-attempts", 429, "Too many attempts to sign in",
        "For this account, or from this network address, too many sign-ins have failed.",
        "Wait for the seconds in `Retry-After`. Whoever is signed in stays so.",
    ),
    errors.TooManyHolds: ProblemType(
        "too-many-holds", 429, "Too many units are held",
        "One visitor and one network address may hold so many units at a time, so that nobody takes a whole "
        "building hostage.",
        "Cancel a hold, or wait for the seconds in `Retry-After`, when the next one ends.",
    ),
    errors.HeldTooRecently: ProblemType(
        "held-too-recently", 429, "Your hold of this unit has just lapsed",
        "After a hold has lapsed, others have a moment to open the unit before the same visitor may again.",
        "Wait for the seconds in `Retry-After`.",
    ),
    errors.DatabaseUnavailable: ProblemType(
        "database-away", 503, "The database is away",
        "The database cannot be reached at this moment. No change is ever half done.",
        "Repeat the request after the seconds in `Retry-After`. That is safe with PUT, PATCH and a deposit; "
        "with a hold only if it has an `Idempotency-Key`. Before any other POST, look whether it was done "
        "after all.",
    ),
    errors.Overloaded: ProblemType(
        "overloaded", 503, "Too much is waiting",
        "Too many changes wait to be stored, this one has waited too long, or bulk bodies take all the "
        "memory that there is for them. Nothing of the request was stored.",
        "Repeat the request after the seconds in `Retry-After`, which differ from response to response.",
    ),
    errors.SchemaNotCurrent: ProblemType(
        "schema-not-current", 503, "The schema is not current",
        "The database is reached, but its schema is older or newer than those that this release works with.",
        "Run `holdfast migrate` with the newest release, and restart the processes of an older one.",
    ),
    errors.SecretsUnreadable: ProblemType(
        "secrets-unreadable", 503, "The signing secrets cannot be read",
        "None of the encryption keys of this installation opens the signing secret of an endpoint.",
        "Whoever runs Holdfast names the key that sealed the secrets in `HOLDFAST_ENCRYPTION_KEYS`, beside "
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
_REASON = {
    "enum": [*(kind.reason for kind in errors.Conflict.__subclasses__()), errors.EndpointRemoved.reason]
}
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


def problem_document(failure: Exception, request_id: str) -> dict[str, Any]:
    kind = problem_type(failure)
    document: dict[str, Any] = {
        "type": kind.path,
        "title": kind.title,
        "status": kind.status,
        "detail": str(failure) if isinstance(failure, errors.DomainError) else kind.explanation,
        "requestId": request_id,
    }
    if isinstance(failure, errors.InvalidInput):
        document["errors"] = [
            {"pointer": fault.pointer, "message": str(fault.message)} for fault in failure.faults
        ]
    if isinstance(failure, errors.Conflict | errors.EndpointRemoved):
        document["reason"] = failure.reason
    if isinstance(failure, errors.Conflict):
        if failure.status is not None:
            document["currentStatus"] = failure.status
        if failure.hold_expires_at is not None:
            document["holdExpiresAt"] = time_text(failure.hold_expires_at)
        if failure.fields:
            document["fields"] = [camel_case(name) for name in failure.fields]
    if isinstance(failure, errors.IdempotencyKeyUsed) and failure.made_id is not None:
        document["id"] = failure.made_id
    return document


def problem_response(failure: Exception, request_id: str) -> JsonResponse:
    """Return the response for an error, with as many of its faults as it has room for."""
    document = problem_document(failure, request_id)
    document["detail"] = _clip(document["detail"], _LONGEST_DETAIL)
    faults, shown = document.pop("errors", ()), _FAULTS_SHOWN
    while True:
        if faults:
            document["errors"] = [
                {**fault, "pointer": _clip(fault["pointer"], _LONGEST_POINTER)} for fault in faults[:shown]
            ]
        if len(faults) > shown:
            document["errors"].append({"pointer": "", "message": f"And {len(faults) - shown} more."})
        response = JsonResponse(document, document["status"], problem_headers(failure), MEDIA_TYPE)
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
