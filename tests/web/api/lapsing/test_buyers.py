"""A hold is over at its time for buyers and payment systems, even when nobody has released it yet."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import states
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold, offers_url
from tests.support.client import Unit, exact
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict
from tests.support.sql import Sql


@pytest.fixture
def lapsed(stored: Unit, sql: Sql) -> Hold:
    held = states.hold(sql, stored, expires_in=0.02)
    states.wait_until(sql, held.ends)
    states.settle(sql, stored, holdSeconds=300)
    return held


@pytest.fixture
def lapsed_signed(stored: Unit, sql: Sql) -> Hold:
    held = states.hold(sql, stored, expires_in=1)
    held.sign()
    states.wait_until(sql, held.ends)
    states.settle(sql, stored, holdSeconds=300)
    return held


@pytest.fixture
def other(stored: Unit) -> Buyer:
    return Buyer(stored.http)


def offered(unit: Unit, status: str) -> list[str]:
    response = Buyer(unit.http).send("GET", f"{offers_url(unit.project)}?status={status}")
    assert response.status_code == 200, response.text
    return [item["code"] for item in response.json()["units"]]


def test_nothing_of_the_release_is_written_yet(
    lapsed: Hold, is_stored_as: Callable[[Unit, str], bool]
) -> None:
    assert is_stored_as(lapsed.unit, "held")


def test_the_storefront_shows_an_available_unit(lapsed: Hold, other: Buyer) -> None:
    seen = other.see(lapsed.unit)
    assert (seen["status"], seen["holdExpiresAt"]) == ("available", None)
    (listed,) = exact(other.send("GET", offers_url(lapsed.unit.project)))["units"]
    assert listed == seen


def test_the_filter_of_the_storefront_sees_an_available_unit(lapsed: Hold) -> None:
    assert (offered(lapsed.unit, "available"), offered(lapsed.unit, "held")) == ([lapsed.unit.code], [])


def test_the_booking_reads_as_lapsed(lapsed: Hold) -> None:
    booking = lapsed.read()
    assert (booking["status"], booking["holdExpiresAt"]) == ("lapsed", lapsed.expires_at)


def test_staff_see_the_booking_as_its_buyer_does(lapsed: Hold, sql: Sql) -> None:
    assert states.staff_booking(sql, lapsed) == lapsed.get().json()


def test_the_filter_of_bookings_sees_a_lapsed_one(lapsed: Hold, sql: Sql) -> None:
    def found(status: str) -> list[str]:
        url = f"/v1/backoffice/bookings?project={lapsed.unit.project.slug}&status={status}"
        answer = states.send_as_staff(sql, lapsed.unit.http, "GET", url).json()
        return [booking["reference"] for booking in answer["bookings"]]

    assert (found("lapsed"), found("open"), found("signed")) == ([lapsed.reference], [], [])


def test_it_cannot_be_signed(lapsed: Hold) -> None:
    body = conflict(lapsed.try_to_sign(), "hold-lapsed", "available")
    assert "holdExpiresAt" not in body
    assert lapsed.read()["signedAt"] is None


def test_a_signature_cannot_be_repeated(lapsed_signed: Hold) -> None:
    conflict(lapsed_signed.try_to_sign(), "hold-lapsed", "available")


def test_it_cannot_be_cancelled(lapsed: Hold) -> None:
    conflict(lapsed.cancel(), "hold-lapsed", "available")


@pytest.mark.parametrize("action", ["cancel", "extend", "close-sale"])
def test_staff_can_do_nothing_for_it(lapsed: Hold, sql: Sql, action: str) -> None:
    url = f"/v1/backoffice/bookings/{lapsed.reference}/{action}"
    response = states.send_as_staff(sql, lapsed.unit.http, "POST", url)
    conflict(response, "transition-not-allowed", "available")


@pytest.mark.parametrize("action", ["cancel-hold", "extend", "confirm-deposit"])
def test_staff_can_do_nothing_to_the_unit_that_needs_a_hold(lapsed: Hold, sql: Sql, action: str) -> None:
    url = f"/v1/backoffice/projects/{lapsed.unit.project.slug}/units/{lapsed.unit.code}/{action}"
    response = states.send_as_staff(sql, lapsed.unit.http, "POST", url)
    assert "holdExpiresAt" not in conflict(response, "transition-not-allowed", "available")


def test_another_buyer_may_hold_at_once(lapsed: Hold, other: Buyer, feed: Feed) -> None:
    fresh = other.hold(lapsed.unit)
    released = feed.of(lapsed.unit)[1]
    assert feed.types_of(lapsed.unit) == ["unit.held", "unit.released", "unit.held"]
    assert released["createdAt"] == lapsed.expires_at
    assert chain_is_unbroken(feed.of(lapsed.unit))
    assert (lapsed.read()["status"], fresh.read()["status"]) == ("lapsed", "open")


def test_of_many_buyers_one_gets_it(lapsed: Hold, other: Buyer, feed: Feed) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: other.ask(lapsed.unit), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert feed.types_of(lapsed.unit) == ["unit.held", "unit.released", "unit.held"]


def test_the_old_token_opens_a_new_hold(lapsed: Hold, other: Buyer) -> None:
    response = other.ask(lapsed.unit, token=lapsed.token)
    assert response.status_code == 201
    assert response.json()["reference"] != lapsed.reference
    assert response.json()["token"] != lapsed.token


def test_its_idempotency_key_gives_nothing_back(stored: Unit, sql: Sql, other: Buyer) -> None:
    states.settle(sql, stored, holdSeconds=0.02)
    held = other.hold(stored, Idempotency_Key="once")
    states.wait_until(sql, held.ends)
    conflict(other.ask(stored, Idempotency_Key="once"), "hold-lapsed", "available")


def test_an_unsigned_booking_takes_no_deposit(lapsed: Hold, sql: Sql) -> None:
    url = f"/v1/backoffice/bookings/{lapsed.reference}/confirm-deposit"
    response = states.send_as_staff(sql, lapsed.unit.http, "POST", url)
    conflict(response, "not-signed", "available")


def test_a_late_deposit_reserves_the_unit_that_is_still_free(
    lapsed_signed: Hold, sql: Sql, feed: Feed
) -> None:
    booking = states.confirm_deposit(sql, lapsed_signed)
    assert (booking["status"], lapsed_signed.unit.read()["status"]) == ("reserved", "reserved")
    events = feed.of(lapsed_signed.unit)
    assert [event["type"] for event in events] == [
        "unit.held",
        "unit.released",
        "unit.held",
        "unit.reserved",
    ]
    assert chain_is_unbroken(events)
    assert events[-1]["data"]["booking"] == {"reference": lapsed_signed.reference}


def test_a_late_deposit_reserves_on_the_terms_that_were_agreed(lapsed_signed: Hold, sql: Sql) -> None:
    agreed = lapsed_signed.read()["terms"]
    assert lapsed_signed.unit.patch({"priceSar": 5_000_000}).status_code == 200
    states.confirm_deposit(sql, lapsed_signed)
    assert lapsed_signed.read()["terms"] == agreed
    assert lapsed_signed.unit.read()["priceSar"] == 5_000_000


def test_a_deposit_that_comes_too_late_is_due_back(lapsed_signed: Hold, sql: Sql, other: Buyer) -> None:
    fresh = other.hold(lapsed_signed.unit)
    assert states.confirm_deposit(sql, lapsed_signed)["status"] == "refund-due"
    assert fresh.read()["status"] == "open"


def test_the_terms_of_the_unit_are_free_and_those_of_the_booking_stay(lapsed: Hold) -> None:
    agreed = lapsed.read()["terms"]
    assert lapsed.unit.put(full(priceSar=1, depositPercent=None)).status_code == 200
    assert lapsed.read()["terms"] == agreed
