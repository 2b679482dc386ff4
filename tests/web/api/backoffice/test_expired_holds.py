"""Holds and reservations are over at their time for staff and payment systems, released or not.

When the background work goes on it writes what everybody has seen already.
"""

from datetime import datetime, timedelta

import pytest

from tests.support.backoffice import Desk
from tests.support.bodies import full
from tests.support.buying import Hold, offer_url
from tests.support.client import Unit
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.installation import Installation
from tests.support.problems import conflict
from tests.support.sql import Sql
from tests.support.unit_rows import stored_status, stored_version
from tests.web.api.conftest import WorkUntil


@pytest.fixture
def sql(idle: Installation) -> Sql:
    return idle.sql


@pytest.fixture
def stored(idle: Installation) -> Unit:
    return idle.units(1)[0]


@pytest.fixture
def desk(idle: Installation) -> Desk:
    return idle.desk


@pytest.fixture
def expired(stored: Unit, desk: Desk, sql: Sql) -> Hold:
    return desk.held(stored).end_now(sql)


@pytest.fixture
def expired_reservation(stored: Unit, desk: Desk, sql: Sql) -> Hold:
    return desk.reserved(stored).end_now(sql)


def found(desk: Desk, held: Hold, *statuses: str) -> list[list[str]]:
    """The bookings that staff find in each of these statuses."""
    answers = [desk.bookings(project=held.unit.project.slug, status=status) for status in statuses]
    return [[booking["reference"] for booking in answer["bookings"]] for answer in answers]


def test_staff_see_a_lapsed_booking_and_can_do_nothing_that_needs_a_hold(expired: Hold, desk: Desk) -> None:
    assert desk.booking(expired.reference) == expired.read()
    assert found(desk, expired, "lapsed", "open", "signed") == [[expired.reference], [], []]
    refused = [
        desk.act_on_booking(expired.reference, action) for action in ("cancel", "extend", "close-sale")
    ]
    refused += [desk.act(expired.unit, action) for action in ("cancel-hold", "extend", "confirm-deposit")]
    for response in refused:
        assert "holdExpiresAt" not in conflict(response, "transition-not-allowed", "available")
    conflict(desk.act_on_booking(expired.reference, "confirm-deposit"), "not-signed", "available")


def test_a_late_deposit_reserves_the_unit_that_nobody_has_released_yet(
    stored: Unit, desk: Desk, sql: Sql, idle_feed: Feed
) -> None:
    expired = desk.signed(stored).end_now(sql)
    assert desk.did_to_booking(expired.reference, "confirm-deposit")["status"] == "reserved"
    assert idle_feed.types_of(stored) == ["unit.held", "unit.released", "unit.held", "unit.reserved"]


def test_after_a_reservation_the_unit_is_available_and_the_deposit_is_due_back(
    expired_reservation: Hold, desk: Desk, sql: Sql
) -> None:
    over, unit = expired_reservation, expired_reservation.unit.read()
    assert (unit["status"], unit["updatedAt"]) == ("available", over.read()["reservedUntil"])
    assert over.buyer.see(over.unit)["status"] == "available"
    assert over.read()["status"] == desk.booking(over.reference)["status"] == "refund-due"
    assert found(desk, over, "refund-due", "reserved") == [[over.reference], []]
    assert stored_status(sql, over.unit) == "reserved"
    assert desk.did_to_booking(over.reference, "confirm-deposit")["status"] == "refund-due"
    for action in ("close-sale", "extend"):
        conflict(desk.act_on_booking(over.reference, action), "transition-not-allowed", "available")
    assert over.unit.put(full(priceSar=1, status="unavailable")).status_code == 200


def test_after_a_reservation_another_buyer_may_hold_and_staff_mark_it_refunded(
    expired_reservation: Hold, desk: Desk, idle_feed: Feed
) -> None:
    over = expired_reservation
    assert desk.did_to_booking(over.reference, "mark-refunded")["status"] == "refunded"
    assert idle_feed.types_of(over.unit) == ["unit.held", "unit.reserved", "unit.released"]
    assert desk.held(over.unit).read()["status"] == "open"
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
    work_until(lambda: stored_status(sql, over.unit) == "available")
    assert representations(over) == before
    assert idle_feed.types_of(over.unit) == [*told, "unit.released"]
    released = idle_feed.of(over.unit)[-1]
    assert released["createdAt"] == over.expires_at == over.unit.read()["updatedAt"]
    assert released["data"]["booking"] is None


def test_what_a_writer_has_released_or_staff_have_extended_is_left_alone(
    expired: Hold, work_until: WorkUntil, desk: Desk, sql: Sql, idle_feed: Feed
) -> None:
    assert expired.unit.patch({"bedrooms": 7}).status_code == 200
    version = stored_version(sql, expired.unit)
    extended, others = (Unit(expired.unit.http, expired.unit.project, code) for code in ("B-1", "B-2"))
    for unit in (extended, others):
        unit.create(full())
    held = desk.held(extended)
    later = (datetime.fromisoformat(held.expires_at) + timedelta(days=1)).isoformat()
    end = desk.did(extended, "extend", {"until": later})["holdExpiresAt"]
    # The hold of another unit shows when the expirer has been round.
    desk.held(others).end_now(sql)
    work_until(lambda: stored_status(sql, others) == "available")
    assert idle_feed.types_of(expired.unit) == ["unit.held", "unit.released"]
    assert stored_version(sql, expired.unit) == version
    assert (extended.read()["status"], idle_feed.types_of(extended)) == ("held", ["unit.held"])
    assert held.read()["holdExpiresAt"] == end
