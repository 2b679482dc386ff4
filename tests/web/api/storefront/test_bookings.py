"""A buyer's own booking: read, signed once and for good, cancelled."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.support import exact_json
from tests.support.backoffice import BOOKING_FIELDS, Desk
from tests.support.bodies import full, without
from tests.support.buying import ANOTHER_BUYER, BUYER, Buyer, Hold, booking_url
from tests.support.client import JSON, Unit
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql

TERMS_FIELDS = {"priceSar", "vatIncluded", "vatRate", "totalSar", "depositPercent", "depositSar"}
POINTERS = tuple(f"/{name}" for name in BUYER)


def test_an_open_booking_has_exactly_its_members(held: Hold) -> None:
    response, booking = held.get(), held.read()
    assert response.headers["cache-control"] == "no-store"
    assert set(booking) == BOOKING_FIELDS
    assert set(booking["terms"]) == TERMS_FIELDS
    named = {
        "reference": held.reference,
        "status": "open",
        "unitCode": held.unit.code,
        "projectSlug": held.unit.project.slug,
        "holdExpiresAt": held.expires_at,
    }
    others = dict.fromkeys(BOOKING_FIELDS - named.keys() - {"terms"})
    assert booking == named | others | {"terms": booking["terms"]}


def test_a_booking_tells_how_far_it_has_come(held: Hold, desk: Desk) -> None:
    signed = held.sign()
    assert (signed["status"], signed) == ("signed", held.read())
    desk.did_to_booking(held.reference, "confirm-deposit")
    reserved = held.read()
    assert (reserved["status"], reserved["signedAt"]) == ("reserved", signed["signedAt"])
    assert reserved["reservedUntil"] > reserved["depositConfirmedAt"] >= reserved["signedAt"]
    desk.did(held.unit, "close-sale")
    sold = held.read()
    assert (sold["status"], set(sold)) == ("sold", BOOKING_FIELDS)
    assert sold["closedAt"] >= sold["depositConfirmedAt"] == reserved["depositConfirmedAt"]


def test_a_reference_is_easy_to_read_aloud_and_read_however_it_is_written(held: Hold) -> None:
    assert re.fullmatch(r"[2346789FHKMQRWXY]{3}(-[2346789FHKMQRWXY]{3}){2}", held.reference)
    plain = held.reference.replace("-", "")
    for written in (held.reference.lower(), plain, plain.lower(), f"%20{held.reference}%20"):
        response = held.buyer.send("GET", booking_url(written), token=held.token)
        assert response.json() == held.get().json(), written
    written_small = replace(held, reference=held.reference.lower())
    assert written_small.sign()["reference"] == held.reference
    assert written_small.cancel().status_code == 204


@pytest.mark.parametrize(("method", "rest"), [("GET", ""), ("HEAD", ""), ("DELETE", ""), ("POST", "/sign")])
def test_without_a_token_it_is_401(held: Hold, method: str, rest: str) -> None:
    response = held.buyer.send(method, held.url + rest)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert held.read()["status"] == "open"


def test_any_other_token_and_an_unknown_reference_have_one_answer(
    buyer: Buyer, http: httpx.Client, held: Hold, api_key: str
) -> None:
    second = Unit(http, held.unit.project, "A-102")
    second.create(full())
    other = buyer.hold(second)
    refusals = []
    for token in (other.token, "nonsense", api_key, held.token[:-1], held.token.swapcase(), held.token + "A"):
        stranger = replace(held, token=token)
        refusals += [stranger.get(), stranger.try_to_sign(), stranger.cancel()]
    # The first is well formed and was never issued.
    for reference in ("WWW-WWW-WWW", "nonsense", "1", "x" * 300, "%00", held.reference[:-1]):
        refusals.append(buyer.send("GET", booking_url(reference), token=held.token))
    bodies = [problem(refusal, 404) for refusal in refusals]
    assert len({(body["type"], body["title"]) for body in bodies}) == 1
    assert held.read()["status"] == "open"
    invalid(buyer.send("GET", booking_url("%FF"), token=held.token), "/path/reference")


def test_other_methods_and_queries_are_refused(held: Hold) -> None:
    for method in ("PUT", "PATCH", "POST"):
        response = held.buyer.send(method, held.url, token=held.token)
        problem(response, 405)
        assert sorted(response.headers["allow"].split(", ")) == ["DELETE", "GET", "HEAD"]
    for method in ("GET", "PUT", "DELETE"):
        response = held.buyer.send(method, f"{held.url}/sign", token=held.token)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
    for method in ("GET", "DELETE"):
        invalid(held.buyer.send(method, f"{held.url}?force=1", token=held.token), "/query/force")
    assert held.read()["status"] == "open"


# Cancelling


def test_a_cancelled_hold_frees_the_unit_at_once_and_cancelling_again_changes_nothing(
    buyer: Buyer, held: Hold, feed: Feed
) -> None:
    response = held.cancel()
    assert (response.status_code, response.content) == (204, b"")
    unit = held.unit.read()
    assert (unit["status"], unit["holdExpiresAt"]) == ("available", None)
    assert feed.of(held.unit)[-1]["createdAt"] == unit["updatedAt"]
    conflict(held.try_to_sign(), "transition-not-allowed", "available")
    other = buyer.hold(held.unit)
    assert other.reference != held.reference
    assert held.cancel().status_code == 204
    # The token is good for the whole life of the booking.
    booking = held.read()
    assert (booking["status"], booking["signedAt"]) == ("cancelled", None)
    assert other.read()["status"] == "open"
    assert feed.types_of(held.unit) == ["unit.held", "unit.released", "unit.held"]
    assert chain_is_unbroken(feed.of(held.unit))
    other.sign()
    assert other.cancel().status_code == 204
    booking = other.read()
    assert (booking["status"], booking["buyer"]["name"]) == ("cancelled", BUYER["buyerName"])


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_what_is_reserved_or_sold_is_not_cancelled_and_signed_by_repeating_alone(
    stored: Unit, desk: Desk, status: str
) -> None:
    own = desk.book(stored, status)
    before = own.read()
    conflict(own.cancel(), "transition-not-allowed", status)
    assert own.sign() == before
    conflict(own.send_signature(ANOTHER_BUYER), "transition-not-allowed", status)
    assert own.read() == before


# Signing


def test_a_signature_names_the_buyer_once_and_leaves_the_unit_as_it_is(held: Hold, feed: Feed) -> None:
    before = held.unit.get()
    booking = held.sign()
    assert (booking["status"], booking["holdExpiresAt"]) == ("signed", held.expires_at)
    assert booking["signedAt"] is not None
    name, email, phone = BUYER.values()
    assert booking["buyer"] == {"name": name, "email": email, "phone": phone}
    assert held.read() == booking == held.sign()
    for detail, value in ANOTHER_BUYER.items():
        conflict(held.try_to_sign(**{detail: value}), "transition-not-allowed", "held")
    assert held.read() == booking
    after = held.unit.get()
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])
    assert feed.types_of(held.unit) == ["unit.held"]


def test_of_two_signatures_at_once_one_stands(held: Hold) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(held.send_signature, [BUYER, ANOTHER_BUYER]))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    (winner,) = [answer for answer in answers if answer.status_code == 200]
    assert held.get().json() == winner.json()


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, POINTERS),
        (without(BUYER, "buyerPhone"), ["/buyerPhone"]),
        ({"buyerName": 1, "buyerEmail": "none", "buyerPhone": "call me"}, POINTERS),
        ({"buyerName": "", "buyerEmail": "", "buyerPhone": None, "age": 4}, [*POINTERS, "/age"]),
        ({**BUYER, "status": "signed", "terms": {}}, ["/status", "/terms"]),
        ([], [""]),
        (None, [""]),
    ],
    ids=str,
)
def test_every_fault_of_a_signature_is_named_at_once(held: Hold, body: Any, pointers: list[str]) -> None:
    invalid(held.send_signature(body), *pointers)
    assert held.read()["status"] == "open"


def test_details_that_cannot_be_right_are_422(held: Hold) -> None:
    names = ("\u200f \n", "Layla\u200c", "Lay\nla", "Lay\u0000la", "Lay\u202ela", "x" * 201, "L.", "12 345")
    emails = (
        *("layla", "layla@", "@example.com", "a b@example.com", "a@b@example.com", "x" * 250 + "@x.sa"),
        *("", "@"),
    )
    phones = ("+", "()-", "12", "050x112233", "1" * 51, 966501234567, "+966 50", "0" * 18)
    for name, email, phone in zip(names, emails, phones, strict=True):
        invalid(held.send_signature({"buyerName": name, "buyerEmail": email, "buyerPhone": phone}), *POINTERS)


@pytest.mark.parametrize(
    "details",
    [
        ("ليلى بنت محمد", "ليلى@مثال.السعودية", "٠٥٠١٢٣٤٥٦٧"),
        ("می\u200cنا", "a+b@localhost", "+966 (50) 123-45.67/8"),
        ("ශ්\u200dරී", "王@example.com", "0020 2 1234 5678"),
        ("O'Neill-Ünal, Jr.", "x@y", "0501112233"),
        ("x" * 200, "x@y", "0501112233"),
        ("Wu", "x@y", "+966\u00a050\u202f123\u20114567"),
        ("李明", "x@y", "050\u2013123\u20134567"),
    ],
)
def test_details_of_people_everywhere_are_kept_and_what_is_pasted_along_is_dropped(
    held: Hold, details: tuple[str, str, str]
) -> None:
    for before, after in (("", ""), (" ", "\n"), ("\u202b\u200f ", " \u202c\u200e")):
        pasted = [f"{before}{detail}{after}" for detail in details]
        response = held.send_signature(dict(zip(BUYER, pasted, strict=True)))
        assert response.status_code == 200, response.text
        assert tuple(response.json()["buyer"].values()) == details


def test_the_checks_of_a_signature_come_in_their_order(held: Hold) -> None:
    def send(token: str | None, content: str, media_type: str = JSON, query: str = "") -> int:
        headers = {"Content-Type": media_type} if media_type else {}
        url = f"{held.url}/sign{query}"
        return held.buyer.send("POST", url, token=token, content=content, headers=headers).status_code

    assert send(None, "{", "text/plain") == 401
    assert send("nonsense", "{", "text/plain") == 404, "the body of a stranger is not read"
    assert send(held.token, "{", "text/plain") == 415
    assert send(held.token, "", "") == 415
    assert send(held.token, " " * (16 * 1024 + 1)) == 413
    assert send(held.token, "{", query="?x=1") == 400
    assert send(held.token, "") == 400
    assert send(held.token, "{}") == 422
    assert held.buyer.send("PUT", f"{held.url}/sign").status_code == 401
    assert replace(held, token="nonsense").try_to_sign().status_code == 404
    # No token opens what is no reference, so the body is not read.
    nowhere = f"{booking_url('%FF')}/sign?colour=blue"
    for media_type in (JSON, "text/plain"):
        headers = {"Content-Type": media_type}
        response = held.buyer.send("POST", nowhere, token=held.token, content="{}", headers=headers)
        if media_type == JSON:
            invalid(response, "/path/reference", "/query/colour")
        else:
            problem(response, 415)
    assert held.read()["status"] == "open"


def test_a_token_that_is_replaced_while_the_body_arrives_signs_nothing(
    held: Hold, desk: Desk, sql: Sql
) -> None:
    """The server asks for the body once the token has opened the booking."""
    statement = "update booking set token_hash = sha256('another') where reference = $1"

    def body() -> Iterator[bytes]:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(sql.execute, statement, held.reference).result()
        yield exact_json.write(BUYER).encode()

    headers = {"Content-Type": JSON}
    url = f"{held.url}/sign"
    problem(held.buyer.send("POST", url, token=held.token, content=body(), headers=headers), 404)
    assert desk.booking(held.reference)["status"] == "open"
