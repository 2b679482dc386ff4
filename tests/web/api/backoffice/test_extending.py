"""Staff give a buyer more time: the end moves away, and only away."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.backoffice import Desk, Held, succeeded
from tests.support.client import Unit
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.web.api.backoffice.conditions import Condition, Office

HOLD = timedelta(seconds=300)
RESERVATION = timedelta(days=14)
CLAIMS = [Condition.HELD, Condition.SIGNED, Condition.RESERVED]

Extend = Callable[[object], Any]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def on_the_wire(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def end_name(condition: Condition) -> str:
    return "reservedUntil" if condition is Condition.RESERVED else "holdExpiresAt"


@pytest.fixture(params=CLAIMS)
def condition(request: pytest.FixtureRequest) -> Condition:
    chosen: Condition = request.param
    return chosen


@pytest.fixture
def held(stored: Unit, office: Office, condition: Condition) -> Held:
    held = office.bring(stored, condition)
    assert held is not None
    return held


@pytest.fixture(params=["unit", "booking"])
def extend(request: pytest.FixtureRequest, stored: Unit, held: Held, desk: Desk) -> Extend:
    """By the address of the unit, or by that of its booking."""
    if request.param == "unit":
        return lambda body: desk.act(stored, "extend", body)
    return lambda body: desk.act_on_booking(held.reference, "extend", body)


def test_without_a_time_the_end_moves_by_one_period(
    extend: Extend, held: Held, desk: Desk, condition: Condition
) -> None:
    name = end_name(condition)
    before = moment(desk.booking(held.reference)[name])
    period = RESERVATION if condition is Condition.RESERVED else HOLD
    assert moment(succeeded(extend(None))[name]) == before + period
    assert moment(succeeded(extend({}))[name]) == before + 2 * period
    assert moment(desk.booking(held.reference)[name]) == before + 2 * period


def test_a_time_becomes_the_end(
    extend: Extend, held: Held, desk: Desk, stored: Unit, condition: Condition
) -> None:
    name, until = end_name(condition), on_the_wire(datetime.now(UTC) + timedelta(days=30))
    answer = succeeded(extend({"until": until}))
    assert answer[name] == until
    assert desk.booking(held.reference)[name] == until
    assert succeeded(held.read())[name] == until
    if name == "holdExpiresAt":
        assert stored.read()[name] == until


def test_a_time_is_taken_in_every_zone_and_in_whole_milliseconds(
    extend: Extend, condition: Condition
) -> None:
    day = (datetime.now(UTC) + timedelta(days=40)).date()
    answer = succeeded(extend({"until": f"{day}T12:00:00.123999+03:00"}))
    assert answer[end_name(condition)] == f"{day}T09:00:00.123Z"


def test_an_extension_is_no_event_but_an_entry(
    extend: Extend, stored: Unit, desk: Desk, feed: Feed, held: Held, condition: Condition
) -> None:
    etag, told, noted = stored.etag, feed.types_of(stored), len(desk.history(stored))
    name = end_name(condition)
    before = desk.booking(held.reference)[name]
    after = succeeded(extend(None))[name]
    assert stored.etag != etag
    assert feed.types_of(stored) == told
    entry, *older = desk.history(stored)
    assert len(older) == noted
    assert (entry["action"], entry["bookingReference"]) == ("extend", held.reference)
    assert (entry["before"], entry["after"]) == ({name: before}, {name: after})


@pytest.mark.parametrize("earlier", [timedelta(milliseconds=1), timedelta(days=4000)])
def test_an_end_never_comes_closer(
    extend: Extend, held: Held, desk: Desk, stored: Unit, condition: Condition, earlier: timedelta
) -> None:
    etag = stored.etag
    end = moment(desk.booking(held.reference)[end_name(condition)])
    invalid(extend({"until": on_the_wire(end - earlier)}), "/until")
    assert stored.etag == etag


def test_the_same_end_again_changes_nothing(
    extend: Extend, desk: Desk, stored: Unit, condition: Condition
) -> None:
    """After an answer that got lost."""
    until = on_the_wire(datetime.now(UTC) + timedelta(days=30))
    first = succeeded(extend({"until": until}))
    etag, noted = stored.etag, len(desk.history(stored))
    assert succeeded(extend({"until": until})) == first
    assert (stored.etag, len(desk.history(stored))) == (etag, noted)


@pytest.mark.parametrize("until", ["2999-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])
def test_an_end_stays_within_reason(extend: Extend, stored: Unit, until: str) -> None:
    etag = stored.etag
    invalid(extend({"until": until}), "/until")
    assert stored.etag == etag


@pytest.mark.parametrize(
    "until",
    [
        None,
        1_800_000_000,
        True,
        "",
        "tomorrow",
        "2030-01-01",
        "2030-13-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "2030-01-01T00:00:00Z\u0000",
        ["2030-01-01T00:00:00Z"],
        {},
    ],
)
def test_what_is_no_time_is_refused(extend: Extend, stored: Unit, until: object) -> None:
    etag = stored.etag
    invalid(extend({"until": until}), "/until")
    assert stored.etag == etag


def test_every_fault_is_told_at_once(extend: Extend) -> None:
    invalid(extend({"until": "soon", "days": 3}), "/until", "/days")
    invalid(extend(["until"]), "")


@pytest.mark.parametrize("until", ["2030-01-01T00:00:00Z", None])
def test_a_sale_has_no_end_to_move(stored: Unit, office: Office, desk: Desk, until: str | None) -> None:
    held = office.sold(stored)
    body = None if until is None else {"until": until}
    conflict(desk.act(stored, "extend", body), "transition-not-allowed", "sold")
    conflict(desk.act_on_booking(held.reference, "extend", body), "transition-not-allowed", "sold")


def test_the_booking_of_another_is_not_extended_by_an_ended_one(
    stored: Unit, office: Office, desk: Desk
) -> None:
    ended = office.held(stored)
    assert ended.cancel().status_code == 204
    office.held(stored)
    etag = stored.etag
    conflict(desk.act_on_booking(ended.reference, "extend"), "transition-not-allowed", "held")
    assert stored.etag == etag


def test_a_project_of_its_own_periods_extends_by_those(stored: Unit, office: Office, desk: Desk) -> None:
    desk.settle(stored.project, holdSeconds=1000, reservationDays=2.5)
    held = office.signed(stored)
    before = moment(desk.booking(held.reference)["holdExpiresAt"])
    assert moment(desk.did(stored, "extend")["holdExpiresAt"]) - before == timedelta(seconds=1000)
    before = moment(desk.did(stored, "confirm-deposit")["reservedUntil"])
    assert moment(desk.did(stored, "extend")["reservedUntil"]) - before == timedelta(days=2.5)


def test_periods_do_not_add_up_beyond_reason(stored: Unit, office: Office, desk: Desk) -> None:
    """What cannot be asked for at once cannot be had bit by bit: the calendar itself has an end."""
    desk.settle(stored.project, reservationDays=3650)
    office.reserved(stored)
    etag = stored.etag
    invalid(desk.act(stored, "extend"), "/until")
    assert stored.etag == etag


def test_an_unknown_booking_is_not_found(desk: Desk) -> None:
    problem(desk.act_on_booking("HF-NOTHING", "extend"), 404)
