"""Holds and reservations are over at their time for staff and payment systems, released or not.

When the background work goes on it writes what everybody has seen already.
"""

from datetime import datetime, timedelta

import pytest

from tests.support import states
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold, offer_url
from tests.support.client import Unit
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.installation import Installation
from tests.support.problems import conflict
from tests.support.sql import Sql
from tests.web.api.conftest import WorkUntil


@pytest.fixture
def sql(idle: Installation) -> Sql:
    return idle.sql


@pytest.fixture
def stored(idle: Installation) -> Unit:
    return idle.units(1)[0]


@pytest.fixture
def expired(stored: Unit, sql: Sql) -> Hold:
    return states.end_now(sql, states.hold(sql, stored))


@pytest.fixture
def expired_signed(stored: Unit, sql: Sql) -> Hold:
    held = states.hold(sql, stored)
    held.sign()
    return states.end_now(sql, held)


@pytest.fixture
def expired_reservation(stored: Unit, sql: Sql) -> Hold:
    return states.end_now(sql, states.reserve(sql, stored))


def found(sql: Sql, held: Hold, *statuses: str) -> list[list[str]]:
    """The bookings that staff find in each of these statuses."""
    url = f"/v1/backoffice/bookings?project={held.unit.project.slug}&status="
    answers = [states.send_as_staff(sql, held.unit.http, "GET", url + status).json() for status in statuses]
    return [[booking["reference"] for booking in answer["bookings"]] for answer in answers]


def test_staff_see_a_lapsed_booking_and_can_do_nothing_that_needs_a_hold(expired: Hold, sql: Sql) -> None:
    assert states.staff_booking(sql, expired) == expired.get().json()
    assert found(sql, expired, "lapsed", "open", "signed") == [[expired.reference], [], []]
    booking = f"/v1/backoffice/bookings/{expired.reference}"
    unit = f"/v1/backoffice/projects/{expired.unit.project.slug}/units/{expired.unit.code}"
    urls = [f"{booking}/{action}" for action in ("cancel", "extend", "close-sale")]
    urls += [f"{unit}/{action}" for action in ("cancel-hold", "extend", "confirm-deposit")]
    for url in urls:
        response = states.send_as_staff(sql, expired.unit.http, "POST", url)
        assert "holdExpiresAt" not in conflict(response, "transition-not-allowed", "available")
    response = states.send_as_staff(sql, expired.unit.http, "POST", f"{booking}/confirm-deposit")
    conflict(response, "not-signed", "available")


def test_a_late_deposit_reserves_the_unit_that_is_still_free_on_the_agreed_terms(
    expired_signed: Hold, sql: Sql, idle_feed: Feed
) -> None:
    unit, agreed = expired_signed.unit, expired_signed.read()["terms"]
    assert unit.patch({"priceSar": 5_000_000}).status_code == 200
    booking = states.confirm_deposit(sql, expired_signed)
    assert (booking["status"], booking["terms"]) == ("reserved", agreed)
    assert (unit.read()["status"], unit.read()["priceSar"]) == ("reserved", 5_000_000)
    events = idle_feed.of(unit)
    types = ["unit.held", "unit.released", "unit.held", "unit.reserved"]
    assert [event["type"] for event in events] == types
    assert chain_is_unbroken(events)
    assert events[-1]["data"]["booking"] == {"reference": expired_signed.reference}


def test_a_deposit_that_comes_too_late_is_due_back(expired_signed: Hold, sql: Sql) -> None:
    fresh = Buyer(expired_signed.unit.http).hold(expired_signed.unit)
    assert states.confirm_deposit(sql, expired_signed)["status"] == "refund-due"
    assert fresh.read()["status"] == "open"


def test_after_a_reservation_the_unit_is_available_and_the_deposit_is_due_back(
    expired_reservation: Hold, sql: Sql
) -> None:
    over, unit = expired_reservation, expired_reservation.unit.read()
    assert (unit["status"], unit["updatedAt"]) == ("available", over.read()["reservedUntil"])
    assert over.buyer.see(over.unit)["status"] == "available"
    assert over.read()["status"] == states.staff_booking(sql, over)["status"] == "refund-due"
    assert found(sql, over, "refund-due", "reserved") == [[over.reference], []]
    assert states.stored_status(sql, over.unit) == "reserved"
    assert states.confirm_deposit(sql, over)["status"] == "refund-due"
    close = f"/v1/backoffice/bookings/{over.reference}/close-sale"
    response = states.send_as_staff(sql, over.unit.http, "POST", close)
    conflict(response, "transition-not-allowed", "available")
    assert over.unit.put(full(priceSar=1, status="unavailable")).status_code == 200


def test_after_a_reservation_another_buyer_may_hold_and_staff_mark_it_refunded(
    expired_reservation: Hold, sql: Sql, idle_feed: Feed
) -> None:
    over = expired_reservation
    refund = f"/v1/backoffice/bookings/{over.reference}/mark-refunded"
    response = states.send_as_staff(sql, over.unit.http, "POST", refund)
    assert (response.status_code, response.json()["status"]) == (200, "refunded")
    assert idle_feed.types_of(over.unit) == ["unit.held", "unit.reserved", "unit.released"]
    assert Buyer(over.unit.http).hold(over.unit).read()["status"] == "open"
    assert idle_feed.types_of(over.unit)[3:] == ["unit.held"]
    assert chain_is_unbroken(idle_feed.of(over.unit))


def representations(held: Hold) -> list[str]:
    """All that readers get to see of the unit and its booking."""
    unit = held.unit.get()
    answers = [
        unit.text,
        unit.headers["etag"],
        held.unit.http.get(held.unit.project.units_url).text,
        held.buyer.send("GET", offer_url(held.unit)).text,
        held.get().text,
    ]
    return [str(answer) for answer in answers]


@pytest.mark.parametrize("claim", ["expired", "expired_reservation"])
def test_readers_see_the_same_before_and_after_the_release(
    claim: str, request: pytest.FixtureRequest, work_until: WorkUntil, sql: Sql, idle_feed: Feed
) -> None:
    over: Hold = request.getfixturevalue(claim)
    before, told = representations(over), idle_feed.types_of(over.unit)
    work_until(lambda: states.stored_status(sql, over.unit) == "available")
    assert representations(over) == before
    assert idle_feed.types_of(over.unit) == [*told, "unit.released"]
    released = idle_feed.of(over.unit)[-1]
    assert released["createdAt"] == over.expires_at == over.unit.read()["updatedAt"]
    assert released["data"]["booking"] is None


def test_what_a_writer_has_released_or_staff_have_extended_is_left_alone(
    expired: Hold, work_until: WorkUntil, sql: Sql, idle_feed: Feed
) -> None:
    assert expired.unit.patch({"bedrooms": 7}).status_code == 200
    version = states.version(sql, expired.unit)
    extended, others = (Unit(expired.unit.http, expired.unit.project, code) for code in ("B-1", "B-2"))
    for unit in (extended, others):
        unit.create(full())
    held = states.hold(sql, extended)
    later = (datetime.fromisoformat(held.expires_at) + timedelta(days=1)).isoformat()
    end = states.act(sql, extended, "extend", {"until": later})["holdExpiresAt"]
    # The hold of another unit shows when the expirer has been round.
    states.hold_and_let_lapse(sql, others)
    work_until(lambda: states.stored_status(sql, others) == "available")
    assert idle_feed.types_of(expired.unit) == ["unit.held", "unit.released"]
    assert states.version(sql, expired.unit) == version
    assert (extended.read()["status"], idle_feed.types_of(extended)) == ("held", ["unit.held"])
    assert held.read()["holdExpiresAt"] == end
