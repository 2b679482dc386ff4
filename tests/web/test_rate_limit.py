"""A bucket for each caller, and the guard of the public routes that takes from it."""

from collections.abc import AsyncIterator, Hashable
from uuid import UUID

import httpx
import pytest
from starlette.applications import Starlette

from holdfast.domain.errors import TooManyRequests
from holdfast.web.auth import PUBLIC
from holdfast.web.json import JsonResponse
from holdfast.web.rate_limit import RateLimit
from holdfast.web.request import Request
from tests.support.in_process import app_with, at, client_of, context_of
from tests.support.problems import problem

ON_THE_SAME_MACHINE = "127.0.0.0/8"
GUARDED = "/v1/guarded"


class Clock:
    """Time goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("caller", ["192.0.2.1", UUID(int=1), ("a", 1)])
def test_any_caller_has_a_second_of_requests_and_then_waits(caller: Hashable) -> None:
    clock = Clock()
    limit = RateLimit(4, clock)
    for _ in range(4):
        limit.take(caller)
    with pytest.raises(TooManyRequests) as refused:
        limit.take(caller)
    assert refused.value.retry_after_seconds == 0.25
    clock.now += 0.25
    limit.take(caller)


def test_the_sentence_is_about_a_key_unless_another_is_given() -> None:
    limit = RateLimit(1, Clock())
    limit.take("caller")
    with pytest.raises(TooManyRequests, match=r"^This key has sent more requests"):
        limit.take("caller")
    with pytest.raises(TooManyRequests, match=r"^Not so fast$"):
        limit.take("caller", "Not so fast")


def app_with_limit(per_second: float, clock: Clock) -> Starlette:
    async def show_token(request: Request) -> JsonResponse:
        await PUBLIC(request)
        return JsonResponse(request.bearer_token())

    app = app_with(at(GUARDED, show_token), trusted_proxies=ON_THE_SAME_MACHINE)
    limit = RateLimit(per_second, clock) if per_second else None
    app.state.context = context_of(app)._replace(public_rate_limit=limit)
    return app


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def http(clock: Clock) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app_with_limit(2, clock)) as client:
        yield client


async def statuses(http: httpx.AsyncClient, *addresses: str) -> list[int]:
    return [(await http.get(GUARDED, headers={"X-Forwarded-For": it})).status_code for it in addresses]


async def test_an_address_that_asks_too_often_is_told_to_wait(http: httpx.AsyncClient, clock: Clock) -> None:
    assert await statuses(http, *["192.0.2.1"] * 2) == [200, 200]
    response = await http.get(GUARDED, headers={"X-Forwarded-For": "192.0.2.1"})
    assert problem(response, 429)["detail"] == "This address has sent more requests than its limit allows."
    assert response.headers["retry-after"] == "1"
    clock.now += 1
    assert await statuses(http, "192.0.2.1") == [200]


async def test_addresses_do_not_wait_for_each_other(http: httpx.AsyncClient) -> None:
    assert await statuses(http, *["192.0.2.1"] * 3, "192.0.2.2") == [200, 200, 429, 200]


async def test_a_household_has_one_limit(http: httpx.AsyncClient) -> None:
    assert await statuses(http, *(f"2001:db8::{n}" for n in range(1, 4)), "2001:db8:0:1::1") == [
        200,
        200,
        429,
        200,
    ]


async def test_the_machine_itself_is_not_limited(http: httpx.AsyncClient) -> None:
    assert {(await http.get(GUARDED)).status_code for _ in range(20)} == {200}
    assert set(await statuses(http, *["::1"] * 20)) == {200}


async def test_without_a_limit_nobody_waits(clock: Clock) -> None:
    async with client_of(app_with_limit(0, clock)) as http:
        assert set(await statuses(http, *["192.0.2.1"] * 20)) == {200}


@pytest.mark.parametrize(
    ("credentials", "token"),
    [([], None), (["Bearer abc"], "abc"), (["Basic abc"], None), (["Bearer"], None)],
)
async def test_a_token_is_optional(
    http: httpx.AsyncClient, credentials: list[str], token: str | None
) -> None:
    headers = [("Authorization", value) for value in credentials]
    assert (await http.get(GUARDED, headers=headers)).json() == token


async def test_two_credentials_are_one_too_many(http: httpx.AsyncClient) -> None:
    headers = [("Authorization", "Bearer abc"), ("Authorization", "Bearer abc")]
    problem(await http.get(GUARDED, headers=headers), 400)


async def test_what_is_asked_for_in_vain_below_the_pages_counts_too() -> None:
    async with client_of(app_with_limit(1, Clock())) as http:
        headers = {"x-forwarded-for": "192.0.2.1"}
        answers = [await http.get("/p/nothing/here/", headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [308, 429]
    assert "<html" in answers[1].text
