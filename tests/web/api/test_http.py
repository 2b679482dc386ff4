"""HTTP itself: requests that break it or are seldom seen, methods and paths, ids of requests."""

import json
import re
from collections.abc import Callable
from uuid import uuid4

import httpx
import pytest

from tests.support import raw_http
from tests.support.app import InProcessApp
from tests.support.buying import offers_url
from tests.support.client import JSON, Project, Unit, integration_client
from tests.support.problems import problem
from tests.support.raw_http import RawResponse
from tests.support.server import RunningServer, wait_until
from tests.support.sql import Sql

BODY = b'{"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}'
LENGTH = ("Content-Length", str(len(BODY)))
CHUNKED = ("Transfer-Encoding", "chunked")
MEBIBYTE = 1024 * 1024
PROJECTS, EVENTS = "/v1/integration/projects", "/v1/integration/events"
Put = Callable[..., RawResponse]


@pytest.fixture
def head(api_key: str) -> Callable[..., bytes]:
    """The head of a PUT to a unit, with these headers."""
    basic = [("Authorization", f"Bearer {api_key}"), ("Content-Type", JSON)]
    return lambda target, *more: raw_http.request_head("PUT", target, [*basic, *more])


@pytest.fixture
def put(real_server: RunningServer, head: Callable[..., bytes]) -> Put:
    def send(target: str, *more: tuple[str, str], body: bytes = BODY) -> RawResponse:
        return raw_http.exchange(real_server.address, head(target, *more) + body)

    return send


def test_a_raw_request_is_served_whole_or_in_chunks(put: Put, unit: Unit) -> None:
    assert put(unit.url, LENGTH).status == 201
    assert put(unit.url, CHUNKED, body=raw_http.chunked(BODY, 7)).status == 200
    # Whether the body is waited for or not.
    assert put(unit.url, LENGTH, ("Expect", "100-continue")).status in (100, 200)


def test_a_length_that_is_none_or_contradicts_is_refused(put: Put, unit: Unit) -> None:
    for both in ([LENGTH, CHUNKED], [CHUNKED, LENGTH]):
        assert put(unit.url, *both, body=raw_http.chunked(BODY)).status == 400
    for value in ("nonsense", "-1", "1, 2", "0x10", "9" * 40):
        assert put(unit.url, ("Content-Length", value)).status in (400, 413)
    assert put(unit.url, ("Content-Length", "2"), LENGTH).status == 400
    compressed = raw_http.chunked(b"\x1f\x8b\x08\x00nonsense")
    encoding = ("Transfer-Encoding", "gzip, chunked")
    assert 400 <= put(unit.url, encoding, body=compressed).status < 500
    assert put(unit.url, LENGTH, ("Content-Type", "text/plain")).status in (400, 415)
    assert not unit.exists


def test_too_long_a_body_is_refused_before_it_has_come(put: Put, unit: Unit) -> None:
    assert put(unit.url, ("Content-Length", str(10**15)), body=b"").status == 413
    endless = raw_http.chunked(b" " * (2 * MEBIBYTE)).removesuffix(b"0\r\n\r\n")
    assert put(unit.url, CHUNKED, body=endless).status == 413
    assert not unit.exists


def test_two_authorization_headers_are_refused(put: Put, unit: Unit, api_key: str) -> None:
    for second in (f"Bearer {api_key}", "Bearer nonsense", "Basic dXNlcjpwYXNz"):
        response = put(unit.url, ("Authorization", second), LENGTH)
        assert response.status == 400
        assert response.headers["content-type"].split(";")[0] == "application/problem+json"
        assert json.loads(response.text)["requestId"] == response.headers["x-request-id"]
    assert not unit.exists


def test_a_client_that_hangs_up_while_its_write_is_under_way_changes_nothing_about_the_outcome(
    real_server: RunningServer, stored: Unit, sql: Sql, head: Callable[..., bytes]
) -> None:
    sql.execute("begin")
    sql.execute("select 1 from unit where id = $1 for update", stored.read()["id"])
    blocked = "select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
    with raw_http.open_socket(real_server.address) as connection:
        connection.sendall(head(stored.url, LENGTH) + BODY)
        wait_until(lambda: sql.rows(blocked))
    sql.execute("rollback")
    wait_until(lambda: stored.read()["description"] is None)


def test_a_request_counts_if_it_came_in_whole_though_its_client_is_gone(
    real_server: RunningServer, http: httpx.Client, project: Project, head: Callable[..., bytes]
) -> None:
    short = Unit(http, project, "SHORT")
    too_long = ("Content-Length", str(len(BODY) + 10))
    raw_http.hang_up(real_server.address, head(short.url, too_long) + BODY)
    units = [Unit(http, project, f"A-{number}") for number in range(5)]
    for unit in units:
        raw_http.hang_up(real_server.address, head(unit.url, LENGTH) + BODY)
    wait_until(lambda: all(unit.exists for unit in units))
    assert not short.exists


def test_pipelined_requests_are_answered_in_order(
    real_server: RunningServer, project: Project, head: Callable[..., bytes]
) -> None:
    codes = [f"A-{number}" for number in range(5)]
    requests = [head(f"{project.units_url}/{code}", LENGTH) + BODY for code in codes]
    kept_open = b"".join(requests).replace(b"Connection: close\r\n", b"")
    with raw_http.open_socket(real_server.address) as connection:
        connection.sendall(kept_open + raw_http.request_head("GET", "/healthz", []))
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert re.findall(rb'"code":\s*"([^"]+)"', received) == [code.encode() for code in codes]
    assert received.count(b"HTTP/1.1 201") == 5


def test_what_is_seldom_seen_is_no_server_fault(put: Put, real_server: RunningServer, unit: Unit) -> None:
    assert put(f"http://holdfast.test{unit.url}", LENGTH).status < 500
    for upgrade in ("websocket", "h2c"):
        assert put(unit.url, LENGTH, ("Upgrade", upgrade), ("Connection", "Upgrade")).status < 500
    for size in (10_000, 100_000):
        head = raw_http.request_head("GET", "/healthz", [("X-Filler", "x" * size)])
        assert raw_http.exchange(real_server.address, head).status < 500
    with raw_http.open_socket(real_server.address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert b" 200 " in received.splitlines()[0]


@pytest.mark.parametrize("path", [PROJECTS, EVENTS, "units"])
def test_an_odd_query_is_no_server_fault(
    real_server: RunningServer, api_key: str, project: Project, path: str
) -> None:
    target = project.units_url if path == "units" else path
    odd = ["limit=5&limit=6", "limit=%FF", "%FF=1", "limit", "&&&", "=", "limit=%", "limit=5;a=b", "a=%00"]
    for query in odd:
        head = raw_http.request_head("GET", f"{target}?{query}", [("Authorization", f"Bearer {api_key}")])
        assert raw_http.exchange(real_server.address, head).status in (200, 400, 422)


@pytest.mark.parametrize("up", ["..", "%2e%2e", "..%2f..", "%2e%2e%2f%2e%2e", "....//", "..%5c"])
def test_vendored_files_are_no_way_to_other_files(
    real_server: RunningServer, public: httpx.Client, up: str
) -> None:
    page = public.get("/docs").text
    asset = next(path for path in re.findall(r'(?:src|href)="(/[^"]+)"', page) if "." in path)
    folder = asset.rsplit("/", 1)[0]
    for target in ("app.py", "etc/passwd", "../../../../../../etc/passwd"):
        head = raw_http.request_head("GET", f"{folder}/{up}/{target}", [])
        assert raw_http.exchange(real_server.address, head).status in (400, 404)


OFFERED = {
    "/v1/integration/projects/{slug}/units/A-101": {"GET", "PUT", "PATCH"},
    "/v1/integration/projects/{slug}/units": {"GET", "PUT"},
    **{
        path: {"GET"}
        for path in (PROJECTS, EVENTS, "/openapi.json", "/docs", "/healthz", "/readyz", "/metrics")
    },
}


@pytest.mark.parametrize("path", OFFERED)
def test_a_wrong_method_is_refused_with_the_right_ones(
    http: httpx.Client, project: Project, path: str
) -> None:
    for method in {"GET", "PUT", "PATCH", "POST", "DELETE", "PROPFIND"} - OFFERED[path]:
        response = http.request(method, path.format(slug=project.slug))
        problem(response, 405)
        allowed = {name.strip() for name in response.headers["allow"].split(",")}
        assert OFFERED[path] <= allowed <= OFFERED[path] | {"HEAD", "OPTIONS"}


def test_a_path_that_is_not_offered_is_404_and_never_a_redirect(http: httpx.Client, project: Project) -> None:
    for path in ("/nowhere", "/v1", "/v1/integration", "/v1/integration/nowhere", "/v2/integration"):
        problem(http.get(path), 404)
    problem(http.get("/V1/Integration/Projects"), 404)
    for path in (f"{project.units_url}/", offers_url(project) + "/", "/docs/", "/healthz/", f"{PROJECTS}/"):
        assert not http.get(path).is_redirect


def test_two_conditions_are_one_list(stored: Unit) -> None:
    headers = [("Content-Type", JSON), ("If-Match", '"nonsense"'), ("If-Match", stored.etag)]
    assert stored.http.patch(stored.url, content="{}", headers=headers).status_code == 200


def test_a_sane_id_of_the_caller_is_kept_and_any_other_is_replaced(stored: Unit) -> None:
    for given in (str(uuid4()), "abc-123", "01HZX3J8Y8Q6T4Z5R7W9V2B3N4", "req_8f3a.2"):
        assert stored.get(X_Request_Id=given).headers["x-request-id"] == given
    bad = ("", "x" * 1000, "two words", "a\tb", '"<script>"', "\xff\xfe", "{}")
    sent = [{b"X-Request-Id": text.encode("latin-1")} for text in bad]
    answers = [stored.http.get(stored.url, headers=headers) for headers in sent]
    made = {answer.headers["x-request-id"] for answer in answers} - {*bad}
    assert len(made) == len(bad), "each has one of its own"
    assert min(map(len, made)) >= 8
    response = stored.http.get(stored.url, headers=[("X-Request-Id", "first"), ("X-Request-Id", "second")])
    assert response.headers.get_list("x-request-id") == ["second"]


def test_the_id_is_in_the_problem_and_in_the_log_and_the_key_is_not(
    server: InProcessApp, unit: Unit, api_key: str
) -> None:
    given = str(uuid4())
    assert unit.get(X_Request_Id=given).json()["requestId"] == given
    wait_until(lambda: given in server.log.read_text())
    assert api_key not in server.log.read_text()


def test_every_line_of_the_log_is_an_object_of_its_own(real_server: RunningServer, api_key: str) -> None:
    with integration_client(real_server.address, api_key) as http:
        http.put(f"{PROJECTS}/a-tower/units/A-1", content="nonsense")
        http.get(f"/nowhere/{uuid4()}")
    for line in real_server.log.read_text().splitlines():
        assert {"time", "level", "message"} <= set(json.loads(line))
