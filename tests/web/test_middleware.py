"""What every response has, whatever it answers, and what becomes of errors, paths, sizes and encodings."""

import gzip
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Message

from holdfast.domain.errors import InvalidInput
from holdfast.web.api.bodies import no_fields
from holdfast.web.pages.forms import csrf_token, is_csrf_token
from holdfast.web.pages.live import EVENT_STREAM
from holdfast.web.request import Request
from tests.support.in_process import app_with, at, client_of
from tests.support.problems import invalid, problem

HTML = {"Accept": "text/html"}
UNIT = "/v1/integration/projects/narjis-heights/units/A-1"
LONG_TEXT = "unit " * 1000


async def fail(_: Request) -> Response:
    raise RuntimeError("a fault of ours")


async def redirect(_: Request) -> Response:
    return RedirectResponse("/", 303)


async def refuse_names(_: Request) -> Response:
    raise InvalidInput(no_fields({f"unknown{number}": 1 for number in range(80_000)}))


async def show_text(_: Request) -> Response:
    return PlainTextResponse(LONG_TEXT)


async def show_events(_: Request) -> Response:
    return Response(LONG_TEXT, headers={"content-type": EVENT_STREAM})


@pytest.fixture(scope="module")
def app() -> Starlette:
    return app_with(
        at("/v1/fails", fail),
        at("/fails", fail),
        at("/redirects", redirect),
        at("/v1/faults", refuse_names),
        at("/text", show_text),
        at("/events", show_events),
    )


@pytest.fixture
async def http(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/nowhere", 404),
        ("GET", "/v1/nowhere", 404),
        ("POST", "/openapi.json", 405),
        ("GET", UNIT, 401),
        ("GET", "/v1/integration/nowhere", 401),
        ("GET", "/v1/backoffice/nowhere", 401),
        ("GET", "/v1/integration", 401),
        ("BREW", UNIT, 401),
        ("GET", "/v1/fails", 500),
        ("GET", "/fails", 500),
        ("GET", "/redirects", 303),
        ("GET", "/static/holdfast.css", 200),
        ("GET", "/static/nothing.css", 404),
        ("GET", "/backoffice", 303),
        ("GET", "/p/narjis-heights/nothing/here", 404),
        ("GET", "/healthz", 200),
    ],
)
async def test_every_response_has_a_request_id_and_is_not_guessed_at(
    http: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    response = await http.request(method, path, headers={"X-Request-Id": "asked-for"})
    assert response.status_code == status
    assert response.headers["x-request-id"] == "asked-for"
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_an_id_that_cannot_be_taken_is_replaced(http: httpx.AsyncClient) -> None:
    for sent in ("x" * 129, "a b", ""):
        assert (await http.get("/", headers={"X-Request-Id": sent})).headers["x-request-id"] not in ("", sent)


@pytest.mark.parametrize("headers", [{}, HTML], ids=["program", "browser"])
async def test_a_fault_of_ours_is_a_problem_on_paths_of_the_api(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert problem(await http.get("/v1/fails", headers=headers), 500)["type"] == "/problems/internal-error"


async def test_a_fault_of_ours_is_a_page_elsewhere(http: httpx.AsyncClient) -> None:
    response = await http.get("/fails", headers=HTML)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["x-request-id"] in response.text
    assert "a fault of ours" not in response.text


async def test_of_many_faults_a_hundred_are_listed_and_the_rest_is_counted(http: httpx.AsyncClient) -> None:
    response = await http.get("/v1/faults")
    errors = problem(response, 422)["errors"]
    assert len(errors) == 101
    assert "79900" in errors[-1]["message"].replace(",", "").replace(" ", "")
    assert len(response.content) <= 64_000


async def test_a_key_is_asked_for_before_the_body_is_read(app: Starlette) -> None:
    """The client of this test never sends its body."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was asked for")

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http", "method": "PUT", "path": UNIT, "raw_path": UNIT.encode(), "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"100")],
        "client": ("127.0.0.1", 50_000), "app": app, "asgi": {"version": "3.0"}, "root_path": "",
    }  # fmt: skip
    await app(scope, receive, send)
    assert sent[0]["status"] == 401


async def test_an_address_has_at_most_two_hundred_parameters(http: httpx.AsyncClient) -> None:
    path = "/v1/storefront/projects/narjis-heights/units"
    problem(await http.get(path + "?" + "&".join(f"p{number}=1" for number in range(201))), 413)
    invalid(
        await http.get(path + "?" + "&".join(f"p{number}=1" for number in range(2))), "/query/p0", "/query/p1"
    )


@pytest.mark.parametrize("path", ["/p/narjis-heights/units/A-1/hold", "/backoffice/sign-in"])
async def test_a_form_of_a_public_page_has_at_most_two_hundred_fields(app: Starlette, path: str) -> None:
    async with client_of(app) as http:
        response = await http.post(path, data={f"field{number}": "1" for number in range(201)}, headers=HTML)
    assert response.status_code == 413
    assert response.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/v1/storefront/projects/narjis-heights/units/A-1/hold", 1024),
        ("/v1/payments/callback", 64 * 1024),
    ],
)
async def test_public_bodies_of_the_api_are_small(path: str, limit: int) -> None:
    headers = {
        "Content-Type": "application/json",
        "X-Payment-Timestamp": str(int(time.time())),
        "X-Payment-Signature": f"sha256={'0' * 64}",
    }
    app = app_with(payment_url="https://pay.example.com/", payment_secret="not a secret, for tests alone")
    async with client_of(app) as http:
        response = await http.post(path, content=b" " * (limit + 1), headers=headers)
    assert f"{limit // 1024} KiB" in problem(response, 413)["detail"]


@pytest.mark.parametrize("path", ["/p/narjis-heights/units/A-1/hold", "/backoffice/sign-in"])
async def test_forms_of_public_pages_are_small(http: httpx.AsyncClient, path: str) -> None:
    response = await http.post(path, data={"csrf": "x" * 16 * 1024}, headers=HTML)
    assert response.status_code == 413
    assert response.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("code", ["A%2F101", "50%25", "%D8%B9%D8%B1%D8%A8%D9%8A"])
async def test_codes_with_any_character_find_their_route(http: httpx.AsyncClient, code: str) -> None:
    problem(await http.get(f"/v1/integration/projects/narjis-heights/units/{code}"), 401)
    path = f"/v1/storefront/projects/narjis-heights/units/{code}"
    assert (await http.delete(path)).headers["allow"] == "GET, HEAD"


async def test_a_code_that_is_not_utf_8_is_a_fault(http: httpx.AsyncClient) -> None:
    path = "/v1/storefront/projects/narjis-heights/units/%FF"
    invalid(await http.get(path), "/path/code")


async def test_the_methods_of_a_path_are_told_together(http: httpx.AsyncClient) -> None:
    response = await http.put("/v1/storefront/bookings/Q39-4F6-4K6", headers={"Authorization": "Bearer x"})
    problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == {"DELETE", "GET", "HEAD"}


async def test_long_responses_are_compressed_for_those_who_accept_it(http: httpx.AsyncClient) -> None:
    async with http.stream("GET", "/text", headers={"Accept-Encoding": "gzip"}) as response:
        raw = b"".join([part async for part in response.aiter_raw()])
    assert response.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).decode() == LONG_TEXT
    assert (
        "content-encoding" not in (await http.get("/text", headers={"Accept-Encoding": "identity"})).headers
    )


async def test_events_are_never_compressed(http: httpx.AsyncClient) -> None:
    response = await http.get("/events", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in response.headers


def test_tokens_of_forms_are_masked_anew_each_time() -> None:
    one, other = csrf_token("secret"), csrf_token("secret")
    assert one != other
    assert len(one) == len(other) == 128
    assert is_csrf_token(one, "secret")
    assert is_csrf_token(other, "secret")
    for wrong in ("", "x", one[:-2], one[2:], "0" * 128, csrf_token("another secret")):
        assert not is_csrf_token(wrong, "secret")


async def test_nobody_is_redirected_for_a_slash(http: httpx.AsyncClient) -> None:
    for path in ("/docs/", "/healthz/", "/v1/storefront/projects/narjis-heights/units/"):
        assert (await http.get(path)).status_code in (404, 422)


@pytest.mark.parametrize("path", ["/v1/storefront/nowhere", "/v1/payments/nowhere", "/v1"])
async def test_what_is_not_there_is_a_problem(http: httpx.AsyncClient, path: str) -> None:
    assert problem(await http.get(path), 404)["type"] == "/problems/not-found"
