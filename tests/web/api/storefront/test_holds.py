"""A buyer holds a unit, nobody else does, and a request that is sent twice makes one hold."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.buying import Buyer, Hold, hold_in, offer_url
from tests.support.client import JSON, Unit, exact
from tests.support.feed import Feed
from tests.support.installation import client_at
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql

KEY = "5f0c3c4e-9f5d-4f9e-b7a5-0f5f1c6f3a10"
HOLD_FIELDS = {"reference", "token", "unit", "holdExpiresAt"}


def hold_url(unit: Unit) -> str:
    return f"{offer_url(unit)}/hold"


@pytest.fixture
def second(new_unit: Callable[..., Unit]) -> Unit:
    """Another unit of the same project."""
    return new_unit("A-102")


def test_a_hold_is_answered_with_what_opens_its_booking_and_is_echoed_once(
    buyer: Buyer, stored: Unit, feed: Feed, desk: Desk
) -> None:
    def seconds(held: Hold) -> float:
        return (held.ends - datetime.fromisoformat(stored.read()["updatedAt"])).total_seconds()

    response = buyer.ask(stored)
    body = exact(response)
    assert response.status_code == 201
    assert set(body) == HOLD_FIELDS
    assert body["unit"] == buyer.see(stored)
    assert (body["unit"]["status"], body["unit"]["holdExpiresAt"]) == ("held", body["holdExpiresAt"])
    assert response.headers["cache-control"] == "no-store"
    (event,) = feed.of(stored)
    assert (event["type"], event["createdAt"]) == ("unit.held", stored.read()["updatedAt"])
    assert event["data"]["unit"]["previousStatus"] == "available"
    assert event["data"]["booking"] is None
    assert body["reference"] not in str(event)
    held = hold_in(response, buyer, stored)
    assert seconds(held) == 300
    held.cancel()
    desk.settle(stored.project, holdSeconds=90.5)
    assert seconds(buyer.hold(stored)) == 90.5


def test_a_held_unit_is_not_available_and_tells_when_it_may_be(
    buyer: Buyer, held: Hold, second: Unit, api_key: str
) -> None:
    other = buyer.hold(second)
    assert other.reference != held.reference
    for token in (None, other.token, "nonsense", api_key):
        response = buyer.ask(held.unit, token=token)
        assert conflict(response, "not-available", "held")["holdExpiresAt"] == held.expires_at
        assert 1 <= int(response.headers["retry-after"]) <= 300
        assert held.reference not in response.text
        assert held.token not in response.text
    assert (held.read()["status"], other.read()["status"]) == ("open", "open")


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_a_unit_that_somebody_has_is_not_available_to_anybody(
    buyer: Buyer, stored: Unit, desk: Desk, status: str
) -> None:
    own = desk.book(stored, status)
    for token in (None, own.token):
        response = buyer.ask(stored, token=token)
        assert "holdExpiresAt" not in conflict(response, "not-available", status)
        assert "retry-after" not in response.headers


def test_a_unit_off_sale_is_not_available(buyer: Buyer, off_sale: Unit, desk: Desk) -> None:
    conflict(buyer.ask(off_sale), "not-available", "unavailable")
    desk.did(off_sale, "archive")
    conflict(buyer.ask(off_sale), "not-available", "unavailable")


def test_nobody_is_blocked_by_their_own_hold(buyer: Buyer, held: Hold, second: Unit, feed: Feed) -> None:
    etag = held.unit.etag
    response = buyer.ask(held.unit, token=held.token)
    assert response.status_code == 200
    assert hold_in(response, buyer, held.unit) == held
    assert set(response.json()) == HOLD_FIELDS
    assert (held.unit.etag, feed.types_of(held.unit)) == (etag, ["unit.held"])
    held.sign()
    assert hold_in(buyer.ask(held.unit, token=held.token), buyer, held.unit) == held
    assert held.read()["status"] == "signed"
    # For another unit the token neither helps nor hinders.
    response = buyer.ask(second, token=held.token)
    assert response.status_code == 201
    assert response.json()["token"] != held.token


def test_of_many_buyers_one_gets_the_unit_and_every_process_knows_at_once(
    buyers: list[Buyer], stored: Unit, feed: Feed
) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda buyer: buyer.ask(stored), buyers * 6))
    (winner,) = [answer for answer in answers if answer.status_code == 201]
    for answer in answers:
        if answer is not winner:
            conflict(answer, "not-available", "held")
    assert feed.types_of(stored) == ["unit.held"]
    for buyer in buyers:
        assert buyer.see(stored)["holdExpiresAt"] == winner.json()["holdExpiresAt"]
        assert hold_in(winner, buyer, stored).read()["status"] == "open"


# Idempotency keys


@pytest.fixture
def keyed(buyer: Buyer, stored: Unit) -> Hold:
    return buyer.hold(stored, Idempotency_Key=KEY)


def test_the_same_request_again_gets_the_same_hold(buyer: Buyer, keyed: Hold, feed: Feed) -> None:
    response = buyer.ask(keyed.unit, Idempotency_Key=KEY)
    assert response.status_code == 201
    assert set(response.json()) == HOLD_FIELDS
    again = hold_in(response, buyer, keyed.unit)
    assert again == keyed
    assert feed.types_of(keyed.unit) == ["unit.held"]
    assert again.sign()["status"] == keyed.read()["status"] == "signed"
    # What is signed has the buyer's data in it.
    response = buyer.ask(keyed.unit, Idempotency_Key=KEY)
    conflict(response, "idempotency-key-used", "held")
    assert keyed.token not in response.text


def test_the_same_request_at_once_on_many_processes_makes_one_hold(
    buyers: list[Buyer], stored: Unit, feed: Feed
) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda buyer: buyer.ask(stored, Idempotency_Key=KEY), buyers * 6))
    assert {answer.status_code for answer in answers} == {201}
    assert len({(answer.json()["reference"], answer.json()["token"]) for answer in answers}) == 1
    assert feed.types_of(stored) == ["unit.held"]


def test_a_key_is_known_for_its_unit_and_its_buyer_alone(
    server: InProcessApp, buyer: Buyer, keyed: Hold, second: Unit
) -> None:
    for key in ("yet another request", KEY.upper()):
        conflict(buyer.ask(keyed.unit, Idempotency_Key=key), "not-available", "held")
    conflict(buyer.ask(keyed.unit), "not-available", "held")
    # Keys are chosen by clients: whoever guesses one gets nobody's token.
    with client_at(server.address, "127.0.0.77") as elsewhere:
        response = Buyer(elsewhere).ask(keyed.unit, Idempotency_Key=KEY)
    conflict(response, "idempotency-key-used", "held")
    assert keyed.token not in response.text
    other = buyer.hold(second, Idempotency_Key=KEY)
    assert (other.reference == keyed.reference, other.token == keyed.token) == (False, False)
    assert other.read()["unitCode"] == second.code


def test_a_refused_request_may_be_sent_again_when_the_unit_is_free(buyer: Buyer, held: Hold) -> None:
    conflict(buyer.ask(held.unit, Idempotency_Key=KEY), "not-available", "held")
    held.cancel()
    assert buyer.hold(held.unit, Idempotency_Key=KEY).read()["status"] == "open"


def test_a_key_is_used_up_when_its_hold_has_lapsed(buyer: Buyer, keyed: Hold, sql: Sql) -> None:
    keyed.end_now(sql)
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY), "hold-lapsed", "available")
    assert buyer.ask(keyed.unit, Idempotency_Key="yet another request").status_code == 201


def test_a_key_is_used_up_when_its_hold_was_cancelled(buyer: Buyer, buyers: list[Buyer], keyed: Hold) -> None:
    keyed.cancel()
    with ThreadPoolExecutor(12) as pool:
        answers = pool.map(lambda buyer: buyer.ask(keyed.unit, Idempotency_Key=KEY), buyers * 6)
        for answer in answers:
            conflict(answer, "idempotency-key-used", "available")
    other = buyer.hold(keyed.unit)
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY), "idempotency-key-used", "held")
    assert other.read()["status"] == "open"
    # Who has the token of a hold is given it all the same.
    again = buyer.ask(keyed.unit, token=other.token, Idempotency_Key=KEY)
    assert (again.status_code, again.json()["reference"]) == (200, other.reference)


def test_a_key_is_used_up_when_its_link_was_issued_anew_or_its_booking_went_on(
    buyer: Buyer, keyed: Hold, desk: Desk
) -> None:
    token = desk.did_to_booking(keyed.reference, "reissue-link")["token"]
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY), "idempotency-key-used", "held")
    again = buyer.ask(keyed.unit, token=token, Idempotency_Key=KEY)
    assert (again.status_code, again.json()["reference"]) == (200, keyed.reference)
    hold_in(again, buyer, keyed.unit).sign()
    desk.did_to_booking(keyed.reference, "confirm-deposit")
    response = buyer.ask(keyed.unit, Idempotency_Key=KEY)
    conflict(response, "idempotency-key-used", "reserved")
    assert token not in response.text


# How the request may look


@pytest.mark.parametrize("content", [None, " {\n} "])
def test_a_hold_needs_no_body(buyer: Buyer, stored: Unit, content: str | None) -> None:
    assert buyer.ask(stored, content=content, Content_Type=JSON).status_code == 201


def test_a_body_with_anything_in_it_or_that_cannot_be_read_is_refused(buyer: Buyer, stored: Unit) -> None:
    for content, pointers in (('{"a": 1, "b": 2}', ["/a", "/b"]), ("[]", [""]), ("null", [""])):
        invalid(buyer.ask(stored, content=content, Content_Type=JSON), *pointers)
    # All that cannot be read is in tests/web/test_json.py.
    problem(buyer.ask(stored, content="{}", Content_Type="text/plain"), 415)
    problem(buyer.ask(stored, content="{", Content_Type=JSON), 400)
    assert stored.read()["status"] == "available"


def test_one_authorization_at_most_is_taken_and_only_a_token_counts(public: httpx.Client, held: Hold) -> None:
    both = [("Authorization", f"Bearer {held.token}")] * 2
    for method, url in (("POST", hold_url(held.unit)), ("GET", held.url), ("GET", offer_url(held.unit))):
        assert public.request(method, url, headers=both).status_code == 400
    headers = {"Authorization": "Basic bGF5bGE6c2VjcmV0"}
    assert public.get(held.url, headers=headers).status_code == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_only_a_post_holds(buyer: Buyer, stored: Unit, method: str) -> None:
    response = buyer.send(method, hold_url(stored))
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert stored.read()["status"] == "available"


def test_a_bad_address_is_422_and_an_unknown_one_404(buyer: Buyer, unit: Unit) -> None:
    projects = "/v1/storefront/projects"
    for code in ("x" * 51, "%20", "%FF", ""):
        invalid(buyer.send("POST", f"{projects}/tower/units/{code}/hold"), "/path/code")
    everything = f"{projects}/Not_A_Slug/units/{'x' * 51}/hold?now=1"
    headers = {"Content-Type": JSON, "Idempotency-Key": "k" * 256}
    response = buyer.send("POST", everything, content='{"a": 1}', headers=headers)
    invalid(response, "/path/slug", "/path/code", "/query/now", "/header/Idempotency-Key", "/a")
    problem(buyer.send("POST", f"{projects}/no-such-tower/units/A-101/hold"), 404)
    problem(buyer.ask(unit), 404)
    assert not unit.exists


def test_of_two_faults_the_first_in_order_answers(buyer: Buyer, held: Hold, feed: Feed) -> None:
    # Each with the answer that it gets, in the order of the checks; without any it is 409.
    faults: list[tuple[int, dict[str, str]]] = [
        (405, {"method": "PUT"}),
        (415, {"type": "text/plain"}),
        (400, {"content": "{"}),
        (422, {"query": "?now=1"}),
        (404, {"code": "A-999"}),
        (409, {}),
    ]
    right = {"method": "POST", "type": JSON, "content": "{}", "query": "", "code": held.unit.code}
    for at, (status, first) in enumerate(faults):
        for _, second in faults[at:]:
            sent = right | second | first
            url = hold_url(Unit(held.unit.http, held.unit.project, sent["code"])) + sent["query"]
            headers = {"Content-Type": sent["type"]}
            problem(buyer.send(sent["method"], url, content=sent["content"], headers=headers), status)
    assert feed.types_of(held.unit) == ["unit.held"]
