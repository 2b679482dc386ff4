"""Every problem of the API description, as an answer carries it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.domain import refusals
from holdfast.domain.refusals import Fault, Refusal
from holdfast.domain.spelling import moment_text
from holdfast.domain.status import Status
from holdfast.web import refusals as http
from holdfast.web.call import BODY_LIMIT, JSON
from holdfast.web.openapi.example_unit import (
    DELIVERY_ID,
    ENDPOINT_ID,
    HOLD_ENDS,
    NOW,
    PROJECT,
    REFERENCE,
    REQUEST_ID,
    UNIT,
    as_json,
)
from holdfast.web.problems import problem_document, problem_type
from holdfast.web.public_guard import ADDRESS_OVER_LIMIT

_FAILURES: tuple[Exception, ...] = (
    refusals.NoCredentials(),
    refusals.KeyRefused(),
    refusals.SignatureRefused(
        "The timestamp is more than 300 seconds from now: sign anew, or set the clock."
    ),
    refusals.ScopeMissing("integration"),
    refusals.InvalidInput(
        [
            Fault("/priceSar", "This must have at most 2 decimals."),
            Fault("/color", "There is no field of this name."),
        ]
    ),
    refusals.UnknownProject(PROJECT.slug),
    refusals.UnknownUnit(PROJECT.slug, UNIT.code),
    refusals.UnknownBooking(REFERENCE),
    refusals.UnknownKey(PROJECT.id),
    refusals.UnknownEndpoint(ENDPOINT_ID),
    refusals.UnknownDelivery(DELIVERY_ID),
    refusals.PreconditionFailed("8a-1"),
    refusals.StatusLocked(
        "The status cannot be set while the unit is held.", Status.HELD, ["status"], HOLD_ENDS, NOW
    ),
    refusals.TermsLocked(
        "Price, deposit and VAT cannot change while a buyer is mid-booking.",
        Status.HELD, ["price_sar"], HOLD_ENDS, NOW,
    ),
    refusals.NotAvailable(
        "The unit is held. If the hold is yours, send its token.", Status.HELD, (), HOLD_ENDS, NOW
    ),
    refusals.NotSigned(
        f"The buyer has not signed yet; the hold ends at {moment_text(HOLD_ENDS)}.", Status.HELD
    ),
    refusals.HoldLapsed("The hold has lapsed. The unit is free again.", Status.AVAILABLE),
    refusals.TransitionNotAllowed("put-on-sale", Status.UNAVAILABLE, True),
    refusals.ProjectExists(PROJECT.slug),
    refusals.SignInRefused(),
    refusals.SecondFactorNeeded("ticket"),
    refusals.UnknownStaff("sara@example.com"),
    refusals.SetupLinkRefused(),
    refusals.StaffExists("sara@example.com"),
    refusals.LastAdmin(),
    refusals.TooManyAttempts(60.0),
    refusals.EndpointRemoved(),
    refusals.CursorExpired(),
    refusals.TooManyRequests(1),
    refusals.TooManyHolds("This visitor holds 3 units already, and 3 is the most at a time.", 212),
    refusals.HeldTooRecently("Your hold of this unit has just lapsed; wait for a moment.", 41),
    refusals.DatabaseAway(),
    refusals.SchemaNotCurrent(),
    refusals.SecretsUnreadable(),
    http.MalformedBody("The body is not JSON: Expecting value (character 12)."),
    http.TwoCredentials(),
    http.BodyTooLarge(BODY_LIMIT),
    http.UnsupportedMediaType((JSON,)),
    http.MethodNotAllowed("DELETE", ("GET", "PUT", "PATCH", "HEAD")),
    http.UnknownRoute(),
    http.NotYours(),
    http.ForeignForm(),
    Exception(),
)  # fmt: skip

# Where the answer of one name tells the same problem in words of its own.
_IN_OTHER_WORDS: dict[str, tuple[Refusal, ...]] = {
    "NoToken": (
        refusals.NoCredentials("Send the token that came with the hold as `Authorization: Bearer <token>`."),
    ),
    "HoldRefused": (
        refusals.HoldLapsed("The hold of this Idempotency-Key has lapsed.", Status.AVAILABLE),
        refusals.TransitionNotAllowed(
            "open", Status.AVAILABLE, detail="The booking of this Idempotency-Key is cancelled."
        ),
    ),
    "ForbiddenInBackOffice": (refusals.ScopeMissing("backoffice"),),
    "ForbiddenToPayments": (refusals.ScopeMissing("payments"),),
    "ForbiddenToStaff": (refusals.ScopeMissing("admin"),),
    "ForeignSite": (http.ForeignSite(),),
    "BuyerRefused": (
        refusals.TransitionNotAllowed(
            "sign", Status.RESERVED, detail="`sign` is not possible: the booking is reserved."
        ),
    ),
    "ActionRefused": (
        refusals.TransitionNotAllowed("open", Status.HELD, False, HOLD_ENDS, NOW, others_may=False),
    ),
    "BookingRefused": (
        refusals.TransitionNotAllowed(
            "extend", Status.AVAILABLE, detail="`extend` is not possible: the booking is lapsed."
        ),
    ),
    "DepositRefused": (refusals.TransitionNotAllowed("confirm-deposit", Status.AVAILABLE, others_may=False),),
    "PaymentRefused": (
        refusals.TransitionNotAllowed(
            "confirm-deposit",
            Status.RESERVED,
            detail="The deposit was paid by the payment pay_123: pay pay_124 back to the buyer.",
        ),
    ),
    "TooManyFromAddress": (refusals.TooManyRequests(1, ADDRESS_OVER_LIMIT),),
    "TooManyHolds": (refusals.TooManyRequests(1, ADDRESS_OVER_LIMIT),),
}


def _documents(failures: Iterable[Exception]) -> dict[str, Any]:
    return {
        problem_type(failure).name: as_json(problem_document(failure, REQUEST_ID)) for failure in failures
    }


_PROBLEMS = _documents(_FAILURES)


def problem(name: str, answer: str = "") -> dict[str, Any]:
    """The problem of this name, as an answer carries it; ``answer``: the name of one with its own words."""
    documents = _PROBLEMS | _documents(_IN_OTHER_WORDS.get(answer, ()))
    document: dict[str, Any] = documents[name]
    return document
