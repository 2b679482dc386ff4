"""Limits of one process: requests of a caller in a second, wrong keys, and clients that watch live."""

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from holdfast.domain.errors import TooManyRequests
from holdfast.web.auth import PUBLIC
from holdfast.web.client_address import Client, ClientAddresses
from holdfast.web.json import JsonResponse
from holdfast.web.rate_limit import LiveLimits, RateLimit, WrongKeyLimit
from holdfast.web.request import Request
from tests.support.in_process import app_with, at, client_of, context_of
from tests.support.problems import problem

GUARDED = "/v1/guarded"


class Clock:
    """Time goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_caller_has_a_second_of_requests_and_then_waits(clock: Clock) -> None:
    limit = RateLimit(4, clock)
    for _ in range(4):
        limit.take("caller")
    with pytest.raises(TooManyRequests, match=r"^This key has sent more requests") as refused:
        limit.take("caller")
    assert refused.value.retry_after_seconds == 0.25
    with pytest.raises(TooManyRequests, match=r"^Not so fast$"):
        limit.take("caller", "Not so fast")
    limit.take("another")
    clock.now += 0.25
    limit.take("caller")


def test_an_address_has_so_many_wrong_keys_in_any_minute(clock: Clock) -> None:
    one, other = client("192.0.2.1"), client("192.0.2.2")
    limit = WrongKeyLimit(2, clock)
    limit.count(one)
    clock.now += 50
    limit.count(one)
    for _ in range(3):
        with pytest.raises(TooManyRequests, match=r"wrong keys") as refused:
            limit.count(one)
        assert refused.value.retry_after_seconds == 10
    limit.count(other)
    clock.now += 10
    limit.count(one)
    with pytest.raises(TooManyRequests) as refused:
        limit.count(one)
    assert refused.value.retry_after_seconds == 50
    # A /56 has twice as many, however many addresses of it are used.
    for house in range(4):
        limit.count(client(f"2001:db8:0:{house}::1"))
    with pytest.raises(TooManyRequests):
        limit.count(client("2001:db8:0:9::1"))


def app_with_limit(per_second: float, clock: Clock) -> Starlette:
    async def respond(request: Request) -> JsonResponse:
        await PUBLIC.check(request)
        return JsonResponse("open")

    app = app_with(at(GUARDED, respond), trusted_proxies="127.0.0.0/8")
    limit = RateLimit(per_second, clock) if per_second else None
    app.state.context = context_of(app)._replace(public_rate_limit=limit)
    return app


@pytest.fixture
async def http(clock: Clock) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app_with_limit(2, clock)) as client:
        yield client


async def statuses(http: httpx.AsyncClient, *addresses: str) -> list[int]:
    return [(await http.get(GUARDED, headers={"X-Forwarded-For": it})).status_code for it in addresses]


async def test_an_address_that_asks_too_often_is_told_to_wait_and_no_other(
    http: httpx.AsyncClient, clock: Clock
) -> None:
    assert await statuses(http, *["192.0.2.1"] * 3, "192.0.2.2") == [200, 200, 429, 200]
    response = await http.get(GUARDED, headers={"X-Forwarded-For": "192.0.2.1"})
    assert problem(response, 429)["detail"] == "This address has sent more requests than its limit allows."
    assert response.headers["retry-after"] == "1"
    clock.now += 1
    assert await statuses(http, "192.0.2.1") == [200]


async def test_a_household_has_one_limit_and_the_machine_itself_none(
    http: httpx.AsyncClient, clock: Clock
) -> None:
    household = [f"2001:db8::{n}" for n in range(1, 4)]
    assert await statuses(http, *household, "2001:db8:0:1::1") == [200, 200, 429, 200]
    # A /56 has twice and a /48 four times the limit of an address, however many it uses.
    site = [f"2001:db8:1:{n}::1" for n in range(1, 6)]
    assert await statuses(http, *site) == [200, 200, 200, 200, 429]
    network = [f"2001:db8:2:{n}00::1" for n in range(1, 10)]
    assert await statuses(http, *network) == [200] * 8 + [429]
    assert {(await http.get(GUARDED)).status_code for _ in range(5)} == {200}
    assert set(await statuses(http, *["::1"] * 5)) == {200}
    async with client_of(app_with_limit(0, clock)) as unlimited:
        assert set(await statuses(unlimited, *["192.0.2.1"] * 5)) == {200}


async def test_what_is_asked_for_in_vain_below_the_pages_counts_too(clock: Clock) -> None:
    async with client_of(app_with_limit(1, clock)) as http:
        headers = {"x-forwarded-for": "192.0.2.1"}
        answers = [await http.get("/p/nothing/here/", headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [308, 429]
    assert "<html" in answers[1].text


def client(address: str) -> Client:
    return ClientAddresses(()).find({"client": (address, 1), "headers": []})


def test_live_watchers_are_limited_for_an_address_and_in_all() -> None:
    limits = LiveLimits(per_address=2, in_all=3)
    leave = limits.take(client("192.0.2.1"))
    limits.take(client("192.0.2.1"))
    with pytest.raises(TooManyRequests, match="from this address") as refused:
        limits.take(client("192.0.2.1"))
    assert refused.value.retry_after_seconds == 60
    limits.take(client("192.0.2.2"))
    leave()
    limits.take(client("192.0.2.1"))
    with pytest.raises(TooManyRequests, match="on this server"):
        limits.take(client("192.0.2.3"))
    of_a_site = LiveLimits(per_address=2)
    for house in range(4):
        leave = of_a_site.take(client(f"2001:db8:1:{house}::1"))
    for _ in range(2):
        with pytest.raises(TooManyRequests, match="from this address"):
            of_a_site.take(client("2001:db8:1:9::1"))
        leave()
        leave = of_a_site.take(client("2001:db8:1:9::1"))
    of_this_machine = LiveLimits(per_address=2, in_all=3)
    for _ in range(3):
        of_this_machine.take(client("127.0.0.1"))
