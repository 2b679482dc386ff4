"""The ready receivers behind real servers, over real sockets."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest
import uvicorn

from holdfast_webhooks import Event, Receiver, WsgiReceiver
from sdk.make_vectors import SECRET
from tests.sdk.deliveries import Delivery, delivery

MEBIBYTE = 1024 * 1024
OnEvent = Callable[[Event], object]


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        pass


@contextmanager
def in_a_thread(run: Callable[[], object], stop: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(30)
    assert not thread.is_alive()


@contextmanager
def on_uvicorn(on_event: OnEvent) -> Iterator[str]:
    """The socket listens before the server runs, so nobody has to wait for the start."""
    config = uvicorn.Config(Receiver(SECRET, on_event), log_level="warning", ws="none", lifespan="on")
    server = uvicorn.Server(config)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        in_a_thread(lambda: server.run([listening]), lambda: setattr(server, "should_exit", True)),
    ):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"


@contextmanager
def on_wsgiref(on_event: OnEvent) -> Iterator[str]:
    receiver = WsgiReceiver(SECRET, on_event)
    with (
        make_server("127.0.0.1", 0, receiver, handler_class=QuietHandler) as server,
        in_a_thread(server.serve_forever, server.shutdown),
    ):
        yield f"http://127.0.0.1:{server.server_port}/hook"


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture(params=[on_uvicorn, on_wsgiref])
def url(request: pytest.FixtureRequest, events: list[Event]) -> Iterator[str]:
    with request.param(events.append) as address:
        yield address


def post(url: str, sent: Delivery, **more: str) -> httpx.Response:
    return httpx.post(url, headers={**sent.headers, **more}, content=sent.body, trust_env=False, timeout=30)


def test_a_delivery_its_retry_and_a_forgery(url: str, events: list[Event]) -> None:
    sent, forged = delivery(code="برج أ/١٠١"), delivery().with_headers(Signature=f"sha256={'0' * 64}")
    assert [post(url, one).status_code for one in (sent, sent, forged)] == [204, 204, 401]
    assert [event.unit and event.unit.code for event in events] == ["برج أ/١٠١"]
    assert post(url, forged).json()["reason"] == "digest-differs"


def test_a_head_request_is_405_without_a_body(url: str) -> None:
    response = httpx.head(url, trust_env=False)
    assert (response.status_code, response.content) == (405, b"")


def begin_of_answer(url: str, *parts: bytes) -> bytes:
    host, port = url.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(b"".join(parts))
        return connection.recv(64)


def test_a_body_that_is_said_to_be_too_large_is_413_before_it_is_sent(url: str) -> None:
    head = f"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: {MEBIBYTE + 1}\r\n\r\n"
    assert b" 413 " in begin_of_answer(url, head.encode())


def test_a_body_without_end_is_413_on_uvicorn_before_it_ends(events: list[Event]) -> None:
    head = b"POST /hook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with on_uvicorn(events.append) as url:
        assert b" 413 " in begin_of_answer(url, head, b"%x\r\n" % (2 * MEBIBYTE), b" " * (MEBIBYTE + 1))


def test_a_header_that_stands_twice_is_refused(url: str, events: list[Event]) -> None:
    sent = delivery()
    headers = [*sent.headers.items(), ("X-Service-Signature", sent.headers["X-Service-Signature"])]
    response = httpx.post(url, headers=headers, content=sent.body, trust_env=False)
    assert response.status_code in (400, 401)
    assert events == []


def test_a_chunked_delivery_is_read_on_uvicorn(events: list[Event]) -> None:
    sent = delivery()
    with on_uvicorn(events.append) as url:
        parts = iter([sent.body[:10], sent.body[10:]])
        assert httpx.post(url, headers=sent.headers, content=parts, trust_env=False).status_code == 204
    assert len(events) == 1
