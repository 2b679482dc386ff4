"""How the ready receivers read what servers hand them, down to the odd cases that no client library sends."""

import io
from collections.abc import MutableMapping
from typing import Any

import pytest

from holdfast_webhooks import Event, Receiver, WsgiReceiver
from sdk.make_vectors import SECRET
from tests.sdk.deliveries import Delivery, delivery

MEBIBYTE = 1024 * 1024


class DrippingInput(io.BytesIO):
    """Gives less than it is asked for, as some servers do."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size) if size else size)


def answered(sent: Delivery, body: io.BytesIO, **environ: object) -> str:
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent.headers.items()}
    started: list[str] = []
    receiver = WsgiReceiver(SECRET, lambda event: None)
    given = {"REQUEST_METHOD": "POST", "wsgi.input": body, **headers, **environ}
    list(receiver(given, lambda status, headers: started.append(status)))
    return started[0][:3]


def test_input_that_drips_is_read_whole() -> None:
    sent = delivery()
    assert answered(sent, DrippingInput(sent.body), CONTENT_LENGTH=str(len(sent.body))) == "204"


def test_no_more_is_read_than_the_length_says() -> None:
    sent = delivery()
    source = io.BytesIO(sent.body + b"the next request")
    assert answered(sent, source, CONTENT_LENGTH=str(len(sent.body))) == "204"
    assert source.read() == b"the next request"


@pytest.mark.parametrize("environ", [{}, {"CONTENT_LENGTH": ""}])
def test_without_a_length_the_input_is_read_only_if_the_server_says_that_it_ends(
    environ: dict[str, str],
) -> None:
    sent = delivery()
    assert answered(sent, io.BytesIO(sent.body), **environ) == "401"
    terminated = {"wsgi.input_terminated": True, **environ}
    assert answered(sent, io.BytesIO(sent.body), **terminated) == "204"
    assert answered(sent, io.BytesIO(b" " * (MEBIBYTE + 1)), **terminated) == "413"


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("x", "400"),
        ("-1", "400"),
        ("1e3", "400"),
        ("٣", "400"),
        ("9" * 5000, "413"),
        (str(MEBIBYTE + 1), "413"),
    ],
)
def test_a_length_that_is_nonsense_or_too_large_is_refused(length: str, status: str) -> None:
    sent = delivery()
    assert answered(sent, io.BytesIO(sent.body), CONTENT_LENGTH=length) == status


async def messages_to(receiver: Receiver, scope: dict[str, Any], *received: dict[str, Any]) -> list[Any]:
    coming, sent = iter(received), []

    async def receive() -> MutableMapping[str, Any]:
        return next(coming)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await receiver(scope, receive, send)
    return sent


def scope_of(sent: Delivery) -> dict[str, Any]:
    headers = [(name.lower().encode(), value.encode()) for name, value in sent.headers.items()]
    return {"type": "http", "method": "POST", "headers": headers}


async def test_a_sender_that_goes_in_the_middle_of_its_body_gets_no_answer_and_no_event() -> None:
    events: list[Event] = []
    sent = delivery()
    part = {"type": "http.request", "body": sent.body, "more_body": True}
    receiver = Receiver(SECRET, events.append)
    assert await messages_to(receiver, scope_of(sent), part, {"type": "http.disconnect"}) == []
    assert events == []


async def test_a_body_in_parts_is_put_together() -> None:
    sent = delivery()
    parts: list[dict[str, Any]] = [
        {"type": "http.request", "body": sent.body[:50], "more_body": True},
        {"type": "http.request", "more_body": True},
        {"type": "http.request", "body": sent.body[50:]},
    ]
    messages = await messages_to(Receiver(SECRET, lambda event: None), scope_of(sent), *parts)
    assert messages[0]["status"] == 204
    assert b"content-length" not in dict(messages[0]["headers"])


async def test_a_websocket_is_closed() -> None:
    assert await messages_to(Receiver(SECRET, print), {"type": "websocket"}) == [{"type": "websocket.close"}]
