"""Requests that are right by the rules of HTTP, and those that use them to fill the memory."""

import pytest

from tests.support import raw_http
from tests.support.client import JSON, Unit
from tests.support.server import RunningServer

BODY = b'{"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}'
LENGTH = f"Content-Length: {len(BODY)}"
H2C = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB"]


def head(unit: Unit, api_key: str, *lines: str) -> bytes:
    first = [f"PUT {unit.url} HTTP/1.1", "Host: holdfast.test", f"Authorization: Bearer {api_key}"]
    return "\r\n".join([*first, f"Content-Type: {JSON}", *lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("framing", "body"),
    [(LENGTH, BODY), ("Transfer-Encoding: chunked", raw_http.chunked(BODY))],
    ids=["length", "chunked"],
)
def test_an_offer_of_another_protocol_is_passed_over_and_the_body_is_not(
    server: RunningServer, unit: Unit, api_key: str, framing: str, body: bytes
) -> None:
    request = head(unit, api_key, *H2C, framing) + body
    assert raw_http.exchange(server.address, request).status == 201
    assert unit.read()["areaSqm"] == 120.5


def test_two_requests_with_such_an_offer_are_answered_on_one_connection(
    server: RunningServer, unit: Unit, api_key: str
) -> None:
    with raw_http.open_socket(server.address) as connection:
        for status in (b"HTTP/1.1 201", b"HTTP/1.1 200"):
            connection.sendall(head(unit, api_key, *H2C, LENGTH) + BODY)
            assert connection.recv(65_536).startswith(status)


def test_trailers_are_read_and_forgotten(server: RunningServer, unit: Unit, api_key: str) -> None:
    chunks = raw_http.chunked(BODY).removesuffix(b"\r\n") + b"X-Request-Id: from-a-trailer\r\n\r\n"
    request = head(unit, api_key, "Transfer-Encoding: chunked", "Connection: close") + chunks
    answer = raw_http.exchange(server.address, request)
    assert answer.status == 201
    assert answer.headers["x-request-id"] != "from-a-trailer"


@pytest.mark.parametrize("trailer", [b"a: b\r\n", b"a: " + b"b" * 65_536], ids=["many", "one endless"])
def test_trailers_without_end_are_refused(server: RunningServer, unit: Unit, trailer: bytes) -> None:
    start = head(unit, "none", "Transfer-Encoding: chunked") + b"0\r\n"
    with raw_http.open_socket(server.address) as connection:
        connection.sendall(start)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            connection.sendall(trailer * (64 * 1024**2 // len(trailer)))


def test_a_request_that_follows_a_large_one_closely_is_not_taken_for_a_large_head(
    server: RunningServer, unit: Unit, api_key: str
) -> None:
    padded = BODY + b" " * 200_000
    first = head(unit, api_key, f"Content-Length: {len(padded)}") + padded
    second = head(unit, api_key, LENGTH)
    with raw_http.open_socket(server.address) as connection:
        connection.sendall(first + second[:100])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 201")
        connection.sendall(second[100:] + BODY)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
