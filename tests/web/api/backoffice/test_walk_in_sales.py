"""A sale to a buyer who walked in: no hold, no deposit, a booking all the same."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import ANOTHER_BUYER, BUYER, STOREFRONT, Desk, Held, ask_for_hold, succeeded
from tests.support.bodies import full, without
from tests.support.client import Unit, integration_client, number
from tests.support.feed import Feed
from tests.support.keys import Key
from tests.support.problems import conflict, invalid
from tests.web.api.backoffice.conditions import Office

POINTERS = ("/buyerName", "/buyerEmail", "/buyerPhone")


def test_it_makes_a_booking_that_is_sold(stored: Unit, desk: Desk) -> None:
    answer = desk.did(stored, "close-sale", BUYER)
    assert answer["status"] == "sold"
    booking = desk.booking(answer["bookingReference"])
    assert (booking["status"], booking["unitCode"]) == ("sold", stored.code)
    assert booking["buyer"] == {
        "name": BUYER["buyerName"],
        "email": BUYER["buyerEmail"],
        "phone": BUYER["buyerPhone"],
    }
    assert booking["closedAt"] == answer["updatedAt"]
    absent = ("holdExpiresAt", "reservedUntil", "signedAt", "depositConfirmedAt")
    assert [booking[name] for name in absent] == [None] * 4


def test_its_terms_are_those_of_the_unit(stored: Unit, desk: Desk) -> None:
    terms = desk.booking(desk.did(stored, "close-sale", BUYER)["bookingReference"])["terms"]
    assert number(terms["priceSar"]) == 950_000
    assert number(terms["totalSar"]) == 1_092_500
    assert number(terms["depositSar"]) == number(terms["totalSar"]) * number(terms["depositPercent"]) / 100


def test_its_event_names_the_booking(stored: Unit, desk: Desk, feed: Feed) -> None:
    reference = desk.did(stored, "close-sale", BUYER)["bookingReference"]
    (event,) = feed.of(stored)
    assert (event["type"], event["data"]["unit"]["previousStatus"]) == ("unit.sold", "available")
    assert event["data"]["booking"] == {"reference": reference}


@pytest.mark.parametrize("body", [None, {}])
def test_without_a_buyer_it_names_all_that_is_missing(stored: Unit, desk: Desk, body: object) -> None:
    etag = stored.etag
    refusal = invalid(desk.act(stored, "close-sale", body), *POINTERS)
    messages = {error["message"] for error in refusal["errors"]}
    assert messages == {"This field is required: the unit is available."}
    assert stored.etag == etag
    assert desk.bookings(project=stored.project.slug)["bookings"] == []


def test_half_a_buyer_is_no_buyer(stored: Unit, desk: Desk) -> None:
    invalid(desk.act(stored, "close-sale", without(BUYER, "buyerPhone")), "/buyerPhone")
    faulty = {"buyerName": " ", "buyerEmail": "nobody", "buyerPhone": "call me", "buyerAge": 30}
    invalid(desk.act(stored, "close-sale", faulty), *POINTERS, "/buyerAge")
    invalid(desk.act(stored, "close-sale", {**BUYER, "buyerName": None}), "/buyerName")
    assert stored.read()["status"] == "available"


def test_the_buyer_of_a_reserved_unit_is_known_already(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.reserved(stored)
    refusal = conflict(desk.act(stored, "close-sale", ANOTHER_BUYER), "transition-not-allowed", "reserved")
    assert refusal["fields"] == ["buyerName", "buyerEmail", "buyerPhone"]
    assert stored.read()["status"] == "reserved"
    assert desk.did(stored, "close-sale")["bookingReference"] == held.reference
    booking = desk.booking(held.reference)
    assert (booking["status"], booking["buyer"]["name"]) == ("sold", BUYER["buyerName"])


@pytest.mark.parametrize("way", ["held", "sold"])
def test_a_unit_that_is_not_free_is_not_sold_to_a_walk_in(
    stored: Unit, office: Office, desk: Desk, way: str
) -> None:
    getattr(office, way)(stored)
    etag = stored.etag
    conflict(desk.act(stored, "close-sale", ANOTHER_BUYER), "transition-not-allowed", way)
    assert stored.etag == etag
    assert len(desk.bookings(project=stored.project.slug)["bookings"]) == 1


def test_a_sale_that_is_revoked_has_no_deposit_to_give_back(stored: Unit, admin: Desk) -> None:
    reference = admin.did(stored, "close-sale", BUYER)["bookingReference"]
    admin.did(stored, "revoke-sale")
    assert admin.booking(reference)["status"] == "cancelled"
    conflict(admin.act_on_booking(reference, "mark-refunded"), "transition-not-allowed", "unavailable")


def test_there_is_no_deposit_to_confirm(stored: Unit, desk: Desk) -> None:
    reference = desk.did(stored, "close-sale", BUYER)["bookingReference"]
    refusal = conflict(desk.act_on_booking(reference, "confirm-deposit"), "not-signed", "sold")
    assert refusal["detail"] == "This sale was closed without a hold; there is no deposit to confirm."


def test_it_is_not_signed_afterwards(stored: Unit, desk: Desk, public: httpx.Client) -> None:
    reference = desk.did(stored, "close-sale", BUYER)["bookingReference"]
    own = Held(public, reference, desk.did_to_booking(reference, "reissue-link")["token"])
    conflict(own.sign(), "transition-not-allowed", "sold")
    assert desk.booking(reference)["signedAt"] is None


def test_the_buyer_gets_a_link_from_staff(stored: Unit, desk: Desk, public: httpx.Client) -> None:
    reference = desk.did(stored, "close-sale", BUYER)["bookingReference"]
    token = desk.did_to_booking(reference, "reissue-link")["token"]
    url = f"{STOREFRONT}/bookings/{reference}"
    seen = succeeded(public.get(url, headers={"Authorization": f"Bearer {token}"}))
    assert (seen["status"], seen["buyer"]["name"]) == ("sold", BUYER["buyerName"])


def test_a_sold_unit_keeps_the_terms_agreed_whatever_its_price_becomes(stored: Unit, desk: Desk) -> None:
    reference = desk.did(stored, "close-sale", BUYER)["bookingReference"]
    assert stored.put(full(priceSar=1)).status_code == 200
    assert number(desk.booking(reference)["terms"]["priceSar"]) == 950_000


def test_whoever_is_first_has_the_unit(stored: Unit, desk: Desk, public: httpx.Client) -> None:
    desk.did(stored, "close-sale", BUYER)
    conflict(ask_for_hold(public, stored), "not-available", "sold")
    conflict(desk.act(stored, "close-sale", ANOTHER_BUYER), "transition-not-allowed", "sold")


def test_of_many_sales_at_once_one_is_made(
    server: InProcessApp, backoffice_key: Key, stored: Unit, desk: Desk, feed: Feed
) -> None:
    def sell(number: int) -> int:
        buyer = {**BUYER, "buyerName": f"Buyer {number}"}
        with integration_client(server.address, backoffice_key.text) as http:
            return Desk(http).act(stored, "close-sale", buyer).status_code

    with ThreadPoolExecutor(10) as pool:
        assert sorted(pool.map(sell, range(10))) == [200] + [409] * 9
    (booking,) = desk.bookings(project=stored.project.slug)["bookings"]
    (event,) = feed.of(stored)
    assert event["data"]["booking"] == {"reference": booking["reference"]}
    assert len(desk.history(stored)) == 2
