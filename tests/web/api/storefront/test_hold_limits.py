"""Nobody takes a whole building hostage."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support import states
from tests.support.buying import Buyer, hold_in
from tests.support.client import Unit, integration_client
from tests.support.installation import Installation, client_at, installed, installed_server
from tests.web.api.storefront.limits import BEHIND_A_PROXY, coming_from, new_address, new_cookie, too_many

PER_ADDRESS = 4
PER_VISITOR = 2
LIMITS = {
    "HOLDFAST_HOLDS_PER_ADDRESS": str(PER_ADDRESS),
    "HOLDFAST_HOLDS_PER_VISITOR": str(PER_VISITOR),
    "HOLDFAST_PUBLIC_RATE_LIMIT": "0",
}
KIND = "too-many-holds"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[Installation]:
    """Two processes behind a proxy, which is the tests themselves."""
    folder, settings = tmp_path_factory.mktemp("limits"), {**LIMITS, **BEHIND_A_PROXY}
    with installed_server(folder, module_postgres_url, settings, "--processes", "2") as running:
        yield running


@pytest.fixture(scope="module")
def direct(module_postgres_url: str) -> Iterator[Installation]:
    """The same, with no proxy that it trusts."""
    with installed(module_postgres_url, LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def street(proxied: Installation) -> Iterator[httpx.Client]:
    with integration_client(proxied.address, None) as client:
        yield client


def statuses(buyer: Buyer, units: list[Unit]) -> list[int]:
    return [buyer.ask(unit).status_code for unit in units]


def test_an_address_holds_so_many_units_and_no_more(proxied: Installation, street: httpx.Client) -> None:
    buyer, units = coming_from(street), proxied.units(PER_ADDRESS + 1)
    assert statuses(buyer, units[:-1]) == [201] * PER_ADDRESS
    detail = too_many(buyer.ask(units[-1]), KIND, 300)
    assert str(PER_ADDRESS) in detail
    assert units[-1].read()["status"] == "available"


def test_the_wait_is_that_for_the_hold_that_ends_first(proxied: Installation, street: httpx.Client) -> None:
    buyer, long, short = coming_from(street), proxied.units(4), proxied.units(2, hold_seconds=30)
    assert statuses(buyer, [*long[:3], short[0]]) == [201] * PER_ADDRESS
    too_many(buyer.ask(short[1]), KIND, 30)


def test_the_limit_counts_over_all_projects(proxied: Installation, street: httpx.Client) -> None:
    buyer = coming_from(street)
    assert statuses(buyer, [proxied.units(1)[0] for _ in range(PER_ADDRESS + 1)]) == [201] * PER_ADDRESS + [
        429
    ]


def test_another_address_has_its_own_limit(proxied: Installation, street: httpx.Client) -> None:
    units = proxied.units(2 * PER_ADDRESS)
    for own in (units[:PER_ADDRESS], units[PER_ADDRESS:]):
        assert statuses(coming_from(street), own) == [201] * PER_ADDRESS


def test_the_limit_is_exact_when_all_ask_at_once(proxied: Installation, street: httpx.Client) -> None:
    buyer, units = coming_from(street), proxied.units(30)
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(buyer.ask, units))
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(answers) - len(refused) == PER_ADDRESS
    for answer in refused:
        too_many(answer, KIND, 300)
    held = [unit for unit in units if unit.read()["status"] == "held"]
    assert len(held) == PER_ADDRESS


def test_a_visitors_limit_is_exact_when_all_ask_at_once(proxied: Installation, street: httpx.Client) -> None:
    cookie, units = new_cookie(), proxied.units(12)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda unit: coming_from(street, cookie=cookie).ask(unit), units))
    assert sorted(answer.status_code for answer in answers) == [201] * PER_VISITOR + [429] * (
        12 - PER_VISITOR
    )


def test_a_visitor_holds_so_many_units_wherever_they_are(proxied: Installation, street: httpx.Client) -> None:
    cookie, units = new_cookie(), proxied.units(PER_VISITOR + 1)
    for unit in units[:-1]:
        coming_from(street, cookie=cookie).hold(unit)
    detail = too_many(coming_from(street, cookie=cookie).ask(units[-1]), KIND, 300)
    assert str(PER_VISITOR) in detail


def test_visitors_of_one_address_share_the_limit_of_the_address(
    proxied: Installation, street: httpx.Client
) -> None:
    address, units = new_address(), proxied.units(PER_ADDRESS + 1)
    asked = [coming_from(street, address, new_cookie()).ask(unit).status_code for unit in units]
    assert asked == [201] * PER_ADDRESS + [429]


def test_a_household_of_ipv6_counts_as_one(proxied: Installation, street: httpx.Client) -> None:
    units = proxied.units(PER_ADDRESS + 2)
    homes = [f"2001:db8:7:7::{number}" for number in range(1, PER_ADDRESS + 2)]
    asked = [
        coming_from(street, home).ask(unit).status_code for home, unit in zip(homes, units, strict=False)
    ]
    assert asked == [201] * PER_ADDRESS + [429]
    assert coming_from(street, "2001:db8:7:8::1").ask(units[-1]).status_code == 201


def test_a_cancelled_hold_gives_its_place_back(proxied: Installation, street: httpx.Client) -> None:
    buyer, units = coming_from(street, cookie=new_cookie()), proxied.units(PER_VISITOR + 1)
    holds = [buyer.hold(unit) for unit in units[:-1]]
    too_many(buyer.ask(units[-1]), KIND, 300)
    holds[0].cancel()
    assert buyer.ask(units[-1]).status_code == 201
    too_many(buyer.ask(units[0]), KIND, 300)


def test_a_lapsed_hold_gives_its_place_back(proxied: Installation, street: httpx.Client) -> None:
    buyer, units = coming_from(street), proxied.units(PER_ADDRESS, hold_seconds=0.2)
    holds = [buyer.hold(unit) for unit in units]
    states.wait_until(proxied.sql, holds[-1].ends)
    assert statuses(buyer, proxied.units(PER_ADDRESS + 1)) == [201] * PER_ADDRESS + [429]


def test_a_reserved_unit_is_no_hold(proxied: Installation, street: httpx.Client) -> None:
    buyer, units = coming_from(street, cookie=new_cookie()), proxied.units(PER_VISITOR + 1)
    first, *_ = [buyer.hold(unit) for unit in units[:-1]]
    first.sign()
    too_many(buyer.ask(units[-1]), KIND, 300)
    states.confirm_deposit(proxied.sql, first)
    assert buyer.ask(units[-1]).status_code == 201


def test_whoever_has_all_their_holds_still_gets_back_to_them(
    proxied: Installation, street: httpx.Client
) -> None:
    buyer, units = coming_from(street, cookie=new_cookie()), proxied.units(PER_VISITOR + 1)
    holds = [buyer.hold(unit, Idempotency_Key=f"key {unit.code}") for unit in units[:-1]]
    too_many(buyer.ask(units[-1]), KIND, 300)
    for held in holds:
        assert buyer.ask(held.unit, token=held.token).status_code == 200
        again = buyer.ask(held.unit, Idempotency_Key=f"key {held.unit.code}")
        assert (again.status_code, hold_in(again, buyer, held.unit)) == (201, held)


def test_without_a_trusted_proxy_what_is_forwarded_is_not_believed(direct: Installation) -> None:
    units = direct.units(PER_ADDRESS + 2)
    with client_at(direct.address, "127.0.0.31") as one:
        asked = [coming_from(one).ask(unit).status_code for unit in units[:-1]]
    assert asked == [201] * PER_ADDRESS + [429]
    with client_at(direct.address, "127.0.0.32") as other:
        assert coming_from(other).ask(units[-1]).status_code == 201


def test_only_what_the_proxy_itself_adds_is_believed(proxied: Installation, street: httpx.Client) -> None:
    own, units = new_address(), proxied.units(PER_ADDRESS + 1)
    asked = [coming_from(street, f"{new_address()}, {own}").ask(unit).status_code for unit in units]
    assert asked == [201] * PER_ADDRESS + [429]
