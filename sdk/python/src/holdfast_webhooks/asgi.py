"""A ready receiver for any ASGI server or framework that runs on asyncio."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, MutableMapping
from typing import Any, Callable

from holdfast_webhooks.answers import FAILED, MAX_BODY_BYTES, NOT_POST, PROCESSED, TOO_LARGE, Answer
from holdfast_webhooks.event import Event
from holdfast_webhooks.intake import Intake, SecretSource, is_async
from holdfast_webhooks.seen import SeenIds

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
log = logging.getLogger("holdfast_webhooks")


class Receiver:
    """An ASGI application that gives each event to `on_event` once.

    `on_event` is an async function, or a plain one, which then runs in a thread. `secret` may be a
    function that returns the secret or secrets of the moment, so that a rotation needs no restart.
    """

    def __init__(
        self,
        secret: SecretSource,
        on_event: Callable[[Event], object],
        seen: SeenIds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._intake = Intake(secret, seen, clock)
        self._on_event, self._in_thread = on_event, not is_async(on_event)
        self._under_way: set[asyncio.Future[Answer]] = set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close"})
        elif scope["method"] != "POST":
            await _answer(send, NOT_POST)
        else:
            await self._receive_delivery(scope, receive, send)

    async def _receive_delivery(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        body = TOO_LARGE if _too_large_as_said(scope) else await _read_body(receive)
        if isinstance(body, bytes):
            checked = self._intake.checked(scope["headers"], body)
            answer = checked if isinstance(checked, Answer) else await self._uninterrupted(checked)
            await _answer(send, answer)
        elif body is not None:
            await _answer(send, body)

    async def _uninterrupted(self, event: Event) -> Answer:
        """A sender that hangs up must not stop a handler halfway; its retry finds the event processed."""
        task = asyncio.ensure_future(self._answer_to(event))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _answer_to(self, event: Event) -> Answer:
        try:
            return await self._act_once(event)
        except Exception:
            log.exception("The event %s (%s) was not processed", event.id, event.type)
            return FAILED

    async def _act_once(self, event: Event) -> Answer:
        taken = await asyncio.to_thread(self._intake.claim, event)
        if isinstance(taken, Answer):
            return taken
        try:
            await self._call(event)
        except BaseException:
            # Not awaited: at the end of the loop nothing would run it any more.
            self._intake.release(taken)
            raise
        await asyncio.to_thread(self._intake.remember, taken)
        return PROCESSED

    async def _call(self, event: Event) -> None:
        if self._in_thread:
            result = await asyncio.to_thread(self._on_event, event)
        else:
            result = self._on_event(event)
        if inspect.isawaitable(result):
            await result


def _too_large_as_said(scope: MutableMapping[str, Any]) -> bool:
    """So that nobody sends a body in vain; where nothing or nonsense is said, the bytes are counted."""
    said = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    return any(value.isdigit() and int(value[:20]) > MAX_BODY_BYTES for value in said)


async def _read_body(receive: Receive) -> bytes | Answer | None:
    """The body; None if the sender has gone."""
    body, more = bytearray(), True
    while more and len(body) <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return TOO_LARGE if len(body) > MAX_BODY_BYTES else bytes(body)


async def _answer(send: Send, answer: Answer) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _live(receive: Receive, send: Send) -> None:
    """Lets the receiver be the whole application of a server, too."""
    kind = ""
    while kind != "lifespan.shutdown":
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
