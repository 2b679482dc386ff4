"""One connection: bytes to requests, answers in their order, and an end to those who keep us waiting."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httptools
from uvicorn import Config
from uvicorn.server import ServerState

from holdfast.web.http.exchange import Exchange
from holdfast.web.http.heads import Head, KnownHeads
from holdfast.web.problems import MEDIA_TYPE, problem_document
from holdfast.web.refusals import MalformedRequest
from holdfast.web.request_ids import new_request_id
from holdfast.web.wire import encode

Application = Callable[[Exchange], Awaitable[None]]

LARGEST_HEAD = 64 * 1024
LARGEST_FRAMING = 1024**2
BUFFERED_AT_MOST = 64 * 1024
STALLED_SECONDS = 30.0

logger = logging.getLogger("holdfast.web")

_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)

_MALFORMED = (
    "HTTP/1.1 400 Bad Request\r\n"
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
        self._own_headers: list[tuple[bytes, bytes]] = []
        self._own_lines = b""

        self._parser: Any = httptools.HttpRequestParser(self)
        # What comes after the last request is passed over; without this it would be an error before
        # that request has its answer.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._fresh_data: bytes | None = None
        """What the parser reads, as long as no head in it is complete."""
        self._target = b""
        self._header_lines: list[tuple[bytes, bytes]] = []
        self._in_message = False
        self._head_size: int | None = None
        """Bytes received of a head that is not complete; None outside of a head."""
        self._framing_size = 0
        """Bytes of a message that were neither head nor body: chunk sizes and trailers."""

        self._incoming: Exchange | None = None
        """The exchange whose body is being read."""
        self._serving: Exchange | None = None
        self._queue: deque[Exchange] = deque()
        """Requests that were sent ahead."""
        self._last_request_came = False

        self._reading_paused = False
        self._writing_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_since = 0.0

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
        self._parser = None

    def data_received(self, data: bytes) -> None:
        self._quiet_since = self._loop.time()
        if not self._in_message and self._serving is None and not self._writing_paused:
            request = self._known_heads.request_in(data)
            if request is not None:
                exchange = Exchange(self, request.method, request.path, request.query, request.head)
                exchange.feed(request.body)
                exchange.finish()
                self._serve(exchange)
                return
        self._parse(data)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._quiet_since = self._loop.time()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._serve_next()

    def shutdown(self) -> None:
        """Asked by the server: no more requests."""
        last = self._queue[-1] if self._queue else self._serving
        if last is None:
            self.transport.close()
        else:
            last.keep_alive = False
            self._last_request_came = True

    # The parser's side

    def _parse(self, data: bytes) -> None:
        if not self._in_message:
            self._fresh_data = data
            if b"pgrade:" in data:
                data = _without_upgrade(data)
        in_head = self._head_size is not None
        if self._in_message and not in_head:
            self._framing_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.shutdown()
        except httptools.HttpParserError:
            self._refuse()
            return
        finally:
            self._fresh_data = None
        if in_head and self._head_size is not None:
            self._head_size += len(data)
        if (self._head_size or 0) > LARGEST_HEAD or self._framing_size > LARGEST_FRAMING:
            self._refuse()

    def on_message_begin(self) -> None:
        self._in_message = True
        self._head_size = self._framing_size = 0
        self._target = b""
        self._header_lines = []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_lines.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._head_size = None
        # Trailers would be added to the headers; nobody asks for them, so they are dropped.
        lines, self._header_lines = self._header_lines, []
        if self._last_request_came:
            return
        head = Head(lines)
        target = httptools.parse_url(self._target)
        if target.path is None:
            raise ValueError("a target that is no path")
        method = self._parser.get_method().decode("ascii")
        exchange = Exchange(self, method, target.path, target.query or b"", head)
        is_current = self._parser.get_http_version() == "1.1"
        exchange.keep_alive = is_current and self._parser.should_keep_alive()
        exchange.wants_continue = head.values.get(b"expect", b"").lower() == b"100-continue"
        if exchange.keep_alive and self._fresh_data is not None:
            self._known_heads.learn(self._fresh_data, head)
        self._fresh_data = None
        self._last_request_came = not exchange.keep_alive
        self._incoming = exchange
        self._queue.append(exchange)
        self._serve_next()
        if self._queue:
            self._pause_reading()

    def on_body(self, body: bytes) -> None:
        self._framing_size -= len(body)
        if self._incoming is None or self._incoming.ended:
            return
        self._incoming.feed(body)
        if self._incoming.buffered > BUFFERED_AT_MOST:
            self._pause_reading()

    def on_message_complete(self) -> None:
        self._in_message = False
        self._framing_size = 0
        if self._incoming is not None:
            self._incoming.finish()
            self._incoming = None

    def _refuse(self) -> None:
        """What is no request never reaches the application; its sender gets a problem all the same.

        Unless earlier requests wait for their answers, which come first and are the last.
        """
        if self.transport.is_closing():
            return
        if self._queue and self._queue[-1] is self._incoming:
            self._queue.pop()
        if self._serving is not None and self._serving is not self._incoming:
            self.shutdown()
            return
        request_id = new_request_id()
        body = encode(problem_document(MalformedRequest(), request_id))
        head = _MALFORMED.format(media_type=MEDIA_TYPE, length=len(body), request_id=request_id)
        self.transport.write(head.encode() + body)
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
        if not exchange.keep_alive:
            self.transport.close()
        elif self._queue:
            self._serve_next()
        else:
            self._resume_reading()

    # Taking turns

    def _serve_next(self) -> None:
        if self._queue and self._serving is None and not self._writing_paused:
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
        our_turn = self._incoming is None or self._reading_paused
        if self._serving is not None and our_turn and not self._writing_paused:
            left = self._keep_alive_seconds
        else:
            in_between = self._serving is None and self._head_size is None and not self._writing_paused
            patience = self._keep_alive_seconds if in_between else STALLED_SECONDS
            left = self._quiet_since + patience - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._close_if_stalled)
        elif self._writing_paused:
            self.transport.abort()
        else:
            self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """The head without its offer to speak another protocol, which a server is free to pass over.

    Java's own client makes that offer with every request. The parser would take what follows for the
    other protocol, and the body would be lost.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + rest
