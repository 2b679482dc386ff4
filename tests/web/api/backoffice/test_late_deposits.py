"""A deposit that arrives when its booking is over: money is never silently lost."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import states
from tests.support.app import InProcessApp
from tests.support.backoffice import BUYER, Desk, Held, succeeded
from tests.support.bodies import full
from tests.support.client import Unit, integration_client, number
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.keys import Key
from tests.support.problems import conflict
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import Condition, Office, release, wait_for_the_end

# Seconds; a longer hold is only tried where the machine was too slow to sign the shorter one.
PATIENCE = (0.2, 1, 5, 30)
TINY_RESERVATION_DAYS = 0.00001
TAKEN = [c for c in Condition if c is not Condition.AVAILABLE]


@pytest.fixture
def lapsed(stored: Unit, office: Office, desk: Desk, sql: Sql) -> Held:
    """Signed, and over by the clock; the next hold of the project has its usual length."""
    for seconds in PATIENCE:
        desk.settle(stored.project, holdSeconds=seconds)
        held = office.held(stored)
        in_time = held.sign().status_code == 200
        desk.settle(stored.project, holdSeconds=None)
        wait_for_the_end(sql, stored)
        if in_time:
            return held
    raise AssertionError("no hold was long enough to be signed")


@pytest.fixture
def cancelled(stored: Unit, office: Office) -> Held:
    held = office.signed(stored)
    assert held.cancel().status_code == 204
    return held


@pytest.fixture(params=["lapsed", "cancelled"])
def ended(request: pytest.FixtureRequest) -> Held:
    held: Held = request.getfixturevalue(request.param)
    return held


def test_a_free_unit_is_held_and_reserved_again(
    stored: Unit, ended: Held, payments: Desk, feed: Feed
) -> None:
    answer = payments.did_to_booking(ended.reference, "confirm-deposit")
    assert answer["status"] == "reserved"
    assert answer["reservedUntil"] is not None
    assert stored.read()["status"] == "reserved"
    events = feed.of(stored)
    assert [event["type"] for event in events[-3:]] == ["unit.released", "unit.held", "unit.reserved"]
    assert chain_is_unbroken(events)
    assert events[-2]["data"]["booking"] is None
    assert events[-1]["data"]["booking"] == {"reference": ended.reference}


def test_both_steps_count_as_versions(stored: Unit, cancelled: Held, payments: Desk, sql: Sql) -> None:
    before = states.version(sql, stored)
    payments.did_to_booking(cancelled.reference, "confirm-deposit")
    assert states.version(sql, stored) == before + 2


def test_it_is_one_entry_of_the_history(
    stored: Unit, cancelled: Held, payments: Desk, payments_key: Key, desk: Desk
) -> None:
    noted = len(desk.history(stored))
    answer = payments.did_to_booking(cancelled.reference, "confirm-deposit")
    entry, *older = desk.history(stored)
    assert len(older) == noted
    assert (entry["action"], entry["bookingReference"]) == ("confirm-deposit", cancelled.reference)
    assert entry["actor"]["id"] == str(payments_key.id)
    assert entry["before"] == {"status": "available", "reservedUntil": None, "bookingStatus": "cancelled"}
    assert entry["after"] == {
        "status": "reserved",
        "reservedUntil": answer["reservedUntil"],
        "bookingStatus": "reserved",
    }


def test_the_terms_are_those_agreed_whatever_the_price_is_now(
    stored: Unit, ended: Held, payments: Desk
) -> None:
    assert stored.put(full(priceSar=2_000_000, depositPercent=50, vatRate=5)).status_code == 200
    terms = payments.did_to_booking(ended.reference, "confirm-deposit")["terms"]
    assert number(terms["priceSar"]) == 950_000
    assert number(terms["vatRate"]) == 15
    assert number(stored.read()["priceSar"]) == 2_000_000


@pytest.mark.parametrize("condition", TAKEN)
def test_for_a_unit_that_is_taken_the_deposit_is_due_back(
    condition: Condition, stored: Unit, ended: Held, office: Office, payments: Desk, feed: Feed
) -> None:
    other = office.bring(stored, condition)
    etag, told = stored.etag, feed.types_of(stored)
    answer = payments.did_to_booking(ended.reference, "confirm-deposit")
    assert answer["status"] == "refund-due"
    assert answer["depositConfirmedAt"] is not None
    assert (stored.etag, feed.types_of(stored)) == (etag, told)
    if other is not None:
        seen = succeeded(other.read())["status"]
        assert seen == ("open" if condition is Condition.HELD else condition)


def test_a_unit_sold_to_a_walk_in_is_taken_too(stored: Unit, ended: Held, desk: Desk, payments: Desk) -> None:
    desk.did(stored, "close-sale", BUYER)
    assert payments.did_to_booking(ended.reference, "confirm-deposit")["status"] == "refund-due"


def test_saying_it_again_changes_nothing(
    stored: Unit, ended: Held, payments: Desk, desk: Desk, feed: Feed
) -> None:
    first = payments.did_to_booking(ended.reference, "confirm-deposit")
    etag, told, noted = stored.etag, feed.types_of(stored), len(desk.history(stored))
    for _ in range(3):
        assert payments.did_to_booking(ended.reference, "confirm-deposit") == first
    assert (stored.etag, feed.types_of(stored), len(desk.history(stored))) == (etag, told, noted)


def test_a_deposit_that_is_due_back_reserves_nothing_later(
    stored: Unit, cancelled: Held, payments: Desk, desk: Desk
) -> None:
    desk.did(stored, "take-off-sale")
    due = payments.did_to_booking(cancelled.reference, "confirm-deposit")
    desk.did(stored, "put-on-sale")
    assert payments.did_to_booking(cancelled.reference, "confirm-deposit") == due
    assert due["status"] == "refund-due"
    assert stored.read()["status"] == "available"


def test_of_two_late_deposits_one_gets_the_unit(
    server: InProcessApp, payments_key: Key, stored: Unit, office: Office, feed: Feed
) -> None:
    late = [office.signed(stored)]
    assert late[0].cancel().status_code == 204
    late.append(office.signed(stored))
    assert late[1].cancel().status_code == 204

    def confirm(held: Held) -> str:
        with integration_client(server.address, payments_key.text) as http:
            return str(Desk(http).did_to_booking(held.reference, "confirm-deposit")["status"])

    with ThreadPoolExecutor(2) as pool:
        statuses = sorted(pool.map(confirm, late))
    assert statuses == ["refund-due", "reserved"]
    assert feed.types_of(stored)[-2:] == ["unit.held", "unit.reserved"]
    assert chain_is_unbroken(feed.of(stored))


def test_a_reservation_that_lapsed_makes_its_deposit_due(
    stored: Unit, office: Office, desk: Desk, payments: Desk, sql: Sql, feed: Feed
) -> None:
    desk.settle(stored.project, reservationDays=TINY_RESERVATION_DAYS)
    held = office.reserved(stored)
    wait_for_the_end(sql, stored)
    assert desk.booking(held.reference)["status"] == "refund-due"
    assert stored.read()["status"] == "available"
    release(stored)
    assert feed.types_of(stored) == ["unit.held", "unit.reserved", "unit.released"]
    assert feed.of(stored)[-1]["data"]["booking"] is None
    assert payments.did_to_booking(held.reference, "confirm-deposit")["status"] == "refund-due"
    assert stored.read()["status"] == "available"


def test_a_reservation_that_has_just_lapsed_is_not_sold(
    stored: Unit, office: Office, desk: Desk, sql: Sql
) -> None:
    desk.settle(stored.project, reservationDays=TINY_RESERVATION_DAYS)
    held = office.reserved(stored)
    wait_for_the_end(sql, stored)
    conflict(desk.act_on_booking(held.reference, "close-sale"), "transition-not-allowed", "available")
    conflict(desk.act_on_booking(held.reference, "extend"), "transition-not-allowed", "available")


def test_a_reserved_again_booking_goes_on_to_the_sale(
    stored: Unit, ended: Held, payments: Desk, desk: Desk
) -> None:
    payments.did_to_booking(ended.reference, "confirm-deposit")
    assert desk.did_to_booking(ended.reference, "close-sale")["status"] == "sold"
    assert succeeded(ended.read())["status"] == "sold"
