"""Public routes have a limit of requests for each address, and none for the machine itself."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.buying import Buyer, booking_url, offer_url, offers_url
from tests.support.client import Unit, integration_client
from tests.support.installation import Installation, installed
from tests.web.api.storefront.limits import BEHIND_A_PROXY, coming_from, new_address, too_many

KIND = "too-many-requests"


@pytest.fixture(scope="module")
def narrow(module_postgres_url: str) -> Iterator[Installation]:
    settings = {**BEHIND_A_PROXY, "HOLDFAST_PUBLIC_RATE_LIMIT": "2"}
    with installed(module_postgres_url, settings) as running:
        yield running


@pytest.fixture(scope="module")
def street(narrow: Installation) -> Iterator[httpx.Client]:
    with integration_client(narrow.address, None) as client:
        yield client


@pytest.fixture(scope="module")
def unit(narrow: Installation) -> Unit:
    return narrow.units(1)[0]


def first_refused(ask: Callable[[], httpx.Response]) -> httpx.Response:
    return next(answer for answer in (ask() for _ in range(200)) if answer.status_code == 429)


def test_whoever_asks_too_often_is_told_when_to_come_again(street: httpx.Client, unit: Unit) -> None:
    buyer = coming_from(street)
    assert buyer.send("GET", offer_url(unit)).status_code == 200
    response = first_refused(lambda: buyer.send("GET", offer_url(unit)))
    assert "address" in too_many(response, KIND, 2)


@pytest.mark.parametrize("method_and_route", ["list", "hold", "booking", "sign"])
def test_every_route_counts(street: httpx.Client, unit: Unit, method_and_route: str) -> None:
    buyer = coming_from(street)
    booking = booking_url("WWW-WWW-WWW")
    ask: dict[str, Callable[[], httpx.Response]] = {
        "list": lambda: buyer.send("GET", offers_url(unit.project)),
        "hold": lambda: buyer.ask(unit),
        "booking": lambda: buyer.send("GET", booking, token="nonsense"),
        "sign": lambda: buyer.send("POST", f"{booking}/sign"),
    }
    too_many(first_refused(ask[method_and_route]), KIND, 2)


def test_another_address_is_not_hindered(street: httpx.Client, unit: Unit) -> None:
    one = coming_from(street)
    first_refused(lambda: one.send("GET", offer_url(unit)))
    assert coming_from(street).send("GET", offer_url(unit)).status_code == 200


def test_a_made_up_address_before_the_real_one_does_not_help(street: httpx.Client, unit: Unit) -> None:
    own = new_address()

    def ask() -> httpx.Response:
        return coming_from(street, f"{new_address()}, {own}").send("GET", offer_url(unit))

    too_many(first_refused(ask), KIND, 2)


def test_the_machine_itself_is_not_limited(street: httpx.Client, unit: Unit) -> None:
    assert {Buyer(street).send("GET", offer_url(unit)).status_code for _ in range(40)} == {200}


def test_keys_are_not_counted_by_address(narrow: Installation, unit: Unit) -> None:
    headers = {"X-Forwarded-For": new_address()}
    answers = {narrow.http.get(unit.url, headers=headers).status_code for _ in range(40)}
    assert answers == {200}
