"""A request for a hold that is sent twice makes one hold."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support import states
from tests.support.app import InProcessApp
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold, hold_in, offer_url
from tests.support.client import Unit, integration_client
from tests.support.feed import Feed
from tests.support.installation import client_at
from tests.support.problems import conflict, invalid
from tests.support.sql import Sql

KEY = "5f0c3c4e-9f5d-4f9e-b7a5-0f5f1c6f3a10"


@pytest.fixture
def keyed(buyer: Buyer, stored: Unit) -> Hold:
    return buyer.hold(stored, Idempotency_Key=KEY)


def test_the_same_request_again_gets_the_same_hold(buyer: Buyer, keyed: Hold, feed: Feed) -> None:
    again = buyer.ask(keyed.unit, Idempotency_Key=KEY)
    assert again.status_code == 201
    assert hold_in(again, buyer, keyed.unit) == keyed
    assert set(again.json()) == {"reference", "token", "unit", "holdExpiresAt"}
    assert feed.types_of(keyed.unit) == ["unit.held"]


def test_the_token_that_is_given_back_opens_the_booking(buyer: Buyer, keyed: Hold) -> None:
    again = buyer.hold(keyed.unit, Idempotency_Key=KEY)
    assert again.sign()["status"] == "signed"
    assert keyed.read()["status"] == "signed"


def test_a_signed_hold_is_given_back_too(buyer: Buyer, keyed: Hold) -> None:
    keyed.sign()
    assert buyer.hold(keyed.unit, Idempotency_Key=KEY) == keyed


def test_the_same_request_at_once_on_many_processes_makes_one_hold(
    addresses: list[str], stored: Unit, feed: Feed
) -> None:
    with (
        integration_client(addresses[0], None) as one,
        integration_client(addresses[1], None) as two,
        ThreadPoolExecutor(12) as pool,
    ):
        asked = pool.map(lambda at: Buyer((one, two)[at % 2]).ask(stored, Idempotency_Key=KEY), range(12))
        answers = list(asked)
    assert {answer.status_code for answer in answers} == {201}
    holds = {(answer.json()["reference"], answer.json()["token"]) for answer in answers}
    assert len(holds) == 1
    assert feed.types_of(stored) == ["unit.held"]


def test_another_key_finds_the_unit_held(buyer: Buyer, keyed: Hold) -> None:
    conflict(buyer.ask(keyed.unit, Idempotency_Key="another"), "not-available", "held")
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY.upper()), "not-available", "held")
    conflict(buyer.ask(keyed.unit), "not-available", "held")


def test_the_same_key_for_another_unit_is_another_request(
    buyer: Buyer, http: httpx.Client, keyed: Hold
) -> None:
    second = Unit(http, keyed.unit.project, "A-102")
    second.create(full())
    other = buyer.hold(second, Idempotency_Key=KEY)
    assert (other.reference == keyed.reference, other.token == keyed.token) == (False, False)
    assert other.read()["unitCode"] == "A-102"


def test_the_same_key_from_another_address_is_another_request(server: InProcessApp, keyed: Hold) -> None:
    """Keys are chosen by clients: whoever guesses one gets nobody's token."""
    with client_at(server.address, "127.0.0.77") as elsewhere:
        response = Buyer(elsewhere).ask(keyed.unit, Idempotency_Key=KEY)
    conflict(response, "not-available", "held")
    assert keyed.token not in response.text


def test_a_key_does_not_open_a_hold_that_was_made_without_it(buyer: Buyer, held: Hold) -> None:
    conflict(buyer.ask(held.unit, Idempotency_Key=KEY), "not-available", "held")


def test_a_refused_request_may_be_sent_again_when_the_unit_is_free(buyer: Buyer, held: Hold) -> None:
    conflict(buyer.ask(held.unit, Idempotency_Key=KEY), "not-available", "held")
    held.cancel()
    assert buyer.hold(held.unit, Idempotency_Key=KEY).read()["status"] == "open"


def test_a_key_is_used_up_when_its_hold_has_lapsed(buyer: Buyer, stored: Unit, sql: Sql) -> None:
    states.settle(sql, stored, holdSeconds=0.02)
    lapsed = buyer.hold(stored, Idempotency_Key=KEY)
    states.wait_until(sql, lapsed.ends)
    conflict(buyer.ask(stored, Idempotency_Key=KEY), "hold-lapsed", "available")
    assert buyer.ask(stored, Idempotency_Key="another").status_code == 201


def test_a_key_is_used_up_when_its_hold_was_cancelled(buyer: Buyer, keyed: Hold) -> None:
    keyed.cancel()
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY), "transition-not-allowed", "available")
    other = buyer.hold(keyed.unit)
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY), "transition-not-allowed", "held")
    assert other.read()["status"] == "open"


def test_a_key_is_used_up_when_its_booking_went_on(buyer: Buyer, keyed: Hold, sql: Sql) -> None:
    keyed.sign()
    states.confirm_deposit(sql, keyed)
    response = buyer.ask(keyed.unit, Idempotency_Key=KEY)
    conflict(response, "transition-not-allowed", "reserved")
    assert keyed.token not in response.text


def test_who_has_the_token_needs_no_new_key_when_the_link_was_issued_anew(
    buyer: Buyer, keyed: Hold, sql: Sql
) -> None:
    url = f"/v1/backoffice/bookings/{keyed.reference}/reissue-link"
    issued = states.send_as_staff(sql, keyed.unit.http, "POST", url)
    assert issued.status_code == 200, issued.text
    token = issued.json()["token"]
    conflict(buyer.ask(keyed.unit, Idempotency_Key=KEY), "transition-not-allowed", "held")
    again = buyer.ask(keyed.unit, token=token, Idempotency_Key=KEY)
    assert (again.status_code, again.json()["reference"]) == (200, keyed.reference)


def test_who_has_the_token_of_a_hold_is_given_it_with_a_key_that_is_used_up(
    buyer: Buyer, keyed: Hold
) -> None:
    keyed.cancel()
    second = buyer.hold(keyed.unit)
    again = buyer.ask(keyed.unit, token=second.token, Idempotency_Key=KEY)
    assert (again.status_code, again.json()["reference"]) == (200, second.reference)


def test_a_key_that_is_used_up_is_refused_at_once_by_every_process(addresses: list[str], keyed: Hold) -> None:
    keyed.cancel()
    with (
        integration_client(addresses[0], None) as one,
        integration_client(addresses[1], None) as two,
        ThreadPoolExecutor(12) as pool,
    ):
        clients = [Buyer(one), Buyer(two)] * 6
        answers = list(pool.map(lambda buyer: buyer.ask(keyed.unit, Idempotency_Key=KEY), clients))
    for answer in answers:
        conflict(answer, "transition-not-allowed", "available")


@pytest.mark.parametrize("bad", ["", " ", "k" * 256, "schlüssel", "a\tb"])
def test_a_bad_key_is_422(public: httpx.Client, stored: Unit, bad: str) -> None:
    headers = {b"Idempotency-Key": bad.encode("latin-1")}
    invalid(public.post(f"{offer_url(stored)}/hold", headers=headers), "/header/Idempotency-Key")
    assert stored.read()["status"] == "available"


@pytest.mark.parametrize("good", ["k", "k" * 255, '"quoted"', "a b;c=d"])
def test_a_key_is_any_printable_text(buyer: Buyer, stored: Unit, good: str) -> None:
    held = buyer.hold(stored, Idempotency_Key=good)
    assert buyer.hold(stored, Idempotency_Key=good) == held
