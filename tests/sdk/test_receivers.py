"""What the ready receivers answer: the same, behind ASGI and behind WSGI."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast_webhooks import Event, Receiver, SeenElsewhere, SeenIds, SeenInSqlite, WsgiReceiver
from sdk.make_vectors import OTHER_SECRET, SECRET
from tests.sdk.deliveries import Delivery, delivery

URL = "http://receiver.invalid/hook"
Build = Callable[..., "Called"]


class Called:
    """A receiver together with what its handler got."""

    def __init__(self, kind: str, secret: Any = SECRET, seen: SeenIds | None = None) -> None:
        self.events: list[Event] = []
        self.failing = False
        self._receiver = (Receiver if kind == "asgi" else WsgiReceiver)(secret, self._on_event, seen=seen)

    def _on_event(self, event: Event) -> None:
        if self.failing:
            raise RuntimeError("the database of the receiver is away")
        self.events.append(event)

    def post(self, sent: Delivery) -> httpx.Response:
        return self.request("POST", headers=sent.headers, content=sent.body)

    def request(self, method: str, **given: Any) -> httpx.Response:
        if isinstance(self._receiver, WsgiReceiver):
            with httpx.Client(transport=httpx.WSGITransport(self._receiver)) as client:
                return client.request(method, URL, **given)
        return asyncio.run(self._request(self._receiver, method, **given))

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


@pytest.mark.parametrize(
    "sent", [delivery("unit.held"), delivery(), delivery("ping"), delivery(type="unit.renamed")]
)
def test_a_delivery_is_given_to_the_handler_and_answered_204(called: Called, sent: Delivery) -> None:
    response = called.post(sent.signed_at(int(time.time())))
    assert (response.status_code, response.content) == (204, b"")
    assert [str(event.id) for event in called.events] == [sent.headers["X-Service-Delivery"]]


def test_a_code_in_any_script_arrives_whole(called: Called) -> None:
    called.post(delivery(code="برج أ/١٠١ 🏠"))
    assert [event.unit and event.unit.code for event in called.events] == ["برج أ/١٠١ 🏠"]


def test_a_repeated_id_is_answered_204_and_not_handled_again(called: Called) -> None:
    sent = delivery()
    retry = sent.signed_at(int(time.time()) - 40)
    assert [called.post(one).status_code for one in (sent, retry, sent)] == [204, 204, 204]
    assert len(called.events) == 1


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


def test_a_refused_signature_is_401_and_reaches_no_handler(called: Called) -> None:
    sent = delivery()
    refused = {
        "signature-missing": sent.with_headers(Signature=""),
        "scheme-not-sha256": sent.with_headers(Signature="v1=00"),
        "digest-differs": sent._replace(body=sent.body.replace(b"sold", b"held")),
        "too-old": sent.signed_at(int(time.time()) - 310),
        "too-far-ahead": sent.signed_at(int(time.time()) + 310),
        "timestamp-not-a-number": sent.with_headers(Timestamp="now"),
    }
    answers = {reason: called.post(one) for reason, one in refused.items()}
    assert {reason: problem(answer, 401) for reason, answer in answers.items()} == {r: r for r in refused}
    assert all(answer.headers["www-authenticate"] == "Service-Signature" for answer in answers.values())
    assert called.events == []


def test_a_refused_delivery_does_not_use_up_its_id(called: Called) -> None:
    sent = delivery()
    assert called.post(sent.with_headers(Signature=f"sha256={'0' * 64}")).status_code == 401
    assert called.post(sent).status_code == 204
    assert len(called.events) == 1


def test_a_signed_request_that_is_no_delivery_is_400(called: Called) -> None:
    nothing = Delivery(delivery().headers, b"{}").signed_at(int(time.time()))
    other_id = delivery().with_headers(Delivery="d1f2bd53-9f43-4f2a-8f2b-2f8a1b0f0e11")
    other_event = delivery().with_headers(Event="ping")
    reasons = [problem(called.post(one), 400) for one in (nothing, other_id, other_event)]
    assert reasons == ["body-not-an-event", "id-differs", "type-differs"]
    assert called.events == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_405(called: Called, method: str) -> None:
    response = called.request(method)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_body_over_one_mebibyte_is_413_and_one_of_that_size_is_read(called: Called) -> None:
    sent = delivery()
    room = 1024 * 1024 - len(sent.body)
    fits = Delivery(sent.headers, sent.body + b" " * room).signed_at(int(time.time()))
    too_large = Delivery(sent.headers, fits.body + b" ").signed_at(int(time.time()))
    assert problem(called.post(too_large), 413) == "body-too-large"
    assert called.post(fits).status_code == 204


def test_the_secrets_of_a_rotation_are_both_accepted(build: Build) -> None:
    called = build(secret=[OTHER_SECRET, SECRET])
    assert called.post(delivery()).status_code == 204


def test_a_function_gives_the_secret_of_the_moment(build: Build) -> None:
    secrets = [OTHER_SECRET]
    called = build(secret=lambda: secrets[0])
    assert problem(called.post(delivery()), 401) == "digest-differs"
    secrets[0] = SECRET
    assert called.post(delivery()).status_code == 204


@pytest.mark.parametrize("secret", ["", [], "with a newline\n"])
def test_a_receiver_without_a_secret_is_not_made(build: Build, secret: Any) -> None:
    with pytest.raises(ValueError, match="secret"):
        build(secret=secret)


def test_with_a_file_a_restarted_receiver_knows_what_was_processed(build: Build, tmp_path: Path) -> None:
    sent, file = delivery(), tmp_path / "seen.db"
    before, after = build(seen=SeenInSqlite(file)), build(seen=SeenInSqlite(file))
    assert [before.post(sent).status_code, after.post(sent).status_code] == [204, 204]
    assert (len(before.events), len(after.events)) == (1, 0)


def test_a_store_that_fails_is_answered_500_and_the_handler_not_called(build: Build, tmp_path: Path) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    called = build(seen=SeenInSqlite(directory / "seen.db"))
    (directory / "seen.db").unlink()
    directory.rmdir()
    assert problem(called.post(delivery()), 500) == "handler-failed"
    assert called.events == []


def test_a_handler_that_remembers_by_itself_is_given_every_delivery(build: Build) -> None:
    called, sent = build(seen=SeenElsewhere()), delivery()
    assert [called.post(sent).status_code, called.post(sent).status_code] == [204, 204]
    assert len(called.events) == 2
