"""Requests that break HTTP itself, and methods and paths that are not offered."""

import json
import time
from collections.abc import Callable

import httpx
import pytest

from tests.support import raw_http
from tests.support.client import JSON, Project, Unit
from tests.support.problems import problem
from tests.support.raw_http import RawResponse
from tests.support.server import RunningServer
from tests.support.sql import Sql

BODY = b'{"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}'


@pytest.fixture
def basic_headers(api_key: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {api_key}"), ("Content-Type", JSON)]


Headers = list[tuple[str, str]]


def put(real_server: RunningServer, unit: Unit, headers: Headers, body: bytes) -> RawResponse:
    return raw_http.exchange(real_server.address, raw_http.request_head("PUT", unit.url, headers) + body)


def assert_problem(response: RawResponse, status: int) -> None:
    assert response.status == status
    assert response.headers["content-type"].split(";")[0] == "application/problem+json"
    assert json.loads(response.text)["requestId"] == response.headers["x-request-id"]


def length_of(body: bytes) -> tuple[str, str]:
    return ("Content-Length", str(len(body)))


def test_a_raw_request_that_is_right_is_served(
    real_server: RunningServer, unit: Unit, basic_headers: Headers
) -> None:
    assert put(real_server, unit, [*basic_headers, length_of(BODY)], BODY).status == 201


def test_a_chunked_request_is_served(real_server: RunningServer, unit: Unit, basic_headers: Headers) -> None:
    headers = [*basic_headers, ("Transfer-Encoding", "chunked")]
    assert put(real_server, unit, headers, raw_http.chunked(BODY, 7)).status == 201


@pytest.mark.parametrize("length_first", [True, False])
def test_both_a_length_and_chunks_are_refused(
    real_server: RunningServer, unit: Unit, basic_headers: Headers, length_first: bool
) -> None:
    both = [length_of(BODY), ("Transfer-Encoding", "chunked")]
    headers = basic_headers + (both if length_first else both[::-1])
    assert put(real_server, unit, headers, raw_http.chunked(BODY)).status == 400
    assert not unit.exists


@pytest.mark.parametrize("value", ["nonsense", "-1", "1, 2", "0x10", "9" * 40])
def test_a_length_that_is_none_is_refused(
    real_server: RunningServer, unit: Unit, basic_headers: Headers, value: str
) -> None:
    response = put(real_server, unit, [*basic_headers, ("Content-Length", value)], BODY)
    assert response.status in (400, 413)
    assert not unit.exists


def test_two_different_lengths_are_refused(
    real_server: RunningServer, unit: Unit, basic_headers: Headers
) -> None:
    headers = [*basic_headers, ("Content-Length", "2"), length_of(BODY)]
    assert put(real_server, unit, headers, BODY).status == 400
    assert not unit.exists


def test_two_authorization_headers_are_refused(
    real_server: RunningServer, unit: Unit, basic_headers: Headers, api_key: str
) -> None:
    for second in (f"Bearer {api_key}", "Bearer nonsense", "Basic dXNlcjpwYXNz"):
        headers = [*basic_headers, ("Authorization", second), length_of(BODY)]
        assert_problem(put(real_server, unit, headers, BODY), 400)
        headers = [("Authorization", second), *basic_headers, length_of(BODY)]
        assert_problem(put(real_server, unit, headers, BODY), 400)
    assert not unit.exists


def test_a_client_that_hangs_up_while_its_write_is_under_way_changes_nothing_about_the_outcome(
    real_server: RunningServer, stored: Unit, sql: Sql, basic_headers: Headers
) -> None:
    head = raw_http.request_head("PUT", stored.url, [*basic_headers, length_of(BODY)])
    sql.execute("begin")
    sql.execute("select 1 from unit where id = $1 for update", stored.read()["id"])
    with raw_http.open_socket(real_server.address) as connection:
        connection.sendall(head + BODY)
        await_blocked_writer(sql)
    sql.execute("rollback")
    assert eventually(lambda: stored.read()["description"] is None)


def test_a_request_that_came_in_whole_counts_though_its_client_is_gone(
    real_server: RunningServer, http: httpx.Client, project: Project, basic_headers: Headers
) -> None:
    units = [Unit(http, project, f"A-{number}") for number in range(10)]
    for unit in units:
        head = raw_http.request_head("PUT", unit.url, [*basic_headers, length_of(BODY)])
        raw_http.hang_up(real_server.address, head + BODY)
    assert eventually(lambda: all(unit.exists for unit in units))


def await_blocked_writer(sql: Sql) -> None:
    """Until another session waits for the row that this one has locked."""
    blocked = "select pg_sleep(0.01), exists (select from pg_locks where not granted) as found"
    assert any(sql.row(blocked)["found"] for _ in range(1000)), "nobody came to write"


def eventually(is_so: Callable[[], bool]) -> bool:
    over = time.monotonic() + 5
    while not (so := is_so()) and time.monotonic() < over:
        time.sleep(0.01)
    return so


def test_a_body_that_is_cut_short_stores_nothing(
    real_server: RunningServer, unit: Unit, basic_headers: Headers
) -> None:
    head = raw_http.request_head("PUT", unit.url, [*basic_headers, ("Content-Length", str(len(BODY) + 10))])
    raw_http.hang_up(real_server.address, head + BODY)
    assert not unit.exists


UNIT = "/v1/integration/projects/{slug}/units/A-101"
UNITS = "/v1/integration/projects/{slug}/units"
PROJECTS = "/v1/integration/projects"
EVENTS = "/v1/integration/events"
OFFERED = {
    UNIT: {"GET", "PUT", "PATCH"},
    UNITS: {"GET", "PUT"},
    PROJECTS: {"GET"},
    EVENTS: {"GET"},
    "/openapi.json": {"GET"},
    "/docs": {"GET"},
    "/healthz": {"GET"},
    "/readyz": {"GET"},
    "/metrics": {"GET"},
}
REFUSED = [
    (path, method)
    for path, offered in OFFERED.items()
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE", "PROPFIND")
    if method not in offered
]


@pytest.mark.parametrize(("path", "method"), REFUSED)
def test_a_wrong_method_is_refused_with_the_right_ones(
    http: httpx.Client, project: Project, path: str, method: str
) -> None:
    response = http.request(method, path.format(slug=project.slug))
    problem(response, 405)
    allowed = {name.strip() for name in response.headers["allow"].split(",")}
    assert OFFERED[path] <= allowed <= OFFERED[path] | {"HEAD", "OPTIONS"}


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1", "/v1/integration", "/v1/integration/nowhere", "/v2/integration"]
)
def test_a_path_that_is_not_offered_is_404(http: httpx.Client, path: str) -> None:
    problem(http.get(path), 404)
