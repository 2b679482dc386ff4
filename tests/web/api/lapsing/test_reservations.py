"""A reservation is over at its time for everybody, even when nobody has released the unit yet."""

from collections.abc import Callable

import pytest

from tests.support import states
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict
from tests.support.sql import Sql

WorkUntil = Callable[[Callable[[], bool]], None]


@pytest.fixture
def over(stored: Unit, sql: Sql) -> Hold:
    """Reserved, and the reservation has lapsed."""
    return states.reserve_and_let_lapse(sql, stored)


def test_the_unit_is_available_since_the_end(over: Hold, is_stored_as: Callable[[Unit, str], bool]) -> None:
    unit = over.unit.read()
    assert (unit["status"], unit["updatedAt"]) == ("available", over.read()["reservedUntil"])
    assert over.buyer.see(over.unit)["status"] == "available"
    assert is_stored_as(over.unit, "reserved")


def test_the_deposit_is_due_back(over: Hold, sql: Sql) -> None:
    assert over.read()["status"] == "refund-due"
    assert states.staff_booking(sql, over)["status"] == "refund-due"


def test_the_filter_of_bookings_sees_that_it_is_due(over: Hold, sql: Sql) -> None:
    def found(status: str) -> list[str]:
        url = f"/v1/backoffice/bookings?project={over.unit.project.slug}&status={status}"
        answer = states.send_as_staff(sql, over.unit.http, "GET", url).json()
        return [booking["reference"] for booking in answer["bookings"]]

    assert (found("refund-due"), found("reserved")) == ([over.reference], [])


def test_it_locks_nothing(over: Hold) -> None:
    assert over.unit.put(full(priceSar=1, status="unavailable")).status_code == 200


def test_another_buyer_may_hold(over: Hold, feed: Feed) -> None:
    fresh = Buyer(over.unit.http).hold(over.unit)
    types = ["unit.held", "unit.reserved", "unit.released", "unit.held"]
    assert feed.types_of(over.unit) == types
    assert chain_is_unbroken(feed.of(over.unit))
    assert (over.read()["status"], fresh.read()["status"]) == ("refund-due", "open")


def test_the_sale_cannot_be_closed(over: Hold, sql: Sql) -> None:
    url = f"/v1/backoffice/bookings/{over.reference}/close-sale"
    response = states.send_as_staff(sql, over.unit.http, "POST", url)
    conflict(response, "transition-not-allowed", "available")
    assert over.unit.read()["status"] == "available"


def test_a_repeated_deposit_changes_nothing(over: Hold, sql: Sql) -> None:
    assert states.confirm_deposit(sql, over)["status"] == "refund-due"
    assert over.unit.read()["status"] == "available"


def test_staff_can_mark_it_refunded_before_it_is_released(over: Hold, sql: Sql, feed: Feed) -> None:
    url = f"/v1/backoffice/bookings/{over.reference}/mark-refunded"
    response = states.send_as_staff(sql, over.unit.http, "POST", url)
    assert (response.status_code, response.json()["status"]) == (200, "refunded")
    assert feed.types_of(over.unit) == ["unit.held", "unit.reserved", "unit.released"]


def test_the_release_changes_nothing_that_was_seen(
    over: Hold, work_until: WorkUntil, is_stored_as: Callable[[Unit, str], bool], feed: Feed
) -> None:
    before, booking = over.unit.get(), over.get().text
    work_until(lambda: is_stored_as(over.unit, "available"))
    after = over.unit.get()
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])
    assert over.get().text == booking
    released = feed.of(over.unit)[-1]
    assert feed.types_of(over.unit) == ["unit.held", "unit.reserved", "unit.released"]
    assert released["createdAt"] == over.read()["reservedUntil"]
