"""Answers that go on: what changes is told to the browser as it happens (server-sent events)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.domain.refusals import DatabaseAway
from holdfast.web.refusals import ClientGone

BEAT_SECONDS = 3.0
"""A browser that has heard nothing for ten seconds says that it is not up to date."""
ADMITTED_FOR_SECONDS = 3.0
"""So often it is looked whether the watcher may still watch."""

EVENT_STREAM = "text/event-stream; charset=utf-8"
_HEADERS = [
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    # A proxy that gathers what it passes on would keep it until it is no longer news.
    (b"x-accel-buffering", b"no"),
]


class Source(Protocol):
    """What is told, piece by piece."""

    async def arrival(self) -> None:
        """Waits until there is something to tell."""
        ...

    def take(self) -> bytes:
        """All that there is to tell, as events; nothing is fine."""
        ...

    def beat(self) -> bytes:
        """Told while nothing happens."""
        ...

    def close(self) -> None: ...


class EventStream(Response):
    """Ends when the client goes, when the server is to leave, or when the watcher may watch no longer."""

    def __init__(
        self,
        source: Source,
        is_admitted: Callable[[], Awaitable[bool]],
        beat_seconds: float = BEAT_SECONDS,
        admitted_for_seconds: float = ADMITTED_FOR_SECONDS,
    ) -> None:
        super().__init__()
        self._source = source
        self._is_admitted = is_admitted
        self._beat_seconds = beat_seconds
        self._admitted_for_seconds = admitted_for_seconds
        self._ask_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parted = asyncio.ensure_future(receive())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] != "HEAD":
                with suppress(ClientGone):
                    await self._tell(parted, send)
            await send({"type": "http.response.body"})
        finally:
            parted.cancel()
            self._source.close()

    async def _tell(self, parted: asyncio.Future[Any], send: Send) -> None:
        now = asyncio.get_running_loop().time
        self._ask_at = now() + self._admitted_for_seconds
        await self._send(send, self._source.beat())
        while not parted.done():
            told = await self._next(parted)
            if parted.done():
                return
            if now() >= self._ask_at:
                if not await self._may_stay():
                    await self._send(send, event("ended", b"{}"))
                    return
                self._ask_at = now() + self._admitted_for_seconds
            await self._send(send, told)

    async def _may_stay(self) -> bool:
        try:
            return await self._is_admitted()
        except DatabaseAway:
            # Nobody can tell, and there is nothing to tell either.
            return True

    async def _next(self, parted: asyncio.Future[Any]) -> bytes:
        """What has come, or a beat if nothing has."""
        arrival: asyncio.Future[Any] = asyncio.ensure_future(self._source.arrival())
        try:
            done, _ = await asyncio.wait(
                {arrival, parted}, timeout=self._beat_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            arrival.cancel()
        return self._source.take() if arrival in done else self._source.beat()

    async def _send(self, send: Send, told: bytes) -> None:
        if told:
            await send({"type": "http.response.body", "body": told, "more_body": True})


def event(name: str, data: bytes, event_id: str | None = None) -> bytes:
    """One event; ``data`` is JSON in one line."""
    own_id = b"" if event_id is None else b"id: %b\n" % event_id.encode()
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), own_id, data)
