"""Examples of webhooks: an endpoint, and a delivery that arrived at the second attempt."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.domain.delivery import Delivery, DeliveryStatus, Trigger
from holdfast.domain.endpoint import PING, Endpoint, IssuedSecret, Wishes
from holdfast.domain.event import EventName
from holdfast.domain.signature import sign
from holdfast.operations.deliveries import Attempt, Reconciliation, Tally
from holdfast.operations.webhook_documents import (
    delivery_document,
    endpoint_document,
    issued_document,
    told_document,
)
from holdfast.web.backoffice.deliveries import reconciliation_document
from holdfast.web.openapi import examples as examples
from holdfast.web.openapi.example_unit import DELIVERY_ID, ENDPOINT_ID, NOW, UNIT, as_json
from holdfast.web.wire import encode, time_text

URL = "https://erp.example.com/holdfast/events"

_SECRET_ID = UUID("1d5b7c86-0f35-4a1f-9d8e-7c2b6a4f9e03")
_SECRET = "hfs_" + "dGhpcyBpcyBubyBzZWNyZXQ" * 2
_CAUSE = "The receiver answered 503."
_GAP = timedelta(seconds=30)


def _endpoint() -> Endpoint:
    wishes = Wishes(URL, "Our ERP", (EventName.HELD, EventName.RELEASED, EventName.SOLD))
    return Endpoint(ENDPOINT_ID, wishes, _SECRET_ID, NOW, None, NOW, NOW, NOW)


def endpoint() -> Any:
    return as_json(endpoint_document(_endpoint()))


def endpoint_with_secret() -> Any:
    return as_json(issued_document(IssuedSecret(_endpoint(), _SECRET)))


def new_endpoint() -> dict[str, Any]:
    return {"url": URL, "description": "Our ERP", "events": endpoint()["events"]}


def _delivery() -> Delivery:
    told = {**examples.event(EventName.HELD), "id": str(DELIVERY_ID)}
    return Delivery(
        id=DELIVERY_ID,
        endpoint_id=ENDPOINT_ID,
        event=EventName.HELD,
        unit_code=UNIT.code,
        status=DeliveryStatus.DELIVERED,
        reason=None,
        created_at=NOW,
        next_attempt_at=None,
        ended_at=NOW + _GAP + timedelta(milliseconds=87),
        attempts=2,
        last_status_code=204,
        last_cause=None,
        body=encode(told).decode(),
    )


def delivery() -> Any:
    return as_json(delivery_document(_delivery()))


def delivery_with_attempts() -> Any:
    attempts = [
        _attempt(1, Trigger.FIRST, NOW, 503, (12.4, 21.7, 40.2, 18.3), _CAUSE),
        _attempt(2, Trigger.RETRY, NOW + _GAP, 204, (None, None, None, 80.4), None),
    ]
    return as_json(told_document(_delivery(), attempts))


def resent_delivery() -> Any:
    """The same again: another series begins."""
    made = _delivery()._replace(
        status=DeliveryStatus.PENDING, next_attempt_at=NOW + timedelta(hours=1), ended_at=None
    )
    return {**delivery_with_attempts(), **as_json(delivery_document(made))}


def ping_delivery() -> Any:
    made = _delivery()._replace(
        event=PING, unit_code=None, status=DeliveryStatus.PENDING, next_attempt_at=NOW, ended_at=None,
        attempts=0, last_status_code=None, body=encode({**examples.ping(), "id": str(DELIVERY_ID)}).decode(),
    )  # fmt: skip
    return as_json(told_document(made, ()))


def recovery() -> dict[str, Any]:
    return {"since": time_text(NOW), "events": ["unit.sold"]}


def recovered(*, is_dry: bool) -> dict[str, Any]:
    return {"count": 42, "dryRun": is_dry, "since": time_text(NOW), "until": None}


def reconciliation() -> Any:
    tally = Tally(events=1204, delivered=1197, pending=4, failed=2, cancelled=1, forgotten=0, missing=0)
    return as_json(reconciliation_document(Reconciliation(0, 5120, tally), ENDPOINT_ID))


def _attempt(
    number: int,
    trigger: Trigger,
    started_at: datetime,
    status_code: int,
    timings: tuple[float | None, float | None, float | None, float],
    cause: str | None,
) -> Attempt:
    duration = sum(part for part in timings if part is not None)
    return Attempt(
        DELIVERY_ID, number, trigger, started_at, started_at + timedelta(milliseconds=duration), duration,
        *timings, URL, _request_headers(started_at), _SECRET_ID, "203.0.113.20", status_code,
        [("Content-Length", "0")], b"", False, cause,
    )  # fmt: skip


def _request_headers(at: datetime) -> list[tuple[str, str]]:
    body, timestamp = _delivery().body.encode(), int(at.timestamp())
    return [
        ("Host", "erp.example.com"),
        ("Content-Type", "application/json"),
        ("User-Agent", "Service-Webhooks/1"),
        ("X-Service-Event", "unit.held"),
        ("X-Service-Delivery", str(DELIVERY_ID)),
        ("X-Service-Timestamp", str(timestamp)),
        ("X-Service-Signature", sign(_SECRET, timestamp, body)),
        ("Content-Length", str(len(body))),
    ]
