"""Bookings that conflict, and histories that are inconsistent, are found."""

from typing import Any

from holdfast.simulation.checks import Booking, BookingRegistry, history_errors


def booking(reference: str, code: str = "A-1") -> Booking:
    return Booking(reference, code, f"token of {reference}", "somebody")


def test_a_second_booking_of_a_unit_conflicts() -> None:
    registry, first, second = BookingRegistry(), booking("one"), booking("two")
    assert registry.add(first) is None
    assert registry.add(booking("other", "A-2")) is None
    assert registry.add(second) is first


def test_the_same_hold_added_twice_is_one_booking() -> None:
    registry = BookingRegistry()
    registry.add(booking("one"))
    assert registry.add(booking("one")) is None
    assert len(registry.bookings) == 1


def test_a_booking_that_is_ending_does_not_conflict() -> None:
    """The unit may be another buyer's before the response is here."""
    registry, first = BookingRegistry(), booking("one")
    registry.add(first)
    first.is_ending = True
    assert registry.add(booking("two")) is None


def test_a_booking_whose_end_was_rejected_conflicts() -> None:
    registry, first = BookingRegistry(), booking("one")
    registry.add(first)
    first.is_ending = True
    registry.update_status(first, "reserved")
    assert registry.add(booking("two")) is first


def test_a_late_deposit_must_not_take_a_unit_from_its_buyer() -> None:
    registry, first, second = BookingRegistry(), booking("one"), booking("two")
    registry.add(first)
    registry.update_status(first, "cancelled")
    registry.add(second)
    assert registry.update_status(first, "refund-due") is None
    assert registry.update_status(first, "reserved") is second


def test_bookings_are_counted_by_status() -> None:
    registry = BookingRegistry()
    for number, status in enumerate(("sold", "open", "signed", "lapsed", "sold")):
        own = booking(str(number), f"A-{number}")
        registry.add(own)
        registry.update_status(own, status)
    assert registry.count_by_status() == {"lapsed": 1, "open": 1, "signed": 1, "sold": 2}
    assert [own.reference for own in registry.held()] == ["1", "2"]
    assert registry.taken_count() == 4
    registry.bookings["3"].has_late_payment = True
    assert registry.taken_count() == 5


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
    assert history_errors("A-1", SOLD) == []
    assert history_errors("A-1", SOLD, ["one", "two"]) == []


def test_a_history_may_begin_anywhere() -> None:
    assert history_errors("A-1", SOLD[3:]) == []


def test_a_unit_held_for_two_is_a_fault() -> None:
    twice = [entry("available", "held", "one"), entry("held", "held", "two")]
    assert history_errors("A-1", twice) == ["A-1 was held for two while one had it."]


def test_a_change_that_is_missing_is_a_fault() -> None:
    broken = [entry("available", "held", "one"), entry("available", "held", "two")]
    assert history_errors("A-1", broken)[0] == "A-1 was held, and its next change began with available."


def test_an_entry_of_a_creation_or_of_nothing_is_read() -> None:
    creation = {"before": None, "after": {"status": "available"}, "bookingReference": None}
    assert history_errors("A-1", [creation, {"before": {}, "after": None, "bookingReference": None}]) == []


def test_a_hold_that_is_not_in_the_history_is_a_fault() -> None:
    assert history_errors("A-1", SOLD, ["three"]) == ["The hold three of A-1 is not in its history."]
