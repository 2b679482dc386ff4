"""Requests that are within HTTP but seldom seen."""

import re
from collections.abc import Callable

import httpx
import pytest

from tests.support import raw_http
from tests.support.client import JSON, Project, Unit
from tests.support.problems import problem
from tests.support.server import RunningServer

BODY = b'{"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}'
Headers = list[tuple[str, str]]
Send = Callable[..., raw_http.RawResponse]


@pytest.fixture
def basic_headers(api_key: str) -> Headers:
    return [
        ("Authorization", f"Bearer {api_key}"),
        ("Content-Type", JSON),
        ("Content-Length", str(len(BODY))),
    ]


@pytest.fixture
def put(real_server: RunningServer, basic_headers: Headers) -> Send:
    def send(target: str, *more: tuple[str, str]) -> raw_http.RawResponse:
        head = raw_http.request_head("PUT", target, [*basic_headers, *more])
        return raw_http.exchange(real_server.address, head + BODY)

    return send


def test_pipelined_requests_are_answered_in_order(
    real_server: RunningServer, http: httpx.Client, project: Project, basic_headers: Headers
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in basic_headers)
    codes = [f"A-{number}" for number in range(5)]
    requests = [
        f"PUT {project.units_url}/{code} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + BODY for code in codes
    ]
    last = raw_http.request_head("GET", "/healthz", [])
    with raw_http.open_socket(real_server.address) as connection:
        connection.sendall(b"".join(requests) + last)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert re.findall(rb'"code":\s*"([^"]+)"', received) == [code.encode() for code in codes]
    assert received.count(b"HTTP/1.1 201") == 5


def test_a_body_may_be_announced_and_waited_for(put: Send, unit: Unit) -> None:
    assert put(unit.url, ("Expect", "100-continue")).status in (100, 201)
    assert unit.exists


def test_an_absolute_target_is_the_same_address(put: Send, unit: Unit) -> None:
    assert put(f"http://holdfast.test{unit.url}").status < 500


@pytest.mark.parametrize("upgrade", ["websocket", "h2c"])
def test_an_offer_to_upgrade_is_not_taken_up(put: Send, unit: Unit, upgrade: str) -> None:
    assert put(unit.url, ("Upgrade", upgrade), ("Connection", "Upgrade")).status < 500


def test_http_1_0_is_answered(real_server: RunningServer) -> None:
    with raw_http.open_socket(real_server.address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert b" 200 " in received.splitlines()[0]


def test_two_content_types_are_not_one(put: Send, unit: Unit) -> None:
    assert put(unit.url, ("Content-Type", "text/plain")).status in (400, 415)
    assert not unit.exists


def test_a_compressed_transfer_is_refused(real_server: RunningServer, api_key: str, unit: Unit) -> None:
    headers = [("Authorization", f"Bearer {api_key}"), ("Content-Type", JSON)]
    headers += [("Transfer-Encoding", "gzip, chunked")]
    head = raw_http.request_head("PUT", unit.url, headers)
    response = raw_http.exchange(real_server.address, head + raw_http.chunked(b"\x1f\x8b\x08\x00nonsense"))
    assert 400 <= response.status < 500
    assert not unit.exists


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_a_head_of_any_size_is_no_server_fault(real_server: RunningServer, size: int) -> None:
    head = raw_http.request_head("GET", "/healthz", [("X-Filler", "x" * size)])
    assert raw_http.exchange(real_server.address, head).status < 500


@pytest.mark.parametrize(
    "query",
    [
        "limit=5&limit=6",
        "limit=%FF",
        "%FF=1",
        "limit",
        "&&&",
        "=",
        "limit=%",
        "limit=5;status=held",
        "status=%00",
    ],
)
@pytest.mark.parametrize("path", ["/v1/integration/projects", "/v1/integration/events", "units"])
def test_an_odd_query_is_no_server_fault(
    real_server: RunningServer, api_key: str, project: Project, path: str, query: str
) -> None:
    target = project.units_url if path == "units" else path
    head = raw_http.request_head("GET", f"{target}?{query}", [("Authorization", f"Bearer {api_key}")])
    assert raw_http.exchange(real_server.address, head).status in (200, 400, 422)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json"])
def test_a_probe_may_ask_for_the_head_alone(anonymous: httpx.Client, path: str) -> None:
    response = anonymous.head(path)
    assert response.status_code in (200, 405)
    assert response.content == b""


def test_the_address_is_case_sensitive(http: httpx.Client) -> None:
    problem(http.get("/V1/Integration/Projects"), 404)


def test_a_slug_may_be_spelled_out(http: httpx.Client, stored: Unit) -> None:
    spelled_out = "".join(f"%{ord(character):02X}" for character in stored.project.slug)
    answer = http.get(f"/v1/integration/projects/{spelled_out}/units/{stored.code}")
    assert answer.json()["id"] == stored.read()["id"]


def test_no_answer_sends_the_caller_elsewhere(http: httpx.Client, project: Project) -> None:
    for path in (f"{project.units_url}/", "/docs/", "/healthz/", "/v1/integration/projects/"):
        assert not http.get(path).is_redirect


@pytest.mark.parametrize("up", ["..", "%2e%2e", "..%2f..", "%2e%2e%2f%2e%2e", "....//", "..%5c"])
def test_vendored_files_are_no_way_to_other_files(
    real_server: RunningServer, anonymous: httpx.Client, up: str
) -> None:
    page = anonymous.get("/docs").text
    asset = next(path for path in re.findall(r'(?:src|href)="(/[^"]+)"', page) if "." in path)
    folder = asset.rsplit("/", 1)[0]
    for target in ("app.py", "settings.py", "etc/passwd", "../../../../../../etc/passwd"):
        head = raw_http.request_head("GET", f"{folder}/{up}/{target}", [])
        assert raw_http.exchange(real_server.address, head).status in (400, 404)


def test_two_conditions_are_one_list(stored: Unit) -> None:
    headers = [("Content-Type", JSON), ("If-Match", '"nonsense"'), ("If-Match", stored.etag)]
    assert stored.http.patch(stored.url, content="{}", headers=headers).status_code == 200


def test_create_unless_it_is_this_version(stored: Unit) -> None:
    problem(stored.patch({"bedrooms": 9}, If_None_Match=stored.etag), 412)
    assert stored.patch({"bedrooms": 9}, If_None_Match='"another"').status_code == 200


def test_a_reader_may_name_a_weak_etag_or_several(stored: Unit) -> None:
    etag = stored.etag
    for known in (f"W/{etag}", f'"another", {etag}', "*"):
        assert stored.get(If_None_Match=known).status_code == 304
