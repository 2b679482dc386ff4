"""Buyers as the limits know them: by a forwarded address, and by the cookie of our pages."""

import itertools
from uuid import uuid4

import httpx

from tests.support.buying import Buyer
from tests.support.problems import problem

BEHIND_A_PROXY = {"HOLDFAST_TRUSTED_PROXIES": "127.0.0.0/8"}
NO_SHARE = {"HOLDFAST_HOLDS_SHARE_PER_NETWORK": "0"}
COOKIE = "holdfast_visitor"

_numbers = itertools.count(1)


def new_address() -> str:
    """One that nobody has come from yet."""
    high, low = divmod(next(_numbers), 250)
    return f"198.51.{high}.{low + 1}"


def new_cookie() -> str:
    return f"{COOKIE}={uuid4().hex}"


def coming_from(http: httpx.Client, address: str | None = None, cookie: str | None = None) -> Buyer:
    headers = {"X-Forwarded-For": address or new_address()}
    return Buyer(http, headers if cookie is None else {**headers, "Cookie": cookie})


def too_many(response: httpx.Response, kind: str, longest_wait: int) -> str:
    """A 429 of this kind that says when to come again; its sentence."""
    body = problem(response, 429)
    assert body["type"] == f"/problems/{kind}"
    assert 1 <= int(response.headers["retry-after"]) <= longest_wait
    assert body["detail"].endswith(".")
    return str(body["detail"])
