"""A webhook receiver: it verifies the raw bytes first, then parses them and looks for repeated deliveries."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from holdfast.domain.signature import SignatureProblem, verify

KEPT_DELIVERIES = 200


class Content(NamedTuple):
    """The parsed body. All fields are None if it is unreadable, most if it is a ping."""

    event: str | None = None
    unit_code: str | None = None
    previous_status: str | None = None
    status: str | None = None
    booking_reference: str | None = None


class ReceivedDelivery(NamedTuple):
    number: int
    """Counts from 1, in the order of arrival."""
    received_at: datetime
    headers: Mapping[str, str]
    body: bytes
    content: Content
    signature_error: SignatureProblem | None
    is_repeated: bool
    """A verified delivery with the same id came before: this is a retry or was resent."""
    status: HTTPStatus

    @property
    def body_text(self) -> str:
        """The signed bytes as they are, not reformatted."""
        return self.body.decode(errors="replace")


class WebhookReceiver:
    """Receives deliveries and keeps the latest ones for its page."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._deliveries: deque[ReceivedDelivery] = deque(maxlen=KEPT_DELIVERIES)
        self._changed = asyncio.Event()
        self.is_closed = False
        self.fails_next = False
        """Answer the next delivery with 500, so that its retry can be watched."""

    @property
    def latest_number(self) -> int:
        return self._deliveries[-1].number if self._deliveries else 0

    def receive(self, headers: Mapping[str, str], body: bytes) -> HTTPStatus:
        """Return the status to answer with. A real receiver answers first and does its work afterwards."""
        error = verify(
            self._secret,
            headers.get("x-service-timestamp"),
            headers.get("x-service-signature"),
            body,
            time.time(),
        )
        delivery = ReceivedDelivery(
            self.latest_number + 1,
            datetime.now(UTC),
            headers,
            body,
            parse_content(body),
            error,
            self._is_known(headers.get("x-service-delivery", "")),
            self._response_status(error),
        )
        self._deliveries.append(delivery)
        self._notify()
        return delivery.status

    def deliveries_after(self, number: int) -> list[ReceivedDelivery]:
        return [delivery for delivery in self._deliveries if delivery.number > number]

    async def wait_for_delivery(self) -> None:
        await self._changed.wait()

    def close(self) -> None:
        self.is_closed = True
        self._notify()

    def _is_known(self, delivery_id: str) -> bool:
        return any(
            delivery.headers.get("x-service-delivery", "") == delivery_id and delivery.signature_error is None
            for delivery in self._deliveries
        )

    def _response_status(self, error: SignatureProblem | None) -> HTTPStatus:
        if error is not None:
            return HTTPStatus.UNAUTHORIZED
        fails, self.fails_next = self.fails_next, False
        return HTTPStatus.INTERNAL_SERVER_ERROR if fails else HTTPStatus.OK

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def parse_content(body: bytes) -> Content:
    """Parse bytes from anybody: the page also shows deliveries whose signature is wrong."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return Content()
    data = _object(_object(document).get("data"))
    unit, booking = _object(data.get("unit")), _object(data.get("booking"))
    return Content(
        _text(_object(document).get("type")),
        _text(unit.get("code")),
        _text(unit.get("previousStatus")),
        _text(unit.get("status")),
        _text(booking.get("reference")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    """Replace lone surrogates, which JSON can contain and no page can show."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None
