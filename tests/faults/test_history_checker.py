"""The checker of histories is believed only because it finds what is planted."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.history_checker import NEW_UNIT, UNIT_COLUMNS, faults_of, feed_faults
from tests.support.unit_history import History

ONE, TWO = "BK-1", "BK-2"
HOLD_END, RESERVATION_END = "2026-11-14T09:00:05.000Z", "2026-11-28T09:00:00.000Z"
BEGUN, ENDED = (None, HOLD_END), (HOLD_END, None)


def at(second: int) -> str:
    return f"2026-11-14T09:00:{second:02}.000Z"


def entry(second: int, action: str, reference: str | None, before: object, after: object) -> dict[str, Any]:
    change = {"booking_reference": reference, "before": before, "after": after}
    return {"at": at(second), "action": action, **change}


def event(version: int, second: int, kind: str, before: str, after: str, reference: str | None = None) -> Any:
    change = {"type": kind, "previous_status": before, "status": after, "booking_reference": reference}
    return {"id": f"event-{version}", "unit_version": version, "created_at": at(second), **change}


def booking(reference: str, status: str, **values: object) -> dict[str, Any]:
    empty = {"hold_expires_at": HOLD_END, "reserved_until": None, "deposit_confirmed_at": None}
    return {"reference": reference, "status": status, **empty, **values}


def sound() -> History:
    """Held and cancelled, held and lapsed, repriced, and reserved again when the deposit came late."""
    paid = {"reserved_until": RESERVATION_END, "deposit_confirmed_at": at(8)}
    unit = {column: NEW_UNIT[name] for name, column in UNIT_COLUMNS.items()}
    return History(
        unit=unit
        | {"id": "unit", "code": "A-1", "status": "reserved", "price_sar": 900, "version": 8}
        | {"reserved_until": RESERVATION_END, "updated_at": at(8)},
        events=[
            event(2, 1, "unit.held", "available", "held"),
            event(3, 2, "unit.released", "held", "available"),
            event(4, 3, "unit.held", "available", "held"),
            event(5, 5, "unit.released", "held", "available"),
            event(7, 7, "unit.held", "available", "held"),
            event(8, 8, "unit.reserved", "held", "reserved", TWO),
        ],
        entries=[
            entry(0, "create", None, None, {"priceSar": 1000, "status": "available"}),
            entry(1, "open", ONE, *move("available", "held", None, "open", BEGUN)),
            entry(2, "cancel-hold", ONE, *move("held", "available", "open", "cancelled", ENDED)),
            entry(3, "open", TWO, *move("available", "held", None, "open", BEGUN)),
            entry(4, "sign", TWO, {"bookingStatus": "open"}, {"bookingStatus": "signed"}),
            entry(5, "lapse-hold", TWO, *move("held", "available", "signed", "lapsed", ENDED)),
            entry(6, "change", None, {"priceSar": 1000}, {"priceSar": 900}),
            entry(
                8,
                "confirm-deposit",
                TWO,
                {"status": "available", "reservedUntil": None, "bookingStatus": "lapsed"},
                {"status": "reserved", "reservedUntil": RESERVATION_END, "bookingStatus": "reserved"},
            ),
        ],
        bookings=[booking(ONE, "cancelled"), booking(TWO, "reserved", **paid)],
    )


def move(
    before: str,
    after: str,
    booking_before: str | None,
    booking_after: str,
    hold: tuple[str | None, str | None],
) -> tuple[dict[str, Any], dict[str, Any]]:
    old: dict[str, Any] = {"status": before, "holdExpiresAt": hold[0]}
    if booking_before is not None:
        old["bookingStatus"] = booking_before
    return old, {"status": after, "holdExpiresAt": hold[1], "bookingStatus": booking_after}


def test_a_sound_history_has_no_faults() -> None:
    assert faults_of(sound()) == []


def swap_events(history: History) -> None:
    history.events[2], history.events[3] = history.events[3], history.events[2]


def sell_while_held(history: History) -> None:
    history.events[2] |= {"type": "unit.sold", "previous_status": "held", "status": "sold"}


def hold_twice(history: History) -> None:
    """Two writers that had both found the unit available."""
    second = entry(2, "open", "BK-3", *move("available", "held", None, "open", BEGUN))
    history.entries.insert(2, second)


PLANTED: dict[str, Callable[[History], object]] = {
    "an event is missing": lambda history: history.events.pop(3),
    "the last event is missing": lambda history: history.events.pop(),
    "an event is there twice": lambda history: history.events.insert(1, history.events[0]),
    "two events are in the wrong order": swap_events,
    "an event is no transition": sell_while_held,
    "an event begins where no one ended": lambda history: history.events[2].update(
        previous_status="unavailable"
    ),
    "an event is as late as the one before": lambda history: history.events[1].update(created_at=at(1)),
    "an event has another time than its change": lambda history: history.events[5].update(created_at=at(9)),
    "an event has the version of another": lambda history: history.events[1].update(unit_version=2),
    "an event skips a version": lambda history: history.events[5].update(unit_version=9),
    "an event names another booking": lambda history: history.events[5].update(booking_reference=ONE),
    "the unit has a change that nobody noted": lambda history: history.unit.update(version=9),
    "the unit has lost a change": lambda history: history.unit.update(price_sar=1000),
    "the unit is not what its last event says": lambda history: history.unit.update(status="available"),
    "an entry is missing": lambda history: history.entries.pop(2),
    "an entry is there twice": lambda history: history.entries.insert(6, history.entries[6]),
    "an entry found what was not there": lambda history: history.entries[6]["before"].update(priceSar=950),
    "an entry is an illegal step": lambda history: history.entries[5].update(action="take-off-sale"),
    "a signature changed the unit": lambda history: history.entries[4]["after"].update(priceSar=1),
    "two holds at once": hold_twice,
    "two bookings claim the unit": lambda history: history.bookings[0].update(status="signed"),
    "a booking that nobody opened": lambda history: history.bookings.append(booking("BK-3", "lapsed")),
    "a booking is missing": lambda history: history.bookings.pop(0),
    "no booking claims a reserved unit": lambda history: history.bookings[1].update(status="refund-due"),
    "the booking ends at another time": lambda history: history.bookings[1].update(reserved_until=at(59)),
    "a deposit is lost": lambda history: history.bookings[0].update(deposit_confirmed_at=at(2)),
    "a booking took an impossible step": lambda history: history.entries[5]["after"].update(
        bookingStatus="sold"
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    history = sound()
    PLANTED[fault](history)
    assert faults_of(history) != []


def test_a_feed_has_every_event_once_and_in_its_order() -> None:
    feed = [{"id": told["id"], "data": {"unit": {"id": "unit"}}} for told in sound().events]
    assert feed_faults([sound()], feed) == []
    for broken in (feed[1:], [*feed, feed[-1]], feed[::-1]):
        assert feed_faults([sound()], broken) != []
