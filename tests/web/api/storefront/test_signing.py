"""The buyer signs, once and for good."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.support import exact_json, states
from tests.support.bodies import without
from tests.support.buying import DETAILS, Hold
from tests.support.client import JSON, Unit
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql

POINTERS = tuple(f"/{name}" for name in DETAILS)
OTHER = {"buyerName": "Omar Aziz", "buyerEmail": "omar@example.com", "buyerPhone": "0501112233"}


def test_a_signature_names_the_buyer(held: Hold) -> None:
    booking = held.sign()
    assert booking["status"] == "signed"
    assert booking["signedAt"] is not None
    assert booking["buyer"] == {
        "name": DETAILS["buyerName"],
        "email": DETAILS["buyerEmail"],
        "phone": DETAILS["buyerPhone"],
    }
    assert held.read() == booking


def test_a_body_of_more_than_16_kib_is_refused(held: Hold) -> None:
    answer = held.send_signature({**DETAILS, "padding": "x" * 16 * 1024})
    problem(answer, 413)
    assert held.read()["status"] == "open"


def test_a_signature_leaves_the_unit_as_it_is(held: Hold, feed: Feed) -> None:
    before = held.unit.get()
    held.sign()
    after = held.unit.get()
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])
    assert feed.types_of(held.unit) == ["unit.held"]


def test_a_signature_does_not_lengthen_the_hold(held: Hold) -> None:
    assert held.sign()["holdExpiresAt"] == held.expires_at


def test_the_same_signature_again_changes_nothing(held: Hold) -> None:
    first = held.sign()
    assert held.sign() == first


@pytest.mark.parametrize("name", DETAILS)
def test_another_signature_is_refused(signed: Hold, name: str) -> None:
    conflict(signed.try_to_sign(**{name: OTHER[name]}), "transition-not-allowed", "held")
    assert signed.read()["buyer"]["name"] == DETAILS["buyerName"]


def test_of_two_signatures_at_once_one_stands(held: Hold) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(held.send_signature, [DETAILS, OTHER]))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    (winner,) = [answer for answer in answers if answer.status_code == 200]
    assert held.get().json() == winner.json()


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_the_same_signature_is_fine_whatever_has_come_after(stored: Unit, sql: Sql, status: str) -> None:
    own = states.bring_to(sql, stored, status)
    before = own.read()
    assert own.sign() == before
    conflict(own.send_signature(OTHER), "transition-not-allowed", status)


def test_a_cancelled_hold_cannot_be_signed(held: Hold) -> None:
    held.cancel()
    conflict(held.try_to_sign(), "transition-not-allowed", "available")
    assert held.read()["signedAt"] is None


def test_a_lapsed_hold_cannot_be_signed(stored: Unit, sql: Sql) -> None:
    lapsed = states.hold(sql, stored, expires_in=0.02)
    states.wait_until(sql, lapsed.ends)
    conflict(lapsed.try_to_sign(), "hold-lapsed", "available")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, POINTERS),
        (without(DETAILS, "buyerPhone"), ["/buyerPhone"]),
        ({**DETAILS, "buyerName": None}, ["/buyerName"]),
        ({"buyerName": 1, "buyerEmail": "none", "buyerPhone": "call me"}, POINTERS),
        ({"buyerName": "", "buyerEmail": "", "buyerPhone": "", "age": 4}, [*POINTERS, "/age"]),
        ({**DETAILS, "status": "signed", "terms": {}}, ["/status", "/terms"]),
        ([], [""]),
        ("Layla", [""]),
        (None, [""]),
    ],
    ids=str,
)
def test_every_fault_of_a_signature_is_named_at_once(held: Hold, body: Any, pointers: list[str]) -> None:
    invalid(held.send_signature(body), *pointers)
    assert held.read()["status"] == "open"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("buyerName", "\u200f \n"),
        ("buyerName", "Layla\u200c"),
        ("buyerName", "Lay\nla"),
        ("buyerName", "Lay\u0000la"),
        ("buyerName", "Lay\u202ela"),
        ("buyerName", "x" * 201),
        ("buyerEmail", "layla"),
        ("buyerEmail", "layla@"),
        ("buyerEmail", "@example.com"),
        ("buyerEmail", "a b@example.com"),
        ("buyerEmail", "a@b@example.com"),
        ("buyerEmail", "x" * 250 + "@x.sa"),
        ("buyerPhone", "+"),
        ("buyerPhone", "()-"),
        ("buyerPhone", "12"),
        ("buyerPhone", "050x112233"),
        ("buyerPhone", "1" * 51),
        ("buyerPhone", 966501234567),
    ],
)
def test_details_that_cannot_be_right_are_422(held: Hold, name: str, value: object) -> None:
    invalid(held.try_to_sign(**{name: value}), f"/{name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("buyerName", "ليلى بنت محمد"),
        ("buyerName", "王芳"),
        ("buyerName", "می\u200cنا"),
        ("buyerName", "ශ්\u200dරී"),
        ("buyerName", "O'Neill-Ünal, Jr."),
        ("buyerName", "X"),
        ("buyerName", "x" * 200),
        ("buyerEmail", "ليلى@مثال.السعودية"),
        ("buyerEmail", "a+b@localhost"),
        ("buyerPhone", "٠٥٠١٢٣٤٥٦٧"),
        ("buyerPhone", "+966 (50) 123-45.67/8"),
        ("buyerPhone", "999"),
    ],
)
def test_details_of_people_everywhere_are_kept_as_they_were_sent(held: Hold, name: str, value: str) -> None:
    response = held.try_to_sign(**{name: value})
    assert response.status_code == 200, response.text
    assert response.json()["buyer"][name.removeprefix("buyer").lower()] == value


@pytest.mark.parametrize(("before", "after"), [(" ", ""), ("", "\n"), ("\u202b\u200f ", " \u202c\u200e")])
def test_what_is_pasted_along_with_the_details_is_dropped(held: Hold, before: str, after: str) -> None:
    pasted = {name: f"{before}{value}{after}" for name, value in DETAILS.items()}
    response = held.send_signature(pasted)
    assert response.status_code == 200, response.text
    assert list(response.json()["buyer"].values()) == list(DETAILS.values())
    assert held.sign() == response.json()


@pytest.mark.parametrize(
    ("status", "content", "media_type"),
    [
        (415, "{}", "text/plain"),
        (415, "", ""),
        (413, " " * (1024 * 1024 + 1), JSON),
        (400, "{", JSON),
        (400, "", JSON),
    ],
)
def test_a_signature_that_cannot_be_read_is_refused(
    held: Hold, status: int, content: str, media_type: str
) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    url = f"{held.url}/sign"
    problem(held.buyer.send("POST", url, token=held.token, content=content, headers=headers), status)


def test_the_checks_come_in_their_order(held: Hold) -> None:
    """No token, wrong token, wrong type, no JSON, invalid: what comes first is told first."""

    def send(token: str | None, content: str, media_type: str = JSON) -> int:
        headers = {"Content-Type": media_type}
        url = f"{held.url}/sign"
        return held.buyer.send("POST", url, token=token, content=content, headers=headers).status_code

    assert send(None, "{", "text/plain") == 401
    assert send("nonsense", "{", "text/plain") == 404, "the body of a stranger is not read"
    assert send(held.token, "{", "text/plain") == 415
    assert send(held.token, "{") == 400
    assert send(held.token, "{}") == 422
    assert held.buyer.send("PUT", f"{held.url}/sign").status_code == 401
    stranger = Hold(held.buyer, held.unit, held.reference, "nonsense", "")
    assert stranger.try_to_sign().status_code == 404


def test_a_path_that_is_no_text_is_told_in_its_order_and_with_the_query(held: Hold) -> None:
    """No token opens what it names, so the body is not read."""
    nowhere = replace(held, reference="%FF")
    url = f"{nowhere.url}/sign?colour=blue"
    headers = {"Content-Type": JSON}
    sent = held.buyer.send("POST", url, token=held.token, content="{}", headers=headers)
    invalid(sent, "/path/reference", "/query/colour")
    plain = held.buyer.send(
        "POST", url, token=held.token, content="{}", headers={"Content-Type": "text/plain"}
    )
    problem(plain, 415)


def test_a_token_that_is_replaced_while_the_body_arrives_signs_nothing(held: Hold, sql: Sql) -> None:
    """The server asks for the body once the token has opened the booking."""
    statement = "update booking set token_hash = sha256('another') where reference = $1"

    def body() -> Iterator[bytes]:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(sql.execute, statement, held.reference).result()
        yield exact_json.write(DETAILS).encode()

    headers = {"Content-Type": JSON}
    problem(
        held.buyer.send("POST", f"{held.url}/sign", token=held.token, content=body(), headers=headers), 404
    )
    assert states.staff_booking(sql, held)["status"] == "open"
