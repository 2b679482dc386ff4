"""A buyer's own booking."""

import re

import httpx
import pytest

from tests.support import states
from tests.support.bodies import full
from tests.support.buying import DETAILS, Buyer, Hold, booking_url
from tests.support.client import Unit
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql

BOOKING_FIELDS = {
    "reference",
    "status",
    "unitCode",
    "projectSlug",
    "holdExpiresAt",
    "reservedUntil",
    "terms",
    "buyer",
    "signedAt",
    "depositConfirmedAt",
    "closedAt",
    "buyerErasedAt",
}
TERMS_FIELDS = {"priceSar", "vatIncluded", "vatRate", "totalSar", "depositPercent", "depositSar"}


def test_an_open_booking_has_exactly_its_members(held: Hold) -> None:
    booking = held.read()
    assert set(booking) == BOOKING_FIELDS
    assert set(booking["terms"]) == TERMS_FIELDS
    named = ("reference", "status", "unitCode", "projectSlug", "holdExpiresAt")
    assert tuple(booking[name] for name in named) == (
        held.reference,
        "open",
        held.unit.code,
        held.unit.project.slug,
        held.expires_at,
    )
    empty = ("reservedUntil", "buyer", "signedAt", "depositConfirmedAt", "closedAt", "buyerErasedAt")
    assert [booking[name] for name in empty] == [None] * 6


def test_a_booking_tells_how_far_it_has_come(held: Hold, sql: Sql) -> None:
    signed = held.sign()
    assert (signed["status"], signed) == ("signed", held.read())
    states.confirm_deposit(sql, held)
    reserved = held.read()
    assert (reserved["status"], reserved["signedAt"]) == ("reserved", signed["signedAt"])
    assert reserved["reservedUntil"] > reserved["depositConfirmedAt"] >= reserved["signedAt"]
    states.act(sql, held.unit, "close-sale")
    sold = held.read()
    assert (sold["status"], set(sold)) == ("sold", BOOKING_FIELDS)
    assert sold["closedAt"] >= sold["depositConfirmedAt"] == reserved["depositConfirmedAt"]


def test_the_token_is_good_for_the_whole_life_of_the_booking(held: Hold, buyer: Buyer) -> None:
    held.cancel()
    buyer.hold(held.unit).sign()
    assert held.read()["status"] == "cancelled"


def test_a_booking_is_no_page_for_caches(held: Hold) -> None:
    assert held.get().headers["cache-control"] == "no-store"


def test_a_reference_is_easy_to_read_aloud(held: Hold) -> None:
    assert re.fullmatch(r"[2346789FHKMQRWXY]{3}(-[2346789FHKMQRWXY]{3}){2}", held.reference)


def test_a_reference_is_read_however_it_is_written(held: Hold) -> None:
    plain = held.reference.replace("-", "")
    for written in (held.reference.lower(), plain, plain.lower(), f"%20{held.reference}%20"):
        response = held.buyer.send("GET", booking_url(written), token=held.token)
        assert response.json() == held.get().json(), written


def test_a_reference_in_lower_case_can_be_signed_and_cancelled(held: Hold) -> None:
    written = Hold(held.buyer, held.unit, held.reference.lower(), held.token, held.expires_at)
    assert written.sign()["reference"] == held.reference
    assert written.cancel().status_code == 204


@pytest.mark.parametrize(("method", "rest"), [("GET", ""), ("HEAD", ""), ("DELETE", ""), ("POST", "/sign")])
def test_without_a_token_it_is_401(held: Hold, method: str, rest: str) -> None:
    response = held.buyer.send(method, held.url + rest)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert held.read()["status"] == "open"


def test_any_other_token_is_404(buyer: Buyer, http: httpx.Client, held: Hold, api_key: str) -> None:
    second = Unit(http, held.unit.project, "A-102")
    second.create(full())
    other = buyer.hold(second)
    for token in (other.token, "nonsense", api_key, held.token[:-1], held.token.swapcase(), held.token + "A"):
        stranger = Hold(buyer, held.unit, held.reference, token, held.expires_at)
        problem(stranger.get(), 404)
        problem(stranger.try_to_sign(), 404)
        problem(stranger.cancel(), 404)
    assert held.read()["status"] == "open"


def test_an_unknown_reference_and_a_wrong_token_have_one_answer(buyer: Buyer, held: Hold) -> None:
    wrong = problem(buyer.send("GET", held.url, token="nonsense"), 404)
    # The first is well formed and was never issued.
    for reference in ("WWW-WWW-WWW", "nonsense", "1", "x" * 300, "%00", held.reference[:-1]):
        unknown = problem(buyer.send("GET", booking_url(reference), token=held.token), 404)
        assert (unknown["type"], unknown["title"]) == (wrong["type"], wrong["title"])


def test_a_reference_that_is_no_text_is_422(buyer: Buyer, held: Hold) -> None:
    invalid(buyer.send("GET", booking_url("%FF"), token=held.token), "/path/reference")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST"])
def test_a_booking_is_read_or_cancelled(held: Hold, method: str) -> None:
    response = held.buyer.send(method, held.url, token=held.token)
    problem(response, 405)
    assert sorted(response.headers["allow"].split(", ")) == ["DELETE", "GET", "HEAD"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_signature_is_posted(held: Hold, method: str) -> None:
    response = held.buyer.send(method, f"{held.url}/sign", token=held.token)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_query_is_422(held: Hold) -> None:
    for method in ("GET", "DELETE"):
        invalid(held.buyer.send(method, f"{held.url}?force=1", token=held.token), "/query/force")
    assert held.read()["status"] == "open"


def test_a_cancelled_hold_frees_the_unit_at_once(buyer: Buyer, held: Hold, feed: Feed) -> None:
    response = held.cancel()
    assert (response.status_code, response.content) == (204, b"")
    unit = held.unit.read()
    assert (unit["status"], unit["holdExpiresAt"]) == ("available", None)
    released = feed.of(held.unit)[-1]
    assert feed.types_of(held.unit) == ["unit.held", "unit.released"]
    assert released["createdAt"] == unit["updatedAt"]
    assert chain_is_unbroken(feed.of(held.unit))
    assert held.read()["status"] == "cancelled"
    assert buyer.hold(held.unit).reference != held.reference


def test_a_signed_hold_can_be_cancelled(signed: Hold) -> None:
    assert signed.cancel().status_code == 204
    booking = signed.read()
    assert (booking["status"], booking["buyer"]["name"]) == ("cancelled", DETAILS["buyerName"])


def test_cancelling_again_changes_nothing(buyer: Buyer, held: Hold, feed: Feed) -> None:
    held.cancel()
    other = buyer.hold(held.unit)
    assert held.cancel().status_code == 204
    assert other.read()["status"] == "open"
    assert feed.types_of(held.unit) == ["unit.held", "unit.released", "unit.held"]


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_a_buyer_cannot_cancel_what_is_reserved_or_sold(stored: Unit, sql: Sql, status: str) -> None:
    own = states.bring_to(sql, stored, status)
    conflict(own.cancel(), "transition-not-allowed", status)
    assert own.read()["status"] == status


def test_a_lapsed_hold_cannot_be_cancelled(buyer: Buyer, stored: Unit, sql: Sql) -> None:
    states.settle(sql, stored, holdSeconds=0.02)
    lapsed = buyer.hold(stored)
    states.wait_until(sql, lapsed.ends)
    conflict(lapsed.cancel(), "hold-lapsed", "available")
    assert lapsed.read()["status"] == "lapsed"
