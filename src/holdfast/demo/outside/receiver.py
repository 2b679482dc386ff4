"""A receiver of webhooks: first it verifies the raw bytes, then it reads them and looks for repetitions."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from holdfast.domain.signature import Reason, verify

KEPT = 200


class Content(NamedTuple):
    """What a delivery tells; all of it is None in a body that cannot be read, and most in a ping."""

    event: str | None = None
    unit_code: str | None = None
    project_slug: str | None = None
    previous_status: str | None = None
    status: str | None = None
    booking_reference: str | None = None


class Received(NamedTuple):
    number: int
    """Counts from 1, in the order of arrival."""
    at: datetime
    headers: Mapping[str, str]
    body: bytes
    content: Content
    refused: Reason | None
    """Why the signature was refused; None: it is verified."""
    is_repeated: bool
    """Whether a delivery of the same id had come before: a retry, or one that was sent again."""
    answer: HTTPStatus

    @property
    def delivery_id(self) -> str:
        return self.headers.get("x-service-delivery", "")

    @property
    def shown_body(self) -> str:
        """The bytes themselves: what was signed is not made prettier."""
        return self.body.decode(errors="replace")


class Journal:
    """What has come, the latest ones. Whoever looks is told of the next."""

    def __init__(self) -> None:
        self._kept: deque[Received] = deque(maxlen=KEPT)
        self._grown = asyncio.Event()
        self.is_closed = False

    @property
    def latest_number(self) -> int:
        return self._kept[-1].number if self._kept else 0

    def add(self, received: Received) -> None:
        self._kept.append(received)
        self._wake()

    def after(self, number: int) -> list[Received]:
        return [one for one in self._kept if one.number > number]

    def knows(self, delivery_id: str) -> bool:
        return any(one.delivery_id == delivery_id and one.refused is None for one in self._kept)

    async def growth(self) -> None:
        await self._grown.wait()

    def close(self) -> None:
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class Receiver:
    def __init__(self, secret: str, journal: Journal) -> None:
        self._secret = secret
        self._journal = journal
        self.fails_next = False
        """Whether the next delivery is answered with 500, so that its retry can be watched."""

    def receive(self, headers: Mapping[str, str], body: bytes) -> HTTPStatus:
        """The status to answer with. A real receiver would do its work after it, not before."""
        refused = verify(
            self._secret,
            headers.get("x-service-timestamp"),
            headers.get("x-service-signature"),
            body,
            time.time(),
        )
        answer = self._answer(refused)
        is_repeated = self._journal.knows(headers.get("x-service-delivery", ""))
        number = self._journal.latest_number + 1
        content, now = content_of(body), datetime.now(UTC)
        self._journal.add(Received(number, now, headers, body, content, refused, is_repeated, answer))
        return answer

    def _answer(self, refused: Reason | None) -> HTTPStatus:
        if refused is not None:
            return HTTPStatus.UNAUTHORIZED
        fails, self.fails_next = self.fails_next, False
        return HTTPStatus.INTERNAL_SERVER_ERROR if fails else HTTPStatus.OK


def content_of(body: bytes) -> Content:
    """Of anybody's bytes: what was refused is shown too."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return Content()
    data = _object(_object(document).get("data"))
    unit, booking = _object(data.get("unit")), _object(data.get("booking"))
    return Content(
        _text(_object(document).get("type")),
        _text(unit.get("code")),
        _text(unit.get("projectSlug")),
        _text(unit.get("previousStatus")),
        _text(unit.get("status")),
        _text(booking.get("reference")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    """JSON can name halves of characters, which no page can show."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None
