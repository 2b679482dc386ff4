"""A hold is over at its time for buyers, even when nobody has released it yet, and takes no place."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.app import running_app
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold, offers_url
from tests.support.client import exact
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.installation import Installation, client_at, opened
from tests.support.problems import conflict, problem
from tests.support.unit_rows import stored_status
from tests.web.api.storefront.limits import NO_SHARE

LIMIT = 4
SETTINGS = {"HOLDFAST_HOLDS_PER_ADDRESS": str(LIMIT), "HOLDFAST_HOLDS_PER_VISITOR": "2", **NO_SHARE}
COOKIE = "holdfast_visitor=0123456789abcdef"

_addresses = itertools.count(1)


@pytest.fixture
def buyer(idle: Installation) -> Buyer:
    return Buyer(idle.http)


@pytest.fixture
def expired(idle: Installation, buyer: Buyer) -> Hold:
    return buyer.hold(idle.units(1)[0]).end_now(idle.sql)


def test_the_storefront_shows_an_available_unit_and_the_booking_as_lapsed(
    expired: Hold, buyer: Buyer, idle: Installation
) -> None:
    seen, offers = buyer.see(expired.unit), offers_url(expired.unit.project)
    assert (seen["status"], seen["holdExpiresAt"]) == ("available", None)
    assert exact(buyer.send("GET", offers))["units"] == [seen]
    assert exact(buyer.send("GET", f"{offers}?status=available"))["units"] == [seen]
    assert exact(buyer.send("GET", f"{offers}?status=held"))["units"] == []
    booking = expired.read()
    assert (booking["status"], booking["holdExpiresAt"]) == ("lapsed", expired.expires_at)
    assert stored_status(idle.sql, expired.unit) == "held"
    assert expired.unit.put(full(priceSar=1, depositPercent=None)).status_code == 200
    assert expired.read()["terms"] == booking["terms"]


def test_it_can_neither_be_signed_nor_cancelled(expired: Hold) -> None:
    for response in (expired.try_to_sign(), expired.cancel()):
        assert "holdExpiresAt" not in conflict(response, "hold-lapsed", "available")
    assert expired.read()["signedAt"] is None


def test_a_signature_cannot_be_repeated(idle: Installation, buyer: Buyer) -> None:
    held = buyer.hold(idle.units(1)[0])
    held.sign()
    conflict(held.end_now(idle.sql).try_to_sign(), "hold-lapsed", "available")


def test_of_many_other_buyers_one_gets_the_unit_at_once(expired: Hold, buyer: Buyer, idle_feed: Feed) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: buyer.ask(expired.unit), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert idle_feed.types_of(expired.unit) == ["unit.held", "unit.released", "unit.held"]
    assert idle_feed.of(expired.unit)[1]["createdAt"] == expired.expires_at
    assert chain_is_unbroken(idle_feed.of(expired.unit))
    assert (expired.read()["status"], expired.unit.read()["status"]) == ("lapsed", "held")


def test_the_old_token_opens_a_new_hold(expired: Hold, buyer: Buyer) -> None:
    response = buyer.ask(expired.unit, token=expired.token)
    assert response.status_code == 201
    assert response.json()["reference"] != expired.reference
    assert response.json()["token"] != expired.token


@pytest.fixture(scope="module")
def installation(module_postgres_url: str) -> Iterator[Installation]:
    """With limits, and without background work."""
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url, **SETTINGS}
    with (
        running_app(settings, background_work=False) as app,
        opened(app.address, module_postgres_url) as running,
    ):
        yield running


@pytest.fixture
def visitor(installation: Installation) -> Iterator[Buyer]:
    """From an address that nobody has come from yet."""
    with client_at(installation.address, f"127.0.1.{next(_addresses)}") as http:
        yield Buyer(http)


def test_expired_holds_make_room_for_as_many_when_all_ask_at_once(
    installation: Installation, visitor: Buyer
) -> None:
    units = installation.units(LIMIT)
    holds = [visitor.hold(unit) for unit in units]
    assert visitor.ask(installation.units(1)[0]).status_code == 429
    for held in holds:
        held.end_now(installation.sql)
    assert {stored_status(installation.sql, unit) for unit in units} == {"held"}
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(visitor.ask, installation.units(12)))
    assert sorted(answer.status_code for answer in answers) == [201] * LIMIT + [429] * (12 - LIMIT)


@pytest.mark.parametrize("known_by", ["cookie", "token"])
def test_the_wait_for_the_same_unit_begins_at_the_end(
    installation: Installation, visitor: Buyer, known_by: str
) -> None:
    known = Buyer(visitor.http, {"Cookie": COOKIE} if known_by == "cookie" else {})
    (unit,) = installation.units(1)
    expired = known.hold(unit).end_now(installation.sql)
    response = known.ask(unit, token=expired.token if known_by == "token" else None)
    assert problem(response, 429)["type"] == "/problems/held-too-recently"
    assert visitor.ask(unit).status_code == 201
