"""One sample of every problem, as a response carries it."""

from __future__ import annotations

from typing import Any

from holdfast.domain import errors
from holdfast.domain.errors import Fault
from holdfast.domain.spelling import moment_text
from holdfast.domain.status import Status
from holdfast.web import http_errors as http
from holdfast.web.openapi.samples import (
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
from holdfast.web.problems import problem_document, problem_headers, problem_type
from holdfast.web.request import BODY_LIMIT, JSON

_SAMPLES: tuple[Exception, ...] = (
    errors.NoCredentials(),
    errors.KeyRefused(),
    errors.SignatureRefused(
        "The timestamp is more than 300 seconds from now: sign anew, or set the clock."
    ),
    errors.ScopeMissing("integration"),
    errors.InvalidInput(
        [
            Fault("/priceSar", "This must have at most 2 decimals."),
            Fault("/color", "There is no field of this name."),
        ]
    ),
    errors.UnknownProject(PROJECT.slug),
    errors.UnknownUnit(PROJECT.slug, UNIT.code),
    errors.UnknownBooking(REFERENCE),
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
        f"The buyer has not signed yet; the hold ends at {moment_text(HOLD_ENDS)}.", Status.HELD
    ),
    errors.HoldLapsed("The hold has lapsed. The unit is free again.", Status.AVAILABLE),
    errors.TransitionNotAllowed("open", Status.HELD, False, HOLD_ENDS, NOW, others_may=False),
    errors.ProjectExists(PROJECT.slug),
    errors.SignInRefused(),
    errors.SecondFactorNeeded("ticket"),
    errors.UnknownStaff("sara@example.com"),
    errors.SetupLinkRefused(),
    errors.StaffExists("sara@example.com"),
    errors.LastAdmin(),
    errors.TooManyAttempts(60.0),
    errors.EndpointRemoved(),
    errors.CursorExpired(),
    errors.TooManyRequests(1),
    errors.TooManyHolds("This visitor holds 3 units already, and 3 is the most at a time.", 212),
    errors.HeldTooRecently("Your hold of this unit has just lapsed; wait for a moment.", 41),
    errors.DatabaseAway(),
    errors.SchemaNotCurrent(),
    errors.SecretsUnreadable(),
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

_SAMPLE_OF = {problem_type(sample).name: sample for sample in _SAMPLES}


def sample_problem(name: str) -> dict[str, Any]:
    """The problem of this name, as a response carries it."""
    document: dict[str, Any] = as_json(problem_document(_SAMPLE_OF[name], REQUEST_ID))
    return document


def sample_headers(name: str) -> list[str]:
    """The headers that a response with this problem can carry, in lower case."""
    return [header.decode() for header, _ in problem_headers(_SAMPLE_OF[name])]
