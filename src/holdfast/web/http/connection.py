"""One connection: requests in, answers out in their order, and an end to those who keep us waiting."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

from uvicorn import Config
from uvicorn.server import ServerState

from holdfast.web.http.exchange import Exchange
from holdfast.web.http.heads import KnownHeads
from holdfast.web.http.reading import Beginning, LastRequest, NoRequest, RequestReader
from holdfast.web.problems import MEDIA_TYPE, problem_document
from holdfast.web.refusals import MalformedRequest
from holdfast.web.request_ids import new_request_id
from holdfast.web.wire import encode

Application = Callable[[Exchange], Awaitable[None]]

BUFFERED_AT_MOST = 64 * 1024
STALLED_SECONDS = 30.0

logger = logging.getLogger("holdfast.web")

_MALFORMED_LINES = (
    "content-type: {media_type}\r\n"
    "content-length: {length}\r\n"
    "x-request-id: {request_id}\r\n"
    "connection: close\r\n\r\n"
)


class HttpConnection(asyncio.Protocol):
    """Serves the requests of one client, one at a time, in the order in which they came.

    Lives inside uvicorn's server, which accepts, ticks, and asks every connection to leave at the end.
    """

    transport: asyncio.Transport

    def __init__(
        self,
        application: Application,
        known_heads: KnownHeads,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any] | None = None,
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._application = application
        self._known_heads = known_heads
        self._keep_alive_seconds: float = config.timeout_keep_alive
        self._server = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._reader = RequestReader(known_heads, self._begin, self._loop.time)
        self._own_headers: list[tuple[bytes, bytes]] = []
        self._own_lines = b""

        self._serving: Exchange | None = None
        self._queue: deque[Exchange] = deque()
        """Requests that were sent ahead."""
        self._last_request_came = False

        self._reading_paused = False
        self._writing_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_since = 0.0
        self._paused_since = 0.0

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self)  # type: ignore[arg-type]
        self._quiet_since = self._loop.time()
        self._timer = self._loop.call_later(self._keep_alive_seconds, self._close_if_stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        for exchange in (self._serving, *self._queue):
            if exchange is not None:
                exchange.lose()
        self._queue.clear()
        self.resume_writing()
        self._reader.close()

    def data_received(self, data: bytes) -> None:
        self._quiet_since = self._loop.time()
        if not self._reader.in_message and self._serving is None and not self._writing_paused:
            request = self._known_heads.request_in(data)
            if request is not None:
                exchange = Exchange(self, request.method, request.path, request.query, request.head)
                exchange.feed(request.body)
                exchange.finish()
                self._serve(exchange)
                return
        self._read(data)

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._paused_since = self._loop.time()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._quiet_since = self._loop.time()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._serve_next()

    def shutdown(self) -> None:
        """Asked by the server: no more requests, and an end to answers that have none of their own."""
        self._take_no_more()
        for exchange in (self._serving, *self._queue):
            if exchange is not None:
                exchange.dismiss()
                if exchange.is_endless and self._writing_paused:
                    # It would wait for a client who takes nothing.
                    self.transport.abort()

    def _take_no_more(self) -> None:
        last = self._queue[-1] if self._queue else self._serving
        if last is None:
            self.transport.close()
        else:
            last.keep_alive = False
            self._last_request_came = True

    # The reader's side

    def _read(self, data: bytes) -> None:
        try:
            self._reader.read(data)
        except NoRequest:
            self._refuse()
        except LastRequest:
            self._take_no_more()
        incoming = self._reader.incoming
        is_enough = incoming is not None and not incoming.ended and incoming.buffered > BUFFERED_AT_MOST
        if self._queue or is_enough:
            self._pause_reading()

    def _begin(self, request: Beginning) -> Exchange | None:
        if self._last_request_came:
            return None
        exchange = Exchange(self, request.method, request.path, request.query, request.head)
        exchange.keep_alive = request.keep_alive
        exchange.wants_continue = request.wants_continue
        self._last_request_came = not request.keep_alive
        self._queue.append(exchange)
        self._serve_next()
        return exchange

    def _refuse(self) -> None:
        """What is no request never reaches the application; its sender gets a problem all the same.

        Unless earlier requests wait for their answers, which come first and are the last.
        """
        if self.transport.is_closing():
            return
        broken = self._reader.incoming
        if self._queue and self._queue[-1] is broken:
            self._queue.pop()
        if self._queue or (self._serving is not None and self._serving is not broken):
            self._take_no_more()
            return
        if broken is None or not broken.begun:
            request_id = new_request_id()
            body = encode(problem_document(MalformedRequest(), request_id))
            lines = _MALFORMED_LINES.format(media_type=MEDIA_TYPE, length=len(body), request_id=request_id)
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + self.own_lines() + lines.encode() + body)
        self.transport.close()

    # The exchange's side

    def own_lines(self) -> bytes:
        headers = self._server.default_headers
        if headers is not self._own_headers:
            self._own_headers = headers
            self._own_lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return self._own_lines

    def read_on(self, exchange: Exchange) -> None:
        if exchange.wants_continue and not self.transport.is_closing():
            exchange.wants_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._resume_reading()

    async def drained(self) -> None:
        if self._writing_paused:
            self._drained = self._loop.create_future()
            await self._drained

    def answered(self, exchange: Exchange) -> None:
        self._server.total_requests += 1
        self._serving = None
        self._quiet_since = self._loop.time()
        if self._reader.head_since is not None:
            # Its time did not run while nobody read it.
            self._reader.head_since = self._quiet_since
        if not exchange.keep_alive:
            self.transport.close()
        elif self._queue:
            self._serve_next()
        else:
            self._resume_reading()

    # Taking turns

    def _serve_next(self) -> None:
        is_free = self._serving is None and not self._writing_paused and not self.transport.is_closing()
        if self._queue and is_free:
            self._serve(self._queue.popleft())

    def _serve(self, exchange: Exchange) -> None:
        self._serving = exchange
        self._server.tasks.add(self._loop.create_task(self._run(exchange)))

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._application(exchange)
        except Exception as failure:
            logger.error("answer cut short", exc_info=failure)
        finally:
            if not exchange.ended:
                self.transport.close()
            if self._serving is exchange:
                self._serving = None
            self._server.tasks.discard(asyncio.current_task(self._loop))

    def _pause_reading(self) -> None:
        if not self._reading_paused and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused and not self.transport.is_closing():
            self._reading_paused = False
            self.transport.resume_reading()

    def _close_if_stalled(self) -> None:
        """One timer a connection, which is not set anew for every request."""
        left = self._patience_until() - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._close_if_stalled)
        elif self._writing_paused or self.transport.is_closing():
            # What was sent and not taken is given up, or closing would wait for it.
            self.transport.abort()
        else:
            self.transport.close()
            self._timer = self._loop.call_later(STALLED_SECONDS, self._close_if_stalled)

    def _patience_until(self) -> float:
        if self._writing_paused:
            return self._paused_since + STALLED_SECONDS
        if self._serving is not None and (self._reader.incoming is None or self._reading_paused):
            # It waits for us.
            return self._loop.time() + self._keep_alive_seconds
        if self._serving is not None or self.transport.is_closing():
            return self._quiet_since + STALLED_SECONDS
        if self._reader.head_since is not None:
            return self._reader.head_since + STALLED_SECONDS
        return self._quiet_since + self._keep_alive_seconds
