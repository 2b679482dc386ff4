"""What the ready receivers answer: the same behind ASGI and WSGI, in process and on real servers."""

import asyncio
import io
import logging
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest
import uvicorn

from holdfast_webhooks import Event, Receiver, SeenElsewhere, SeenIds, SeenInSqlite, WsgiReceiver
from sdk.make_vectors import OTHER_SECRET, SECRET
from tests.sdk.deliveries import URL, Delivery, delivery

MEBIBYTE = 1024 * 1024
Build = Callable[..., "Called"]


class Called:
    """A receiver together with what its handler got."""

    def __init__(self, kind: str, secret: Any = SECRET, seen: SeenIds | None = None) -> None:
        self.events: list[Event] = []
        self.failing = False
        self.receiver = (Receiver if kind == "asgi" else WsgiReceiver)(secret, self._on_event, seen=seen)

    def _on_event(self, event: Event) -> None:
        if self.failing:
            raise RuntimeError("the database of the receiver is away")
        self.events.append(event)

    def post(self, sent: Delivery) -> httpx.Response:
        return self.request("POST", headers=sent.headers, content=sent.body)

    def request(self, method: str, **given: Any) -> httpx.Response:
        if isinstance(self.receiver, WsgiReceiver):
            with httpx.Client(transport=httpx.WSGITransport(self.receiver)) as client:
                return client.request(method, URL, **given)
        return asyncio.run(self._request(self.receiver, method, **given))

    async def _request(self, receiver: Receiver, method: str, **given: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver)) as client:
            return await client.request(method, URL, **given)


@pytest.fixture(params=["asgi", "wsgi"])
def build(request: pytest.FixtureRequest) -> Build:
    return lambda **given: Called(request.param, **given)


@pytest.fixture
def called(build: Build) -> Called:
    return build()


def problem(response: httpx.Response, status: int) -> str:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert set(document) == {"title", "status", "reason", "detail"}
    assert document["status"] == status
    return str(document["reason"])


def now() -> int:
    return int(time.time())


def test_a_delivery_is_given_to_the_handler_once_and_answered_204(called: Called) -> None:
    for sent in (delivery("unit.held"), delivery("ping"), delivery(type="unit.renamed"), delivery()):
        response = called.post(sent)
        assert (response.status_code, response.content) == (204, b"")
        assert str(called.events[-1].id) == sent.headers["X-Service-Delivery"]
    assert [called.post(again).status_code for again in (sent, sent.signed_at(now() - 40))] == [204, 204]
    assert len(called.events) == 4
    called.post(delivery(code="برج أ/١٠١ 🏠"))
    assert called.events[4].unit is not None
    assert called.events[4].unit.code == "برج أ/١٠١ 🏠"


def test_a_handler_that_raises_gets_the_retry(called: Called, caplog: pytest.LogCaptureFixture) -> None:
    sent, called.failing = delivery(), True
    with caplog.at_level(logging.ERROR, "holdfast_webhooks"):
        response = called.post(sent)
    assert problem(response, 500) == "handler-failed"
    assert "the database of the receiver is away" not in response.text
    assert "the database of the receiver is away" in caplog.text
    called.failing = False
    assert called.post(sent).status_code == 204
    assert len(called.events) == 1


def test_a_refused_signature_is_401_reaches_no_handler_and_does_not_use_up_the_id(called: Called) -> None:
    sent = delivery()
    refused = {
        "signature-missing": sent.with_headers(Signature=""),
        "scheme-not-sha256": sent.with_headers(Signature="v1=00"),
        "digest-differs": sent._replace(body=sent.body.replace(b"sold", b"held")),
        "too-old": sent.signed_at(now() - 400),
        "too-far-ahead": sent.signed_at(now() + 400),
        "timestamp-not-a-number": sent.with_headers(Timestamp="now"),
    }
    for reason, one in refused.items():
        answer = called.post(one)
        assert problem(answer, 401) == reason
        assert answer.headers["www-authenticate"] == "Service-Signature"
    assert called.events == []
    assert called.post(sent).status_code == 204
    assert len(called.events) == 1


def test_a_signed_request_that_is_no_delivery_is_400(called: Called) -> None:
    nothing = Delivery(delivery().headers, b"{}").signed_at(now())
    other_id = delivery().with_headers(Delivery="d1f2bd53-9f43-4f2a-8f2b-2f8a1b0f0e11")
    other_event = delivery().with_headers(Event="ping")
    reasons = [problem(called.post(one), 400) for one in (nothing, other_id, other_event)]
    assert reasons == ["body-not-an-event", "id-differs", "type-differs"]
    assert called.events == []


def test_other_methods_are_405(called: Called) -> None:
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
        response = called.request(method)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_body_over_one_mebibyte_is_413_and_one_of_that_size_is_read(called: Called) -> None:
    sent = delivery()
    fits = Delivery(sent.headers, sent.body.ljust(MEBIBYTE)).signed_at(now())
    too_large = Delivery(sent.headers, fits.body + b" ").signed_at(now())
    assert problem(called.post(too_large), 413) == "body-too-large"
    assert called.post(fits).status_code == 204


def test_the_secret_may_be_several_or_a_function_and_must_be_there(build: Build) -> None:
    assert build(secret=[OTHER_SECRET, SECRET]).post(delivery()).status_code == 204
    secrets = [OTHER_SECRET]
    called = build(secret=lambda: secrets[0])
    assert problem(called.post(delivery()), 401) == "digest-differs"
    secrets[0] = SECRET
    assert called.post(delivery()).status_code == 204
    missing: Any
    for missing in ("", [], "with a newline\n"):
        with pytest.raises(ValueError, match="secret"):
            build(secret=missing)


def test_whether_a_delivery_was_processed_is_for_the_store_to_say(build: Build, tmp_path: Path) -> None:
    sent, directory = delivery(), tmp_path / "seen"
    directory.mkdir()
    before, after = (build(seen=SeenInSqlite(directory / "seen.db")) for _ in range(2))
    assert [before.post(sent).status_code, after.post(sent).status_code] == [204, 204]
    assert (len(before.events), len(after.events)) == (1, 0)
    shutil.rmtree(directory)
    assert problem(after.post(delivery()), 500) == "handler-failed"
    assert after.events == []
    own = build(seen=SeenElsewhere())
    assert [own.post(sent).status_code, own.post(sent).status_code] == [204, 204]
    assert len(own.events) == 2


class DrippingInput(io.BytesIO):
    """Gives less than it is asked for, as some servers do."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size) if size else size)


def wsgi_status(sent: Delivery, body: io.BytesIO, **environ: object) -> str:
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent.headers.items()}
    started: list[str] = []
    receiver = WsgiReceiver(SECRET, lambda event: None)
    given = {"REQUEST_METHOD": "POST", "wsgi.input": body, **headers, **environ}
    list(receiver(given, lambda status, headers: started.append(status)))
    return started[0][:3]


def test_wsgi_reads_all_that_the_length_says_and_no_more() -> None:
    sent = delivery()
    length = str(len(sent.body))
    assert wsgi_status(sent, DrippingInput(sent.body), CONTENT_LENGTH=length) == "204"
    source = io.BytesIO(sent.body + b"the next request")
    assert wsgi_status(sent, source, CONTENT_LENGTH=length) == "204"
    assert source.read() == b"the next request"


@pytest.mark.parametrize("environ", [{}, {"CONTENT_LENGTH": ""}])
def test_without_a_length_wsgi_reads_only_if_the_server_says_the_input_ends(environ: dict[str, str]) -> None:
    sent = delivery()
    assert wsgi_status(sent, io.BytesIO(sent.body), **environ) == "401"
    terminated = {"wsgi.input_terminated": True, **environ}
    assert wsgi_status(sent, io.BytesIO(sent.body), **terminated) == "204"
    assert wsgi_status(sent, io.BytesIO(b" " * (MEBIBYTE + 1)), **terminated) == "413"


@pytest.mark.parametrize("length", ["x", "-1", "1e3", "٣", "9" * 5000, str(MEBIBYTE + 1)])
def test_a_length_that_is_nonsense_or_too_large_is_refused(length: str) -> None:
    sent = delivery()
    too_large = length.isascii() and length.isdigit()
    assert wsgi_status(sent, io.BytesIO(sent.body), CONTENT_LENGTH=length) == ("413" if too_large else "400")


async def asgi_messages(receiver: Receiver, scope: dict[str, Any], *received: dict[str, Any]) -> list[Any]:
    """What it sends; more than it is to receive it may not ask for."""
    coming, answered = iter(received), []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", **next(coming)}

    async def send(message: MutableMapping[str, Any]) -> None:
        answered.append(message)

    await receiver(scope, receive, send)
    return answered


async def test_asgi_puts_a_body_in_parts_together_and_acts_on_none_that_is_cut_off() -> None:
    events: list[Event] = []
    receiver, sent = Receiver(SECRET, events.append), delivery()
    headers = [(name.lower().encode(), value.encode()) for name, value in sent.headers.items()]
    scope = {"type": "http", "method": "POST", "headers": headers}
    cut_off = {"body": sent.body, "more_body": True}
    assert await asgi_messages(receiver, scope, cut_off, {"type": "http.disconnect"}) == []
    twice = await asgi_messages(receiver, {**scope, "headers": headers * 2}, {"body": sent.body})
    assert twice[0]["status"] == 400
    assert events == []
    parts = ({"body": sent.body[:50], "more_body": True}, {"more_body": True}, {"body": sent.body[50:]})
    messages = await asgi_messages(receiver, scope, *parts)
    assert messages[0]["status"] == 204
    assert b"content-length" not in dict(messages[0]["headers"])
    assert len(events) == 1


async def test_asgi_refuses_a_body_that_is_too_large_before_it_ends() -> None:
    receiver = Receiver(SECRET, print)
    said = {"type": "http", "method": "POST", "headers": [(b"content-length", b"%d" % (MEBIBYTE + 1))]}
    assert (await asgi_messages(receiver, said))[0]["status"] == 413
    endless = {"body": bytes(MEBIBYTE + 1), "more_body": True}
    assert (await asgi_messages(receiver, {**said, "headers": []}, endless))[0]["status"] == 413


async def test_asgi_starts_and_stops_with_its_server_and_closes_websockets() -> None:
    receiver = Receiver(SECRET, print)
    kinds = ("lifespan.startup", "lifespan.shutdown")
    answered = await asgi_messages(receiver, {"type": "lifespan"}, *({"type": kind} for kind in kinds))
    assert [message["type"] for message in answered] == [f"{kind}.complete" for kind in kinds]
    assert await asgi_messages(receiver, {"type": "websocket"}) == [{"type": "websocket.close"}]


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_on_a_real_server(kind: str) -> None:
    called, sent = Called(kind), delivery(code="برج أ/١٠١")
    forged = sent.with_headers(Signature=f"sha256={'0' * 64}")
    with serving(called.receiver) as url, httpx.Client(trust_env=False, timeout=60) as client:
        answers = [client.post(url, headers=one.headers, content=one.body) for one in (sent, sent, forged)]
        assert [answer.status_code for answer in answers] == [204, 204, 401]
        assert answers[2].json()["reason"] == "digest-differs"
        head = client.head(url)
        assert (head.status_code, head.content) == (405, b"")
    assert [event.unit and event.unit.code for event in called.events] == ["برج أ/١٠١"]


@contextmanager
def serving(receiver: Receiver | WsgiReceiver) -> Iterator[str]:
    """On wsgiref or uvicorn. The socket listens before the server runs: nobody waits for the start."""
    if isinstance(receiver, WsgiReceiver):
        simple = make_server("127.0.0.1", 0, receiver, handler_class=QuietHandler)
        listening, run, stop = simple.socket, simple.serve_forever, simple.shutdown
    else:
        config = uvicorn.Config(receiver, log_level="warning", ws="none", lifespan="on")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        run, stop = partial(server.run, [listening]), partial(setattr, server, "should_exit", True)
    thread = threading.Thread(target=run)
    thread.start()
    with listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
        stop()
        thread.join(120)
    assert not thread.is_alive()


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        pass
