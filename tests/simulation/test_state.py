"""Bookings that conflict, histories that are inconsistent and servers that go away are found."""

import asyncio
import itertools
import re
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from holdfast.simulation.client import ApiClient, ApiResponse, open_http_client
from holdfast.simulation.runner import Simulation, SimulationOptions
from holdfast.simulation.state import Booking, Project, SimulationState, find_history_errors


@pytest.fixture
def state() -> SimulationState:
    client = ApiClient(open_http_client("http://127.0.0.1:9"), "key")
    return SimulationState(client, Project("tower", "The Tower", [], 0))


def add(state: SimulationState, reference: str, code: str = "A-1", status: str = "open") -> Booking:
    state.bookings[reference] = Booking(reference, code, "token", "somebody", status)
    return state.bookings[reference]


async def test_a_second_booking_of_a_unit_conflicts_unless_the_first_ends(state: SimulationState) -> None:
    first = add(state, "one")
    assert state.find_conflict(first) is None
    assert state.find_conflict(add(state, "other", "A-2")) is None
    second = add(state, "two")
    assert state.find_conflict(second) is first
    # The unit may be another buyer's before the response is here.
    first.is_ending = True
    assert state.find_conflict(second) is None
    await state.update_booking(first, ApiResponse(200, {"status": "reserved"}, {}))
    assert state.find_conflict(second) is first, "its end was rejected"


def test_a_late_deposit_must_not_take_a_unit_from_its_buyer(state: SimulationState) -> None:
    first, second = add(state, "one", status="refund-due"), add(state, "two")
    assert state.find_conflict(second) is None
    assert state.find_conflict(first) is second


def test_taken_units_are_counted(state: SimulationState) -> None:
    for number, status in enumerate(("sold", "open", "signed", "lapsed", "sold")):
        add(state, str(number), f"A-{number}", status)
    assert [own.reference for own in state.held_bookings()] == ["1", "2"]
    assert state.taken_count == 4
    state.bookings["3"].has_late_payment = True
    assert state.taken_count == 5


def entry(before: str | None, after: str | None, reference: str | None = None) -> dict[str, Any]:
    statuses = [{} if status is None else {"status": status} for status in (before, after)]
    return {"before": statuses[0], "after": statuses[1], "bookingReference": reference}


SOLD = [
    {"before": None, "after": {"status": "available"}, "bookingReference": None},
    entry("available", "held", "one"),
    entry(None, None, "one"),
    {"before": {}, "after": None, "bookingReference": None},
    entry("held", "available", "one"),
    entry("available", "held", "two"),
    entry("held", "reserved", "two"),
    entry("reserved", "sold", "two"),
]
HELD = entry("available", "held", "one")
MISSING = "A-1 was held, and its next change began with available."
TWICE = "A-1 was held for two while one had it."


@pytest.mark.parametrize(
    ("entries", "references", "errors"),
    [
        (SOLD, ["one", "two"], []),
        (SOLD[4:], [], []),
        ([HELD, entry("held", "held", "two")], [], [TWICE]),
        ([HELD, entry("available", "held", "two")], [], [MISSING, TWICE]),
        (SOLD, ["three"], ["The hold three of A-1 is not in its history."]),
    ],
    ids=["in order", "from anywhere", "held for two", "a change is missing", "a hold is missing"],
)
def test_an_inconsistent_history_is_found(
    entries: list[dict[str, Any]], references: list[str], errors: list[str]
) -> None:
    assert find_history_errors("A-1", entries, references) == errors


# Whole simulations

NOW = format_datetime(datetime(2026, 11, 15, 12, 0, tzinfo=UTC), usegmt=True)
EXPIRES_AT = "2026-11-15T12:05:00.000Z"
CODES = ["A-1", *(f"B-{number}" for number in range(9))]
UNITS = [{"code": code, "priceSar": 500_000, "bedrooms": 2, "status": "available"} for code in CODES]
STATUSES = {"sign": "signed", "confirm-deposit": "reserved", "close-sale": "sold", "cancel": "refund-due"}
BOOKING = re.compile(r"/bookings/([^/]+)(?:/([a-z-]+))?$")


class FaultyServer(httpx.AsyncBaseTransport):
    """Gives everybody the same unit, keeps no history, and may go away."""

    def __init__(self, max_responses: int = 1_000_000) -> None:
        self._responses_left = max_responses
        self._numbers = itertools.count(1)
        self._bookings: dict[str, str] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._responses_left -= 1
        if self._responses_left < 0:
            raise httpx.ConnectError("the server has stopped")
        status, body = self._respond(request.method, request.url.path)
        return httpx.Response(status, json=body, headers={"date": NOW, "etag": '"1"'})

    def _respond(self, method: str, path: str) -> tuple[int, dict[str, Any]]:
        if booking := BOOKING.search(path):
            return 200, self._booking(method, booking[1], booking[2])
        if path.endswith("/hold"):
            reference = f"R-{next(self._numbers)}"
            self._bookings[reference] = "open"
            return 201, {"reference": reference, "token": "t", "holdExpiresAt": EXPIRES_AT}
        if path.endswith("/history"):
            return 200, {"entries": [], "nextCursor": None}
        if path.endswith("/units"):
            return 200, {"units": UNITS, "nextCursor": None}
        return 200, {**UNITS[0], "description": None}

    def _booking(self, method: str, reference: str, action: str | None) -> dict[str, Any]:
        if method == "DELETE":
            self._bookings[reference] = "cancelled"
        elif action in STATUSES:
            self._bookings[reference] = STATUSES[action]
        return {"reference": reference, "status": self._bookings[reference], "holdExpiresAt": EXPIRES_AT}


def simulate(server: FaultyServer, buyers: int) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with httpx.AsyncClient(base_url="http://faulty.example", transport=server) as http:
            project = Project("tower", "The Tower", CODES, len(CODES))
            options = SimulationOptions(buyers, 1, 100.0)
            return await Simulation(ApiClient(http, "key"), project, options).run()

    return asyncio.run(run())


def test_a_unit_given_to_two_buyers_and_a_hold_that_is_not_in_the_history_are_violations() -> None:
    violations = simulate(FaultyServer(), buyers=6)["brokenPromises"]
    assert any("was given to two buyers at once" in sentence for sentence in violations)
    missing = "The hold R-1 of A-1 is not in its history."
    assert simulate(FaultyServer(), buyers=1)["brokenPromises"] == [missing]


def test_a_server_that_goes_away_ends_the_simulation() -> None:
    totals = simulate(FaultyServer(max_responses=3), buyers=6)
    assert totals["ended"] == "failed"
    assert totals["failure"] == "The server at http://faulty.example no longer answers."
