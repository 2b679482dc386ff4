"""A server that answers in the form of Holdfast and gives one unit to everybody."""

import itertools
import re
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
UNIT = {"code": "A-1", "priceSar": 500_000, "bedrooms": 2, "status": "available"}
STATUSES = {"sign": "signed", "confirm-deposit": "reserved", "close-sale": "sold", "cancel": "refund-due"}
BOOKING = re.compile(r"/bookings/([^/]+)(?:/([a-z-]+))?$")


class FaultyServer(httpx.AsyncBaseTransport):
    """Gives everybody the same unit and keeps no history."""

    def __init__(self, max_responses: int | None = None) -> None:
        self._responses_left = max_responses
        self._numbers = itertools.count(1)
        self._bookings: dict[str, str] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._responses_left is not None:
            self._responses_left -= 1
            if self._responses_left < 0:
                raise httpx.ConnectError("the server has stopped")
        status, body = self._respond(request.method, request.url.path)
        headers = {"date": format_datetime(NOW, usegmt=True), "etag": '"1"'}
        return httpx.Response(status, json=body, headers=headers)

    def _respond(self, method: str, path: str) -> tuple[int, dict[str, Any]]:
        booking = BOOKING.search(path)
        if booking is not None:
            return 200, self._booking(method, booking[1], booking[2])
        if path.endswith("/hold"):
            return 201, self._hold()
        if path.endswith("/history"):
            return 200, {"entries": [], "nextCursor": None}
        if path.endswith("/units"):
            return 200, {"units": [UNIT, *({**UNIT, "code": f"B-{n}"} for n in range(9))], "nextCursor": None}
        return 200, {**UNIT, "description": None}

    def _hold(self) -> dict[str, Any]:
        reference = f"R-{next(self._numbers)}"
        self._bookings[reference] = "open"
        return {"reference": reference, "token": "t", "holdExpiresAt": "2026-11-15T12:05:00.000Z"}

    def _booking(self, method: str, reference: str, action: str | None) -> dict[str, Any]:
        if method == "DELETE":
            self._bookings[reference] = "cancelled"
        elif action in STATUSES:
            self._bookings[reference] = STATUSES[action]
        status = self._bookings[reference]
        return {"reference": reference, "status": status, "holdExpiresAt": "2026-11-15T12:05:00.000Z"}
