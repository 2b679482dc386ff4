"""Live updates of pages, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.operations.live_updates import BoardChanges, LiveUpdates, Watcher
from holdfast.web.pages.forms import Form, parse_whole_number
from holdfast.web.request import Request

HEARTBEAT_SECONDS = 3.0
"""A browser that has heard nothing for ten seconds says that it is not up to date."""
ADMITTED_FOR_SECONDS = 3.0
"""The interval at which the watcher's permission is checked."""

EVENT_STREAM = "text/event-stream; charset=utf-8"
_HEADERS = {
    "Cache-Control": "no-store",
    # A proxy that gathers what it passes on would keep it until it is no longer news.
    "X-Accel-Buffering": "no",
}


class Source(Protocol):
    """Waits until there are events, and then returns those that have come since the last call."""

    async def wait(self) -> None: ...

    def take(self) -> bytes: ...

    def heartbeat(self) -> bytes: ...

    def close(self) -> None: ...


class EventStream(StreamingResponse):
    """Ends when the client goes, when the server stops, or when the watcher may watch no longer."""

    def __init__(
        self,
        source: Source,
        is_admitted: Callable[[], Awaitable[bool]],
        stopping: asyncio.Event,
        *,
        on_end: Callable[[], None] = lambda: None,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        admitted_for_seconds: float = ADMITTED_FOR_SECONDS,
    ) -> None:
        self._generator = self._events()
        super().__init__(self._generator, headers=_HEADERS, media_type=EVENT_STREAM)
        self._source = source
        self._is_admitted = is_admitted
        self._stopping = stopping
        self._on_end = on_end
        self._heartbeat_seconds = heartbeat_seconds
        self._admitted_for_seconds = admitted_for_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] == "HEAD":
                await Response(headers=dict(self.headers))(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)
        finally:
            self._source.close()
            self._on_end()
            # A client that goes while something is being sent leaves it suspended.
            await self._generator.aclose()

    async def _events(self) -> AsyncGenerator[bytes, None]:
        now = asyncio.get_running_loop().time
        ask_at = now() + self._admitted_for_seconds
        yield self._source.heartbeat()
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            while not stopping.done():
                events = await self._next(stopping)
                if stopping.done():
                    return
                if now() >= ask_at:
                    if not await self._may_stay(stopping):
                        yield event("ended", b"{}")
                        return
                    ask_at = now() + self._admitted_for_seconds
                if events:
                    yield events
        finally:
            stopping.cancel()

    async def _may_stay(self, stopping: asyncio.Future[Any]) -> bool:
        """Ask the database, but not longer than the server runs."""
        check = asyncio.ensure_future(self._is_admitted())
        try:
            await asyncio.wait({check, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return not check.done() or check.result()
        except DatabaseUnavailable:
            # Nobody can tell, and there is nothing to tell either.
            return True
        finally:
            check.cancel()

    async def _next(self, stopping: asyncio.Future[Any]) -> bytes:
        """Return the events that have come, or a heartbeat if none have."""
        arrival: asyncio.Future[Any] = asyncio.ensure_future(self._source.wait())
        try:
            done, _ = await asyncio.wait(
                {arrival, stopping}, timeout=self._heartbeat_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            arrival.cancel()
        return self._source.take() if arrival in done else self._source.heartbeat()


def event(name: str, data: bytes, event_id: str | None = None) -> bytes:
    """One event; ``data`` is JSON in one line."""
    own_id = b"" if event_id is None else b"id: %b\n" % event_id.encode()
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), own_id, data)


# Timestamps that browsers receive and send back: up to when a page has received every change.


def parse_last_seen(request: Request, sent: Form) -> datetime | None:
    """Return up to when the browser has received every change: from its own header, or from its page."""
    seen = parse_whole_number(request.header(b"last-event-id")) or parse_whole_number(sent.text("since"))
    try:
        return None if seen is None else datetime.fromtimestamp(seen / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


class ProjectUpdates:
    """The source of the stream of one browser. Each side renders the events in its own way."""

    def __init__(
        self, live_updates: LiveUpdates, watcher: Watcher, render_events: Callable[[BoardChanges], bytes]
    ) -> None:
        self._live_updates = live_updates
        self._watcher = watcher
        self._render_events = render_events
        self._has_begun = False

    async def wait(self) -> None:
        await self._watcher.wait()

    def take(self) -> bytes:
        return self._render_events(self._watcher.take()) + self._heartbeat()

    def heartbeat(self) -> bytes:
        """Return nothing while the database is away: the browser then shows that it is not up to date."""
        if self._has_begun and not self._live_updates.is_current:
            return b""
        self._has_begun = True
        return self._heartbeat()

    def close(self) -> None:
        self._watcher.close()

    def _heartbeat(self) -> bytes:
        sent_until = self._watcher.timestamp
        now = self._live_updates.now() or sent_until
        assert sent_until is not None
        assert now is not None
        return event("heartbeat", b'{"now":%d}' % milliseconds(now), str(milliseconds(sent_until)))
