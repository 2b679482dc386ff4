"""A ready receiver for any WSGI server or framework."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Callable

from holdfast_webhooks.answers import (
    FAILED,
    LENGTH_NOT_A_NUMBER,
    MAX_BODY_BYTES,
    NOT_POST,
    PROCESSED,
    TOO_LARGE,
    Answer,
)
from holdfast_webhooks.event import Event
from holdfast_webhooks.intake import Intake, SecretSource, is_async
from holdfast_webhooks.seen import SeenIds

Environ = Mapping[str, Any]
log = logging.getLogger("holdfast_webhooks")


class WsgiReceiver:
    """A WSGI application that gives each event to `on_event`, a plain function, once.

    `secret` may be a function that returns the secret or secrets of the moment, so that a rotation
    needs no restart.
    """

    def __init__(
        self,
        secret: SecretSource,
        on_event: Callable[[Event], object],
        seen: SeenIds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if is_async(on_event):
            raise TypeError(
                "WSGI cannot run an async handler; give a plain function, or use Receiver (ASGI)."
            )
        self._intake = Intake(secret, seen, clock)
        self._on_event = on_event

    def __call__(self, environ: Environ, start_response: Callable[..., object]) -> Iterable[bytes]:
        answer = self._answer(environ)
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(answer.headers))
        return [answer.body]

    def _answer(self, environ: Environ) -> Answer:
        if environ["REQUEST_METHOD"] != "POST":
            return NOT_POST
        body = _read_body(environ)
        if isinstance(body, Answer):
            return body
        checked = self._intake.checked(_headers(environ), body)
        return checked if isinstance(checked, Answer) else self._answer_to(checked)

    def _answer_to(self, event: Event) -> Answer:
        try:
            return self._act_once(event)
        except Exception:
            log.exception("The event %s (%s) was not processed", event.id, event.type)
            return FAILED

    def _act_once(self, event: Event) -> Answer:
        taken = self._intake.claim(event)
        if isinstance(taken, Answer):
            return taken
        try:
            _require_finished(self._on_event(event))
        except BaseException:
            self._intake.release(taken)
            raise
        self._intake.remember(taken)
        return PROCESSED


def _require_finished(result: object) -> None:
    """A lambda around an async function: nothing has run yet, so nothing may be acknowledged."""
    if inspect.iscoroutine(result):
        result.close()
    if inspect.isawaitable(result):
        raise TypeError("The handler gave back something to await, and WSGI cannot await it.")


def _headers(environ: Environ) -> Iterable[tuple[str, str]]:
    return [
        (name[5:].replace("_", "-"), value) for name, value in environ.items() if name.startswith("HTTP_")
    ]


def _read_body(environ: Environ) -> bytes | Answer:
    length = environ.get("CONTENT_LENGTH") or _length_unsaid(environ)
    if not (length.isascii() and length.isdigit()):
        return LENGTH_NOT_A_NUMBER
    wanted = int(length[:20])  # no more than Python turns into a number
    if wanted > MAX_BODY_BYTES and environ.get("CONTENT_LENGTH"):
        return TOO_LARGE
    body = _read(environ["wsgi.input"], wanted)
    return TOO_LARGE if len(body) > MAX_BODY_BYTES else body


def _length_unsaid(environ: Environ) -> str:
    """Chunked. Only where the server says that the input ends may it be read without a length."""
    return str(MAX_BODY_BYTES + 1) if environ.get("wsgi.input_terminated") else "0"


def _read(source: Any, wanted: int) -> bytes:
    """Some servers give less than was asked for, although more is to come."""
    body = bytearray()
    while len(body) < wanted:
        part: bytes = source.read(wanted - len(body))
        if not part:
            break
        body += part
    return bytes(body)
