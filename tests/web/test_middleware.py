"""What every response has, whatever it answers, and what becomes of errors, paths, sizes and encodings."""

import asyncio
import gzip
import io
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from prometheus_client import REGISTRY
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from holdfast.domain.errors import InvalidInput
from holdfast.observability import logging, metrics
from holdfast.web.api.bodies import no_fields
from holdfast.web.api.routes import ApiPath
from holdfast.web.pages.live import EVENT_STREAM
from holdfast.web.request import Request
from tests.support.in_process import all_routes, app_with, at, client_of
from tests.support.problems import invalid, problem

HTML = {"Accept": "text/html"}
JSON = {"Content-Type": "application/json"}
STRICT_TRANSPORT = "strict-transport-security"
UNIT = "/v1/integration/projects/narjis-heights/units/A-1"
LONG_TEXT = "unit " * 1000
ANSWERED = {
    200: ["/", "/static/holdfast.css", "/healthz"],
    303: ["/redirects", "/backoffice"],
    401: [UNIT, "/v1/integration/nowhere", "/v1/backoffice/nowhere", "/v1/integration"],
    404: [
        "/nowhere", "/v1/nowhere", "/v1/storefront/nowhere", "/v1/payments/nowhere", "/v1",
        "/static/nothing.css", "/p/narjis-heights/nothing/here",
    ],
    500: ["/v1/fails", "/fails"],
}  # fmt: skip


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


async def test_every_response_has_a_request_id_and_is_not_guessed_at(http: httpx.AsyncClient) -> None:
    for status, paths in ANSWERED.items():
        for path in paths:
            response = await http.get(path, headers={"X-Request-Id": "asked-for"})
            assert response.status_code == status, path
            assert response.headers["x-request-id"] == "asked-for"
            assert response.headers["x-content-type-options"] == "nosniff"
            if status == 404 and path.startswith("/v1"):
                assert problem(response, 404)["type"] == "/problems/not-found"
    assert (await http.post("/openapi.json")).status_code == 405
    assert (await http.request("BREW", UNIT)).status_code == 401
    for sent in ("x" * 129, "a b", ""):
        assert (await http.get("/", headers={"X-Request-Id": sent})).headers["x-request-id"] not in ("", sent)


async def test_a_fault_of_ours_is_a_problem_on_paths_of_the_api_and_a_page_elsewhere(
    http: httpx.AsyncClient,
) -> None:
    for headers in ({}, HTML):
        response = await http.get("/v1/fails", headers=headers)
        assert problem(response, 500)["type"] == "/problems/internal-error"
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


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", UNIT, 401),
        ("POST", "/v1/storefront/bookings/WWW-WWW-WWW/sign", 401),
        ("POST", "/v1/payments/callback", 401),
        ("POST", "/backoffice/staff", 303),
        ("GET", "/", 200),
        ("GET", "/p/narjis-heights/nothing/here", 404),
        ("DELETE", "/v1/storefront/bookings/WWW-WWW-WWW", 401),
    ],
)
async def test_a_body_is_read_only_where_it_is_needed_and_after_the_caller_is_known(
    method: str, path: str, status: int
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield pytest.fail("the body was asked for")

    app = app_with(payment_url="https://pay.example.com/", payment_secret="0123456789abcdef")
    async with client_of(app) as http:
        assert (await http.request(method, path, content=body(), headers=JSON)).status_code == status


@pytest.mark.parametrize(
    "path", ["/v1/storefront/projects/narjis-heights/units", "/p/x", "/backoffice/units", "/"]
)
async def test_a_query_has_at_most_two_hundred_parameters_and_16_kib(
    http: httpx.AsyncClient, path: str
) -> None:
    for params in ({f"p{number}": "1" for number in range(201)}, {"next": "=" * 6000}):
        response = await http.get(path, params=params)
        assert response.status_code == 413
        assert len(response.content) < 4000
    if path.startswith("/v1"):
        invalid(await http.get(path, params={"p0": "1", "p1": "1"}), "/query/p0", "/query/p1")


async def test_the_back_office_asks_strangers_to_sign_in_within_the_public_rate_limit() -> None:
    app = app_with(public_rate_limit="0.001")
    async with client_of(app, "192.0.2.1") as http, client_of(app, "192.0.2.2") as other:
        assert (await http.get("/backoffice/sign-in", headers=HTML)).status_code == 200
        for path in ("/sign-in", "/sign-in/code", "/sign-in/language", "/set-up/x", "", "/staff"):
            for method in ("GET", "POST"):
                response = await http.request(method, f"/backoffice{path}", headers=HTML)
                assert response.status_code == 429
                assert response.headers["content-type"].startswith("text/html")
                assert int(response.headers["retry-after"]) > 0
        assert (await other.get("/backoffice/sign-in", headers=HTML)).status_code == 200


async def test_a_long_address_is_not_repeated_by_the_redirect_to_the_sign_in(http: httpx.AsyncClient) -> None:
    for length, is_repeated in ((3000, True), (5000, False)):
        response = await http.get("/backoffice/bookings", params={"q": "x" * length})
        assert ("next=" in response.headers["location"]) is is_repeated
        htmx = {"HX-Request": "true", "HX-Current-URL": f"http://x/backoffice?{'x' * length}"}
        response = await http.get("/backoffice/bookings", headers=htmx)
        assert ("next=" in response.headers["hx-redirect"]) is is_repeated


@pytest.mark.parametrize("path", ["/p/narjis-heights/units/A-1/hold", "/backoffice/sign-in"])
async def test_forms_of_public_pages_are_small_and_have_at_most_two_hundred_fields(
    http: httpx.AsyncClient, path: str
) -> None:
    for data in ({f"field{number}": "1" for number in range(201)}, {"csrf": "x" * 16 * 1024}):
        response = await http.post(path, data=data, headers=HTML)
        assert response.status_code == 413
        assert response.headers["content-type"].startswith("text/html")


async def test_the_body_of_a_hold_is_small(http: httpx.AsyncClient) -> None:
    path = "/v1/storefront/projects/narjis-heights/units/A-1/hold"
    response = await http.post(path, content=b" " * 1025, headers=JSON)
    assert "1 KiB" in problem(response, 413)["detail"]


async def test_long_responses_are_compressed_on_request_and_events_never(
    http: httpx.AsyncClient,
) -> None:
    async with http.stream("GET", "/text", headers={"Accept-Encoding": "gzip"}) as response:
        raw = b"".join([part async for part in response.aiter_raw()])
    assert response.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).decode() == LONG_TEXT
    for path, accepted in (("/text", "identity"), ("/events", "gzip")):
        response = await http.get(path, headers={"Accept-Encoding": accepted})
        assert "content-encoding" not in response.headers, "events are never compressed"


@pytest.mark.parametrize(
    ("public_url", "hsts_subdomains", "expected"),
    [
        ("https://units.example.com", "", "max-age=31536000"),
        ("https://units.example.com", "true", "max-age=31536000; includeSubDomains"),
        ("http://units.example.com", "true", None),
    ],
)
async def test_browsers_that_came_over_https_are_told_to_stay_there(
    public_url: str, hsts_subdomains: str, expected: str | None
) -> None:
    async with client_of(app_with(public_url=public_url, hsts_subdomains=hsts_subdomains)) as http:
        for path in ("/backoffice/projects", "/backoffice/nowhere", "/p/nowhere", "/", UNIT):
            assert (await http.get(path)).headers.get(STRICT_TRANSPORT) == expected


PUBLIC_PATHS = [f"/v1/storefront/projects/{{slug}}/units{path}" for path in ("", "/{code}")]


async def test_every_response_of_the_api_but_the_units_on_sale_is_kept_from_caches(app: Starlette) -> None:
    """The operations are those that are routed, so a new one cannot forget it."""
    asked = 0
    async with client_of(app) as http:
        for route in all_routes(app.routes):
            if isinstance(route.app, ApiPath):
                for method in (*route.app.operations, "BREW"):
                    path = route.app.path.format(slug="a", code="A-1", reference="x", id=uuid4())
                    response = await http.request(method, path)
                    is_public = method in ("GET", "HEAD") and route.app.path in PUBLIC_PATHS
                    expected = [] if is_public else ["no-store"]
                    assert response.headers.get_list("cache-control") == expected, (method, path)
                    asked += 1
        assert asked > 60
        for path in ("/v1/nowhere", "/v1/backoffice", "/v1/backoffice/nowhere", "/v1/integration/nowhere"):
            assert (await http.get(path)).headers["cache-control"] == "no-store"


METRICS_TOKEN = "0123456789abcdef"


async def test_metrics_may_need_a_token_and_wrong_ones_count_as_wrong_keys() -> None:
    app = app_with(metrics_token=METRICS_TOKEN, wrong_keys_per_minute="2")
    async with client_of(app) as http:
        for _ in range(3):
            response = await http.get("/metrics")
            assert problem(response, 401)["type"] == "/problems/no-credentials"
            assert response.headers["www-authenticate"] == "Bearer"
        for status in (401, 401, 429):
            response = await http.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}0"})
            assert METRICS_TOKEN not in str(problem(response, status))
        response = await http.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
        assert response.status_code == 200
        assert response.text.startswith("# HELP ")


async def test_metrics_with_a_port_of_their_own_are_there_alone_and_nothing_else_is() -> None:
    app = app_with(metrics_port="9464", metrics_token=METRICS_TOKEN)
    own, token = "http://localhost:9464", {"Authorization": f"Bearer {METRICS_TOKEN}"}
    async with client_of(app) as http:
        assert (await http.get("/metrics", headers=token)).status_code == 404
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get(f"{own}/metrics", headers=token)).status_code == 200
        assert (await http.get(f"{own}/metrics")).status_code == 401
        for path in ("/", "/healthz", "/docs", "/backoffice", "/metrics/", UNIT):
            assert (await http.get(f"{own}{path}", headers=token)).status_code == 404


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["json", "terminal"])
async def test_every_request_is_logged_with_the_address_that_a_trusted_proxy_reports(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "_request_handler", logging.BatchHandler(stream))
    app = app_with(trusted_proxies="10.0.0.0/8", public_rate_limit="0.001", metrics_token=METRICS_TOKEN)
    asked = [
        ("/metrics", 401),
        ("/nowhere", 404),
        (UNIT, 401),
        ("/v1/storefront/projects/a/units?limit=x", 422),
    ]
    asked += [("/v1/storefront/projects/a/units", 429), ("/backoffice/sign-in", 429), ("/", 200)]
    async with client_of(app, "10.0.0.7") as http:
        for path, status in asked:
            response = await http.get(path, headers={"X-Forwarded-For": "198.51.100.9, 203.0.113.7"})
            assert response.status_code == status
    await asyncio.sleep(0)  # Lines are written at the end of a turn of the loop.
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(asked)
    for line, (path, status) in zip(lines, asked, strict=True):
        message = f"GET {path.partition('?')[0]} {status}"
        if stream.isatty():
            assert re.fullmatch(rf"\d\d:\d\d:\d\d  {re.escape(message)}  [\d.]+ ms  203\.0\.113\.7", line)
        else:
            logged = json.loads(line)
            assert (logged["message"], logged["client"]) == (message, "203.0.113.7")


async def test_without_a_database_the_back_office_answers_503_with_a_page() -> None:
    headers = {**HTML, "Cookie": f"__Host-holdfast_session={'x' * 43}"}
    app = app_with(public_url="https://units.example.com")
    async with app.router.lifespan_context(app), client_of(app) as http:
        for path in ("/backoffice/projects", "/backoffice/nowhere"):
            answer = await http.get(path, headers=headers)
            assert answer.status_code == 503
            assert answer.headers["content-type"].startswith("text/html")
            assert STRICT_TRANSPORT in answer.headers


def figure(name: str, **labels: Any) -> float:
    labels |= {"method": "GET", "route": "/counted"}
    return REGISTRY.get_sample_value(f"holdfast_http_request{name}", labels) or 0.0


async def test_requests_are_counted_soon_and_a_time_on_a_bound_belongs_below_it() -> None:
    for seconds in (0.001, 0.0011, 0.0025, 31.0):
        metrics.count_request("GET", "/counted", 200, seconds)
    async with asyncio.timeout(60):
        while not figure("s_total", status="200"):  # noqa: ASYNC110
            await asyncio.sleep(metrics.FLUSH_SECONDS)
    assert figure("s_total", status="200") == figure("_seconds_count") == 4
    assert figure("_seconds_sum") == 31.0046
    bounds = ("0.001", "0.0025", "30.0", "+Inf")
    assert [figure("_seconds_bucket", le=bound) for bound in bounds] == [1, 3, 3, 4]
