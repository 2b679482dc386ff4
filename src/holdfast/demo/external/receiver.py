"""A webhook receiver: it verifies the raw bytes first, then parses them and looks for repeated deliveries."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from holdfast.domain.signature import SignatureProblem, verify

KEPT_DELIVERIES = 200


class Unit(msgspec.Struct, rename="camel"):
    code: str
    previous_status: str
    status: str


class Booking(msgspec.Struct):
    reference: str


class Data(msgspec.Struct):
    unit: Unit | None = None
    booking: Booking | None = None


class Event(msgspec.Struct):
    """The body of a delivery. A ping has no data."""

    type: str
    data: Data | None = None


class ReceivedDelivery(NamedTuple):
    number: int
    received_at: datetime
    headers: Mapping[str, str]
    body: bytes
    event: Event | None
    signature_error: SignatureProblem | None
    is_repeated: bool
    """A verified delivery with the same id came before: this is a retry or was resent."""
    status: HTTPStatus

    @property
    def body_text(self) -> str:
        """The signed bytes as they are, not reformatted."""
        return self.body.decode(errors="replace")


class WebhookReceiver:
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
        timestamp, signature = headers.get("x-service-timestamp"), headers.get("x-service-signature")
        error = verify(self._secret, timestamp, signature, body, time.time())
        status = HTTPStatus.OK if error is None else HTTPStatus.UNAUTHORIZED
        if error is None and self.fails_next:
            self.fails_next, status = False, HTTPStatus.INTERNAL_SERVER_ERROR
        delivery_id = headers.get("x-service-delivery", "")
        is_repeated = any(
            delivery.headers.get("x-service-delivery", "") == delivery_id and delivery.signature_error is None
            for delivery in self._deliveries
        )
        number, now = self.latest_number + 1, datetime.now(UTC)
        event = parse_event(body)
        delivery = ReceivedDelivery(number, now, headers, body, event, error, is_repeated, status)
        self._deliveries.append(delivery)
        self._notify()
        return status

    def deliveries_after(self, number: int) -> list[ReceivedDelivery]:
        return [delivery for delivery in self._deliveries if delivery.number > number]

    async def wait_for_delivery(self) -> None:
        await self._changed.wait()

    def close(self) -> None:
        self.is_closed = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def parse_event(body: bytes) -> Event | None:
    """Parse bytes from anybody: the page also shows deliveries whose signature is wrong."""
    try:
        return msgspec.json.decode(body, type=Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
