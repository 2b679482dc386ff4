"""Nobody takes a whole building hostage: limits of holds and of requests, and the wait after a lapse."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.buying import Buyer, Hold, booking_url, hold_in, offer_url, offers_url
from tests.support.client import Unit
from tests.support.installation import Installation, client_at, installed
from tests.web.api.storefront.limits import (
    BEHIND_A_PROXY,
    NO_SHARE,
    coming_from,
    new_address,
    new_cookie,
    too_many,
)

PER_ADDRESS = 4
PER_VISITOR = 2
LIMITS = {
    "HOLDFAST_HOLDS_PER_ADDRESS": str(PER_ADDRESS),
    "HOLDFAST_HOLDS_PER_VISITOR": str(PER_VISITOR),
    "HOLDFAST_PUBLIC_RATE_LIMIT": "0",
    "HOLDFAST_REHOLD_SECONDS": "600",
    **NO_SHARE,
}
SHARE = {"HOLDFAST_HOLDS_SHARE_PER_NETWORK": "30"}
TOO_MANY_HOLDS = "too-many-holds"
TOO_RECENTLY = "held-too-recently"
TOO_MANY_REQUESTS = "too-many-requests"
EARLIER = """
    update booking set hold_expires_at = hold_expires_at - interval '10 minutes',
        ended_at = ended_at - interval '10 minutes'
    where reference = $1
"""


@pytest.fixture(scope="module")
def shop(database_url: str) -> Iterator[Installation]:
    """Behind a proxy, which is the tests themselves."""
    with installed(database_url, {**LIMITS, **BEHIND_A_PROXY}) as running:
        yield running


def statuses(buyer: Buyer, units: list[Unit]) -> list[int]:
    return [buyer.ask(unit).status_code for unit in units]


# Holds


def test_an_address_holds_so_many_units_over_all_projects_and_others_have_their_own_limit(
    shop: Installation,
) -> None:
    buyer, units = coming_from(shop.http), [shop.units(1)[0] for _ in range(PER_ADDRESS + 1)]
    assert statuses(buyer, units[:-1]) == [201] * PER_ADDRESS
    assert str(PER_ADDRESS) in too_many(buyer.ask(units[-1]), TOO_MANY_HOLDS, 300)
    assert units[-1].read()["status"] == "available"
    assert coming_from(shop.http).ask(units[-1]).status_code == 201


def test_the_wait_is_that_for_the_hold_that_ends_first(shop: Installation) -> None:
    buyer, long, short = coming_from(shop.http), shop.units(3), shop.units(2, hold_seconds=100)
    assert statuses(buyer, [*long, short[0]]) == [201] * PER_ADDRESS
    too_many(buyer.ask(short[1]), TOO_MANY_HOLDS, 100)


def test_a_visitor_holds_so_many_units_wherever_they_are(shop: Installation) -> None:
    cookie, units = new_cookie(), shop.units(PER_VISITOR + 1)
    for unit in units[:-1]:
        coming_from(shop.http, cookie=cookie).hold(unit)
    detail = too_many(coming_from(shop.http, cookie=cookie).ask(units[-1]), TOO_MANY_HOLDS, 300)
    assert str(PER_VISITOR) in detail


@pytest.mark.parametrize(
    ("address", "cookie", "share", "limit"),
    [
        (lambda at: "198.51.200.9", None, 0, PER_ADDRESS),
        (lambda at: new_address(), "holdfast_visitor=01234567", 0, PER_VISITOR),
        (lambda at: f"2001:db8:5:{at:x}::1", None, 0, 2 * PER_ADDRESS),
        (lambda at: f"2001:db8:6:{at:x}00::1", None, 0, 4 * PER_ADDRESS),
        (lambda at: f"203.0.113.{at}", None, 25, 5),
        (lambda at: f"2001:db8:8:{at:x}00::1", None, 11, 3),
        (lambda at: f"203.0.113.{at}", None, 5, PER_VISITOR),
    ],
    ids=["address", "visitor", "IPv6 /56", "IPv6 /48", "share of a /24", "share of a /48", "smallest share"],
)
def test_the_limits_are_exact_when_all_ask_at_once(
    shop: Installation,
    database_url: str,
    address: Callable[[int], str],
    cookie: str | None,
    share: int,
    limit: int,
) -> None:
    """On two applications that have nothing but the database in common."""
    units = shop.units(20)
    settings = {**LIMITS, **BEHIND_A_PROXY, "HOLDFAST_HOLDS_SHARE_PER_NETWORK": str(share)}
    with (
        installed(database_url, settings) as one,
        installed(database_url, settings) as another,
        ThreadPoolExecutor(12) as pool,
    ):
        buyers = [coming_from((one, another)[at % 2].http, address(at), cookie) for at in range(len(units))]
        answers = list(pool.map(lambda buyer, unit: buyer.ask(unit), buyers, units))
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(answers) - len(refused) == limit
    for answer in refused:
        too_many(answer, TOO_MANY_HOLDS, 300)
    assert [unit.read()["status"] for unit in units].count("held") == limit


def test_a_share_counts_the_buyers_of_one_project_and_of_units_that_can_be_held(
    shop: Installation, database_url: str
) -> None:
    units, elsewhere = shop.units(10), shop.units(1)
    with installed(database_url, {**LIMITS, **BEHIND_A_PROXY, **SHARE}) as limited:
        for unit in units[:3]:
            shop.desk.did(unit, "open")
        for unit in units[3:5]:
            shop.desk.did(unit, "take-off-sale")
        # 30 % of eight, three of which staff hold.
        asked = [
            coming_from(limited.http, f"192.0.2.{at}").ask(unit) for at, unit in enumerate(units[5:], start=1)
        ]
        assert [answer.status_code for answer in asked] == [201, 201, 201, 429, 429]
        detail = too_many(asked[-1], TOO_MANY_HOLDS, 300)
        assert detail == "Your network already holds 3 units, and the limit is 3."
        assert coming_from(limited.http, "192.0.2.9").ask(elsewhere[0]).status_code == 201
        assert coming_from(limited.http, "192.0.3.1").ask(units[-1]).status_code == 201


@pytest.mark.parametrize(
    ("address", "another"),
    [
        # Visitors of one address share its limit.
        (lambda at: "198.51.200.1", "198.51.200.2"),
        # So does a household of IPv6.
        (lambda at: f"2001:db8:7:7::{at + 1}", "2001:db8:7:8::1"),
        # Only what the proxy itself adds is believed.
        (lambda at: f"{new_address()}, 198.51.200.3", "198.51.200.4"),
    ],
    ids=["visitors", "IPv6", "made up"],
)
def test_an_address_counts_as_one(shop: Installation, address: Callable[[int], str], another: str) -> None:
    units = shop.units(PER_ADDRESS + 1)
    asked = [
        coming_from(shop.http, address(at), new_cookie()).ask(unit).status_code
        for at, unit in enumerate(units)
    ]
    assert asked == [201] * PER_ADDRESS + [429]
    assert coming_from(shop.http, another).ask(units[-1]).status_code == 201


def test_without_a_trusted_proxy_what_is_forwarded_is_not_believed(
    shop: Installation, database_url: str
) -> None:
    units = shop.units(PER_ADDRESS + 2)
    with (
        installed(database_url, LIMITS) as direct,
        client_at(direct.address, "127.0.0.31") as one,
        client_at(direct.address, "127.0.0.32") as other,
    ):
        asked = [coming_from(one).ask(unit).status_code for unit in units[:-1]]
        assert asked == [201] * PER_ADDRESS + [429]
        assert coming_from(other).ask(units[-1]).status_code == 201


def cancel(shop: Installation, held: Hold) -> None:
    held.cancel()


def lapse(shop: Installation, held: Hold) -> None:
    held.end_now(shop.sql)


def reserve(shop: Installation, held: Hold) -> None:
    held.sign()
    shop.desk.did_to_booking(held.reference, "confirm-deposit")


@pytest.mark.parametrize("end", [cancel, lapse, reserve])
def test_a_hold_that_has_ended_gives_its_place_back(
    shop: Installation, end: Callable[[Installation, Hold], None]
) -> None:
    buyer, units = coming_from(shop.http, cookie=new_cookie()), shop.units(PER_VISITOR + 2)
    holds = [buyer.hold(unit, Idempotency_Key=f"a request for {unit.code}") for unit in units[:PER_VISITOR]]
    too_many(buyer.ask(units[-1]), TOO_MANY_HOLDS, 300)
    # Whoever has all their holds still gets back to them.
    for held in holds:
        assert buyer.ask(held.unit, token=held.token).status_code == 200
        again = buyer.ask(held.unit, Idempotency_Key=f"a request for {held.unit.code}")
        assert (again.status_code, hold_in(again, buyer, held.unit)) == (201, held)
    end(shop, holds[0])
    assert statuses(buyer, units[PER_VISITOR:]) == [201, 429]


# The wait after a lapse


def test_after_a_lapse_the_same_visitor_waits(shop: Installation) -> None:
    cookie = new_cookie()
    (unit,) = shop.units(1)
    lapsed = coming_from(shop.http, cookie=cookie).hold(unit).end_now(shop.sql)
    for asked in (
        coming_from(shop.http, cookie=cookie).ask(unit),
        coming_from(shop.http).ask(unit, token=lapsed.token),
        coming_from(shop.http, cookie=new_cookie()).ask(unit, token=lapsed.token),
    ):
        assert "600 s" in too_many(asked, TOO_RECENTLY, 600)
    assert unit.read()["status"] == "available"
    # Another unit may be held, and this one by others, which does not shorten the wait.
    (other,) = shop.units(1)
    assert coming_from(shop.http, cookie=cookie).ask(other).status_code == 201
    for held_by in (None, new_cookie(), *[None] * 23):
        assert coming_from(shop.http, cookie=held_by).hold(unit).cancel().status_code == 204
    too_many(coming_from(shop.http, cookie=cookie).ask(unit), TOO_RECENTLY, 600)
    shop.sql.execute(EARLIER, lapsed.reference)
    assert coming_from(shop.http, cookie=cookie).ask(unit).status_code == 201


def test_whoever_cancelled_may_hold_again_at_once(shop: Installation) -> None:
    (unit,) = shop.units(1)
    buyer = coming_from(shop.http, cookie=new_cookie())
    held = buyer.hold(unit)
    held.cancel()
    assert buyer.ask(unit, token=held.token).status_code == 201


# Requests


@pytest.fixture(scope="module")
def narrow(database_url: str) -> Iterator[Installation]:
    """With a low limit of requests for each address, and none for the machine itself."""
    with installed(database_url, {**BEHIND_A_PROXY, "HOLDFAST_PUBLIC_RATE_LIMIT": "2"}) as running:
        yield running


@pytest.fixture(scope="module")
def offered(narrow: Installation) -> Unit:
    return narrow.units(1)[0]


BOOKING = booking_url("WWW-WWW-WWW")
ROUTES: dict[str, Callable[[Buyer, Unit], httpx.Response]] = {
    "unit": lambda buyer, unit: buyer.send("GET", offer_url(unit)),
    "list": lambda buyer, unit: buyer.send("GET", offers_url(unit.project)),
    "hold": lambda buyer, unit: buyer.ask(unit),
    "booking": lambda buyer, unit: buyer.send("GET", BOOKING, token="nonsense"),
    "sign": lambda buyer, unit: buyer.send("POST", f"{BOOKING}/sign"),
}


def until_refused(ask: Callable[[], httpx.Response]) -> None:
    """However slow the machine is: all that is asked within a second counts together."""
    with ThreadPoolExecutor(16) as pool:
        for _ in range(50):
            answers = list(pool.map(lambda _: ask(), range(16)))
            refused = [answer for answer in answers if answer.status_code == 429]
            if refused:
                assert "address" in too_many(refused[0], TOO_MANY_REQUESTS, 2)
                return
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize("route", ROUTES)
def test_whoever_asks_too_often_on_any_route_is_told_when_to_come_again(
    narrow: Installation, offered: Unit, route: str
) -> None:
    own = new_address()
    assert ROUTES["unit"](coming_from(narrow.http, own), offered).status_code == 200
    # A made-up address before the real one does not help.
    until_refused(lambda: ROUTES[route](coming_from(narrow.http, f"{new_address()}, {own}"), offered))
    assert ROUTES["unit"](coming_from(narrow.http), offered).status_code == 200


def test_neither_the_machine_itself_nor_keys_are_limited(narrow: Installation, offered: Unit) -> None:
    assert {ROUTES["unit"](Buyer(narrow.http), offered).status_code for _ in range(40)} == {200}
    headers = {"X-Forwarded-For": new_address()}
    assert {narrow.http.get(offered.url, headers=headers).status_code for _ in range(40)} == {200}
