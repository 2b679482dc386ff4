"""Endpoints and deliveries as JSON, in the back office and at the console."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from holdfast.domain import endpoint as domain
from holdfast.domain.delivery import Attempt, Delivery, DeliveryStatus, Trigger
from holdfast.domain.endpoint import Endpoint, EndpointState, IssuedSecret
from holdfast.domain.event import EventName
from holdfast.domain.wire_format import format_timestamp
from holdfast.operations.documents import Count, Document, Time

METHOD = "POST"

_Milliseconds = Annotated[float, Meta(ge=0)]
_StatusCode = Annotated[int, Meta(ge=100, le=999)]
_SentEvent = Annotated[
    str,
    "The event, or `ping`.",
    Meta(extra_json_schema={"enum": [str(name) for name in domain.SENT_EVENTS]}),
]
_Headers = Annotated[dict[str, str | list[str]], "A name that came more than once has a list of values."]


class EndpointTroubleDocument(Document):
    """Why nothing arrives at an endpoint."""

    since: Time
    cause: Annotated[str, "Why the last attempt failed, in plain words."]
    gone_at: Annotated[Time | None, "When the receiver answered 410; null if it did not."]


class EndpointDocument(Document):
    """A URL that is registered to receive events."""

    id: Annotated[UUID, "The endpoint's id."]
    url: Annotated[str, "Where events are sent."]
    description: Annotated[str, "What the endpoint is for."]
    events: Annotated[tuple[EventName, ...], "The events that it receives."]
    projects: Annotated[
        tuple[str, ...] | None,
        "The slugs of the projects whose events it receives; null for every project, future ones included.",
    ]
    paused: Annotated[bool, "Whether events are kept and not sent."]
    ordered: Annotated[
        bool,
        "Whether a later event of a unit waits until the earlier one was delivered, has "
        "failed or was cancelled. Otherwise only first attempts keep the order of a unit's events.",
    ]
    max_in_flight: Annotated[
        int,
        "How many attempts may run at the same time, over all workers.",
        Meta(ge=domain.MIN_IN_FLIGHT, le=domain.MAX_IN_FLIGHT),
    ]
    state: Annotated[
        EndpointState,
        "`failing`: nothing has arrived for a day, or the receiver answered 410. Events are "
        "sent all the same.",
    ]
    failing: Annotated[
        EndpointTroubleDocument | None,
        "Since when no attempt has succeeded, and why; null if the last one succeeded.",
    ]
    secret_id: Annotated[
        UUID,
        "The id of the current signing secret. Each attempt names the one that signed it.",
    ]
    secret_rotated_at: Annotated[Time, "When the current signing secret was made."]
    created_at: Time
    updated_at: Time


class EndpointWithSecretDocument(EndpointDocument):
    """An endpoint with its signing secret."""

    secret: Annotated[str, "The signing secret. It is in this response and in no other."]


class DeliveryDocument(Document):
    """One event for one endpoint."""

    id: Annotated[UUID, "Equal to `id` in the body and to the header `X-Service-Delivery`, on every attempt."]
    event: _SentEvent
    endpoint_id: UUID
    unit_code: Annotated[str | None, "The code of the unit; null for a ping."]
    status: Annotated[
        DeliveryStatus,
        "`pending`: still to be sent, or to be retried. `failed`: the last attempt of its "
        "series failed. `cancelled`: it will not be sent, and `reason` says why.",
    ]
    created_at: Annotated[Time, "When the unit changed, or the ping was asked for."]
    next_attempt_at: Annotated[
        Time | None,
        "When its next attempt is due; null unless it is pending. It may be past on a paused "
        "endpoint. A delivery that waits for an earlier event of its unit may be sent before it.",
    ]
    ended_at: Annotated[
        Time | None,
        "When it was delivered, failed or was cancelled; null while it is pending.",
    ]
    reason: Annotated[str | None, "Why it was cancelled; null unless it was."]
    attempt_count: Annotated[Count, "How many attempts there were, over all series."]
    last_status_code: Annotated[
        _StatusCode | None, "The status of the last response; null if there was none."
    ]
    last_cause: Annotated[str | None, "Why the last attempt failed, in plain words; null if it did not."]


class AttemptTimingsDocument(Document):
    """How long each phase took; null where there was none, as on a reused connection."""

    dns_ms: _Milliseconds | None
    connect_ms: _Milliseconds | None
    tls_ms: _Milliseconds | None
    first_byte_ms: Annotated[
        _Milliseconds | None,
        "From the end of the request to the first byte of the response.",
    ]


class AttemptRequestDocument(Document):
    """What was sent; no headers if the request was never written."""

    method: Annotated[str, Meta(extra_json_schema={"const": METHOD})]
    url: str
    headers: _Headers
    body: str


class AttemptResponseDocument(Document):
    """What the receiver answered."""

    status_code: _StatusCode
    headers: _Headers
    body: Annotated[str, "The first 16 KiB as UTF-8 text; other bytes are replaced."]
    body_base64: Annotated[str | None, "The same bytes in base64 where they are not UTF-8; otherwise null."]
    clipped: Annotated[bool, "Whether there was more, or may have been."]


class AttemptDocument(Document):
    """One POST of a delivery."""

    number: Annotated[int, "Counted from 1 over all series.", Meta(ge=1)]
    trigger: Annotated[
        Trigger,
        "`first`: the first attempt of the delivery. `retry`: after one that failed. "
        "`resend`: the first of a new series.",
    ]
    started_at: Time
    ended_at: Time
    duration_ms: Annotated[_Milliseconds, "From the start of name resolution to the end."]
    status_code: Annotated[_StatusCode | None, "The status of the response; null if there was none."]
    cause: Annotated[str | None, "Why it failed, in plain words; null if it was delivered."]
    secret_id: Annotated[
        UUID | None,
        "The id of the secret that signed it; null if the request was never written.",
    ]
    address: Annotated[str | None, "The address that was contacted; null if none was."]
    timings: AttemptTimingsDocument
    request: AttemptRequestDocument
    response: Annotated[AttemptResponseDocument | None, "The receiver's response; null if there was none."]


class DeliveryWithAttemptsDocument(DeliveryDocument):
    """A delivery with its body and its attempts."""

    body: Annotated[str, "The body as it is sent, the same bytes on every attempt."]
    attempts: Annotated[list[AttemptDocument], "In the order in which they were made."]


def endpoint_document(endpoint: Endpoint) -> EndpointDocument:
    return EndpointDocument.fill(endpoint, **_config_fields(endpoint))


def endpoint_with_secret_document(issued: IssuedSecret) -> EndpointWithSecretDocument:
    endpoint = issued.endpoint
    return EndpointWithSecretDocument.fill(endpoint, **_config_fields(endpoint), secret=issued.text)


def delivery_document(delivery: Delivery) -> DeliveryDocument:
    return DeliveryDocument.fill(delivery, attempt_count=delivery.attempts)


def delivery_with_attempts_document(
    delivery: Delivery, attempts: Sequence[Attempt]
) -> DeliveryWithAttemptsDocument:
    return DeliveryWithAttemptsDocument.fill(
        delivery,
        attempt_count=delivery.attempts,
        attempts=[_attempt_document(attempt, delivery.body) for attempt in attempts],
    )


def _config_fields(endpoint: Endpoint) -> dict[str, Any]:
    config = endpoint.config._asdict()
    config["projects"] = config.pop("project_slugs")
    failure = endpoint.failure
    return {
        **config,
        "failing": None if failure is None else EndpointTroubleDocument.fill(failure),
        "secret_rotated_at": format_timestamp(endpoint.secret_made_at),
    }


def _attempt_document(attempt: Attempt, body: str) -> AttemptDocument:
    return AttemptDocument.fill(
        attempt,
        duration_ms=_rounded(attempt.duration_ms),
        timings=AttemptTimingsDocument(
            *map(_rounded, (attempt.dns_ms, attempt.connect_ms, attempt.tls_ms, attempt.first_byte_ms))
        ),
        request=AttemptRequestDocument(METHOD, attempt.url, _headers_document(attempt.request_headers), body),
        response=_response_document(attempt),
    )


def _response_document(attempt: Attempt) -> AttemptResponseDocument | None:
    if attempt.status_code is None:
        return None
    encoded = None
    try:
        body = attempt.response_body.decode()
    except UnicodeDecodeError:
        body = attempt.response_body.decode(errors="replace")
        encoded = base64.b64encode(attempt.response_body).decode()
    headers = _headers_document(attempt.response_headers)
    return AttemptResponseDocument(attempt.status_code, headers, body, encoded, attempt.response_clipped)


def _headers_document(headers: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    by_name: dict[str, list[str]] = {}
    for name, value in headers:
        by_name.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in by_name.items()}


def _rounded(milliseconds: float | None) -> Any:
    """The database keeps seven digits; those after the third decimal are noise."""
    return None if milliseconds is None else round(milliseconds, 3)
