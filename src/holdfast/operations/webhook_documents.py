"""Endpoints and deliveries as JSON tells them, alike in the back office and at the console."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.delivery import Delivery
from holdfast.domain.endpoint import Endpoint, IssuedSecret, Trouble, state_of
from holdfast.domain.message import optional_text
from holdfast.domain.spelling import moment_text
from holdfast.operations.deliveries import Attempt

METHOD = "POST"


def endpoint_document(endpoint: Endpoint) -> dict[str, Any]:
    wishes = endpoint.wishes
    return {
        "id": str(endpoint.id),
        "url": wishes.url,
        "description": wishes.description,
        "events": list(wishes.events),
        "projects": None if wishes.project_slugs is None else list(wishes.project_slugs),
        "paused": wishes.paused,
        "ordered": wishes.ordered,
        "maxInFlight": wishes.max_in_flight,
        "state": state_of(endpoint),
        "failing": _trouble_document(endpoint.trouble),
        "secretId": str(endpoint.secret_id),
        "secretRotatedAt": moment_text(endpoint.secret_made_at),
        "createdAt": moment_text(endpoint.created_at),
        "updatedAt": moment_text(endpoint.updated_at),
    }


def issued_document(issued: IssuedSecret) -> dict[str, Any]:
    """With the secret, this once."""
    return {**endpoint_document(issued.endpoint), "secret": issued.text}


def delivery_document(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": str(delivery.id),
        "event": delivery.event,
        "endpointId": str(delivery.endpoint_id),
        "unitCode": delivery.unit_code,
        "status": delivery.status,
        "createdAt": moment_text(delivery.created_at),
        "nextAttemptAt": _optional_time(delivery.next_attempt_at),
        "endedAt": _optional_time(delivery.ended_at),
        "reason": delivery.reason,
        "attemptCount": delivery.attempts,
        "lastStatusCode": delivery.last_status_code,
        "lastCause": optional_text(delivery.last_cause),
    }


def told_document(delivery: Delivery, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """A delivery with all that is known of it."""
    return {
        **delivery_document(delivery),
        "body": delivery.body,
        "attempts": [_attempt_document(attempt, delivery.body) for attempt in attempts],
    }


def _attempt_document(attempt: Attempt, body: str) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "trigger": attempt.trigger,
        "startedAt": moment_text(attempt.started_at),
        "endedAt": moment_text(attempt.ended_at),
        "durationMs": _milliseconds(attempt.duration_ms),
        "statusCode": attempt.status_code,
        "cause": optional_text(attempt.cause),
        "secretId": None if attempt.secret_id is None else str(attempt.secret_id),
        "address": attempt.address,
        "timings": _timings_document(attempt),
        "request": {
            "method": METHOD,
            "url": attempt.url,
            "headers": _headers_document(attempt.request_headers),
            "body": body,
        },
        "response": None if attempt.status_code is None else _response_document(attempt),
    }


def _timings_document(attempt: Attempt) -> dict[str, float | None]:
    return {
        "dnsMs": _milliseconds(attempt.dns_ms),
        "connectMs": _milliseconds(attempt.connect_ms),
        "tlsMs": _milliseconds(attempt.tls_ms),
        "firstByteMs": _milliseconds(attempt.first_byte_ms),
    }


def _response_document(attempt: Attempt) -> dict[str, Any]:
    body = attempt.response_body
    return {
        "statusCode": attempt.status_code,
        "headers": _headers_document(attempt.response_headers),
        "body": body.decode(errors="replace"),
        "bodyBase64": None if _is_text(body) else base64.b64encode(body).decode(),
        "clipped": attempt.response_clipped,
    }


def _headers_document(headers: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """A name that came more than once has a list of values."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _trouble_document(trouble: Trouble | None) -> dict[str, Any] | None:
    if trouble is None:
        return None
    return {
        "since": moment_text(trouble.since),
        "cause": str(trouble.cause),
        "goneAt": _optional_time(trouble.gone_at),
    }


def _optional_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment_text(moment)


def _milliseconds(value: float | None) -> float | None:
    # The database keeps seven digits of it; those behind are noise.
    return None if value is None else round(value, 3)
