"""A buyer holds a unit, and nobody else does."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import httpx
import pytest

from tests.support import states
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold, hold_in
from tests.support.client import Unit, exact, integration_client
from tests.support.feed import Feed
from tests.support.problems import conflict, problem
from tests.support.sql import Sql


def test_a_hold_is_answered_with_what_opens_its_booking(buyer: Buyer, stored: Unit) -> None:
    response = buyer.ask(stored)
    body = exact(response)
    assert response.status_code == 201
    assert set(body) == {"reference", "token", "unit", "holdExpiresAt"}
    assert body["unit"] == buyer.see(stored)
    assert (body["unit"]["status"], body["unit"]["holdExpiresAt"]) == ("held", body["holdExpiresAt"])
    assert response.headers["cache-control"] == "no-store"


def test_a_hold_lasts_five_minutes_unless_the_project_says_otherwise(
    buyer: Buyer, stored: Unit, sql: Sql
) -> None:
    def seconds(held: Hold) -> float:
        return (held.ends - datetime.fromisoformat(stored.read()["updatedAt"])).total_seconds()

    held = buyer.hold(stored)
    assert seconds(held) == 300
    held.cancel()
    states.settle(sql, stored, holdSeconds=90.5)
    assert seconds(buyer.hold(stored)) == 90.5


def test_a_hold_is_echoed_once(buyer: Buyer, stored: Unit, feed: Feed) -> None:
    held = buyer.hold(stored)
    (event,) = feed.of(stored)
    assert (event["type"], event["createdAt"]) == ("unit.held", stored.read()["updatedAt"])
    assert event["data"]["unit"]["previousStatus"] == "available"
    assert event["data"]["booking"] is None
    assert held.reference not in str(event)


def test_no_two_holds_share_a_reference_or_a_token(buyer: Buyer, http: httpx.Client, stored: Unit) -> None:
    second = Unit(http, stored.project, "A-102")
    second.create(full())
    one, other = buyer.hold(stored), buyer.hold(second)
    assert one.reference != other.reference
    assert one.token != other.token


def test_a_held_unit_is_not_available_and_tells_when_it_may_be(buyer: Buyer, held: Hold) -> None:
    response = buyer.ask(held.unit)
    body = conflict(response, "not-available", "held")
    assert body["holdExpiresAt"] == held.expires_at
    assert 1 <= int(response.headers["retry-after"]) <= 300
    assert held.reference not in response.text
    assert held.token not in response.text


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_a_unit_that_somebody_has_is_not_available(buyer: Buyer, stored: Unit, sql: Sql, status: str) -> None:
    states.bring_to(sql, stored, status)
    response = buyer.ask(stored)
    assert "holdExpiresAt" not in conflict(response, "not-available", status)
    assert "retry-after" not in response.headers


def test_a_unit_off_sale_is_not_available(buyer: Buyer, off_sale: Unit, sql: Sql) -> None:
    conflict(buyer.ask(off_sale), "not-available", "unavailable")
    states.archive(sql, off_sale)
    conflict(buyer.ask(off_sale), "not-available", "unavailable")


def test_a_unit_that_does_not_exist_is_404(buyer: Buyer, unit: Unit) -> None:
    problem(buyer.ask(unit), 404)
    assert not unit.exists


def test_nobody_is_blocked_by_their_own_hold(buyer: Buyer, held: Hold, feed: Feed) -> None:
    etag = held.unit.etag
    response = buyer.ask(held.unit, token=held.token)
    assert response.status_code == 200
    assert hold_in(response, buyer, held.unit) == held
    assert set(response.json()) == {"reference", "token", "unit", "holdExpiresAt"}
    assert (held.unit.etag, feed.types_of(held.unit)) == (etag, ["unit.held"])


def test_a_signed_hold_is_still_ones_own(buyer: Buyer, signed: Hold) -> None:
    assert hold_in(buyer.ask(signed.unit, token=signed.token), buyer, signed.unit) == signed
    assert signed.read()["status"] == "signed"


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_what_is_reserved_or_sold_is_held_by_nobody(
    buyer: Buyer, stored: Unit, sql: Sql, status: str
) -> None:
    own = states.bring_to(sql, stored, status)
    conflict(buyer.ask(stored, token=own.token), "not-available", status)


def test_the_token_of_another_hold_does_not_help(buyer: Buyer, http: httpx.Client, held: Hold) -> None:
    second = Unit(http, held.unit.project, "A-102")
    second.create(full())
    other = buyer.hold(second)
    conflict(buyer.ask(held.unit, token=other.token), "not-available", "held")
    conflict(buyer.ask(held.unit, token="nonsense"), "not-available", "held")
    assert (held.read()["status"], other.read()["status"]) == ("open", "open")


def test_a_token_of_another_hold_does_not_hinder(buyer: Buyer, http: httpx.Client, held: Hold) -> None:
    second = Unit(http, held.unit.project, "A-102")
    second.create(full())
    response = buyer.ask(second, token=held.token)
    assert response.status_code == 201
    assert response.json()["token"] != held.token


def test_a_key_is_no_token(buyer: Buyer, held: Hold, api_key: str) -> None:
    conflict(buyer.ask(held.unit, token=api_key), "not-available", "held")


def test_of_many_buyers_one_gets_the_unit(addresses: list[str], stored: Unit, feed: Feed) -> None:
    """On three processes: nothing but the database stands between them."""
    with (
        integration_client(addresses[0], None) as one,
        integration_client(addresses[1], None) as two,
        ThreadPoolExecutor(16) as pool,
    ):
        answers = list(pool.map(lambda at: Buyer((one, two)[at % 2]).ask(stored), range(24)))
    winners = [answer for answer in answers if answer.status_code == 201]
    assert len(winners) == 1
    for answer in answers:
        if answer is not winners[0]:
            conflict(answer, "not-available", "held")
    assert feed.types_of(stored) == ["unit.held"]
    assert stored.read()["holdExpiresAt"] == winners[0].json()["holdExpiresAt"]


def test_a_hold_is_seen_by_every_process_at_once(addresses: list[str], held: Hold) -> None:
    with integration_client(addresses[1], None) as elsewhere:
        for _ in range(6):
            assert Buyer(elsewhere).see(held.unit)["status"] == "held"
            assert (
                elsewhere.get(held.url, headers={"Authorization": f"Bearer {held.token}"}).status_code == 200
            )
