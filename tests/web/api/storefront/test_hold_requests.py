"""How a request for a hold may look, and which fault answers first."""

import httpx
import pytest

from tests.support.buying import Buyer, Hold, offer_url
from tests.support.client import JSON, Unit
from tests.support.feed import Feed
from tests.support.problems import invalid, problem

LONG = " " * (1024 * 1024 + 1)


def hold_url(unit: Unit) -> str:
    return f"{offer_url(unit)}/hold"


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (None, {}),
        (None, {"Content_Type": JSON}),
        ("{}", {"Content_Type": JSON}),
        (" {\n} ", {"Content_Type": JSON}),
    ],
    ids=["nothing", "a type alone", "an empty object", "an empty object, spaced"],
)
def test_a_hold_needs_no_body(
    buyer: Buyer, stored: Unit, content: str | None, headers: dict[str, str]
) -> None:
    assert buyer.ask(stored, content=content, **headers).status_code == 201


@pytest.mark.parametrize(
    ("content", "pointers"),
    [
        ('{"buyerName": "Layla"}', ["/buyerName"]),
        ('{"a": 1, "b": 2}', ["/a", "/b"]),
        ("[]", [""]),
        ("null", [""]),
        ('"hold"', [""]),
    ],
)
def test_a_body_with_anything_in_it_is_422(
    buyer: Buyer, stored: Unit, content: str, pointers: list[str]
) -> None:
    invalid(buyer.ask(stored, content=content, Content_Type=JSON), *pointers)
    assert stored.read()["status"] == "available"


@pytest.mark.parametrize(
    ("status", "content", "headers"),
    [
        (415, "{}", {"Content_Type": "text/plain"}),
        (415, "{}", {}),
        (415, None, {"Content_Type": "text/plain"}),
        (415, "{}", {"Content_Type": JSON, "Content_Encoding": "gzip"}),
        (415, "{}", {"Content_Type": "application/json; charset=latin-1"}),
        (413, LONG, {"Content_Type": JSON}),
        (400, "{", {"Content_Type": JSON}),
        (400, '{"a": 1, "a": 2}', {"Content_Type": JSON}),
        (400, "\ufeff{}", {"Content_Type": JSON}),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    buyer: Buyer, stored: Unit, status: int, content: str | None, headers: dict[str, str]
) -> None:
    problem(buyer.ask(stored, content=content, **headers), status)
    assert stored.read()["status"] == "available"


def test_two_authorization_headers_are_400(public: httpx.Client, held: Hold) -> None:
    both = [("Authorization", f"Bearer {held.token}")] * 2
    for method, url in (("POST", hold_url(held.unit)), ("GET", held.url), ("GET", offer_url(held.unit))):
        assert public.request(method, url, headers=both).status_code == 400


def test_an_authorization_that_is_no_token_counts_as_none(public: httpx.Client, held: Hold) -> None:
    headers = {"Authorization": "Basic bGF5bGE6c2VjcmV0"}
    assert public.get(held.url, headers=headers).status_code == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_only_a_post_holds(buyer: Buyer, stored: Unit, method: str) -> None:
    response = buyer.send(method, hold_url(stored))
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert stored.read()["status"] == "available"


@pytest.mark.parametrize(
    ("path", "pointers"),
    [
        ("/v1/storefront/projects/Not_A_Slug/units/A-101/hold", ["/path/slug"]),
        (f"/v1/storefront/projects/tower/units/{'x' * 51}/hold", ["/path/code"]),
        ("/v1/storefront/projects/tower/units/%20/hold", ["/path/code"]),
        ("/v1/storefront/projects/tower/units/%FF/hold", ["/path/code"]),
        ("/v1/storefront/projects/tower/units//hold", ["/path/code"]),
        ("/v1/storefront/projects/tower/units/A-101/hold?now=1", ["/query/now"]),
    ],
)
def test_a_bad_path_is_422(buyer: Buyer, path: str, pointers: list[str]) -> None:
    invalid(buyer.send("POST", path), *pointers)


def test_every_fault_is_named_at_once(buyer: Buyer) -> None:
    path = f"/v1/storefront/projects/Not_A_Slug/units/{'x' * 51}/hold?now=1"
    headers = {"Content-Type": JSON, "Idempotency-Key": "k" * 256}
    response = buyer.send("POST", path, content='{"a": 1}', headers=headers)
    invalid(response, "/path/slug", "/path/code", "/query/now", "/header/Idempotency-Key", "/a")


def test_unknown_places_are_404(buyer: Buyer, unit: Unit) -> None:
    problem(buyer.ask(unit), 404)
    problem(buyer.send("POST", "/v1/storefront/projects/no-such-tower/units/A-101/hold"), 404)


# Each with the answer that it gets, in the order of the checks.
FAULTS: list[tuple[int, dict[str, str]]] = [
    (405, {"method": "PUT"}),
    (415, {"type": "text/plain"}),
    (400, {"content": "{"}),
    (422, {"query": "?now=1"}),
    (404, {"code": "A-999"}),
]


def send_with(buyer: Buyer, held: Hold, *faults: dict[str, str]) -> httpx.Response:
    """A request for a unit that is held: 409, until there are faults in it."""
    right = {"method": "POST", "type": JSON, "content": "{}", "query": "", "code": held.unit.code}
    request = {name: value for part in (right, *faults) for name, value in part.items()}
    url = hold_url(Unit(held.unit.http, held.unit.project, request["code"])) + request["query"]
    headers = {"Content-Type": request["type"]}
    return buyer.send(request["method"], url, content=request["content"], headers=headers)


@pytest.mark.parametrize(
    ("first", "second"),
    [(first, second) for at, first in enumerate(FAULTS) for second in FAULTS[at:]],
    ids=lambda fault: str(fault[0]),
)
def test_of_two_faults_the_first_in_order_answers(
    buyer: Buyer,
    held: Hold,
    first: tuple[int, dict[str, str]],
    second: tuple[int, dict[str, str]],
) -> None:
    problem(send_with(buyer, held, second[1], first[1]), first[0])


def test_without_a_fault_the_hold_is_what_blocks(buyer: Buyer, held: Hold, feed: Feed) -> None:
    problem(send_with(buyer, held), 409)
    assert feed.types_of(held.unit) == ["unit.held"]
