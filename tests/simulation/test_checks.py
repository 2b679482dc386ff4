"""Bookings that conflict, and histories that are inconsistent, are found."""

from typing import Any

import pytest

from holdfast.simulation.client import ApiClient, ApiResponse, open_http_client
from holdfast.simulation.state import Booking, Project, SimulationState, find_history_errors


@pytest.fixture
def state() -> SimulationState:
    client = ApiClient(open_http_client("http://127.0.0.1:9"), "key")
    return SimulationState(client, Project("tower", "The Tower", [], 0))


def add(state: SimulationState, reference: str, code: str = "A-1", status: str = "open") -> Booking:
    state.bookings[reference] = Booking(reference, code, "token", "somebody", status)
    return state.bookings[reference]


def test_a_second_booking_of_a_unit_conflicts(state: SimulationState) -> None:
    first = add(state, "one")
    assert state.find_conflict(first) is None
    assert state.find_conflict(add(state, "other", "A-2")) is None
    assert state.find_conflict(add(state, "two")) is first


def test_a_booking_that_is_ending_does_not_conflict(state: SimulationState) -> None:
    """The unit may be another buyer's before the response is here."""
    add(state, "one").is_ending = True
    assert state.find_conflict(add(state, "two")) is None


async def test_a_booking_whose_end_was_rejected_conflicts(state: SimulationState) -> None:
    first = add(state, "one")
    first.is_ending = True
    await state.update_booking(first, ApiResponse(200, {"status": "reserved"}, {}))
    assert state.find_conflict(add(state, "two")) is first


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
    def of(status: str | None) -> dict[str, str]:
        return {} if status is None else {"status": status}

    return {"before": of(before), "after": of(after), "bookingReference": reference}


SOLD = [
    entry(None, "available"),
    entry("available", "held", "one"),
    entry(None, None, "one"),
    entry("held", "available", "one"),
    entry("available", "held", "two"),
    entry("held", "reserved", "two"),
    entry("reserved", "sold", "two"),
]


def test_a_history_in_order_has_no_faults() -> None:
    assert find_history_errors("A-1", SOLD) == []
    assert find_history_errors("A-1", SOLD, ["one", "two"]) == []


def test_a_history_may_begin_anywhere() -> None:
    assert find_history_errors("A-1", SOLD[3:]) == []


def test_a_unit_held_for_two_is_a_fault() -> None:
    twice = [entry("available", "held", "one"), entry("held", "held", "two")]
    assert find_history_errors("A-1", twice) == ["A-1 was held for two while one had it."]


def test_a_change_that_is_missing_is_a_fault() -> None:
    broken = [entry("available", "held", "one"), entry("available", "held", "two")]
    assert find_history_errors("A-1", broken)[0] == "A-1 was held, and its next change began with available."


def test_an_entry_of_a_creation_or_of_nothing_is_read() -> None:
    creation = {"before": None, "after": {"status": "available"}, "bookingReference": None}
    assert (
        find_history_errors("A-1", [creation, {"before": {}, "after": None, "bookingReference": None}]) == []
    )


def test_a_hold_that_is_not_in_the_history_is_a_fault() -> None:
    assert find_history_errors("A-1", SOLD, ["three"]) == ["The hold three of A-1 is not in its history."]
