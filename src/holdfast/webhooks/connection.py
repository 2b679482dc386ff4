"""HTTP/1.1 connections to receivers: the parser of a response, the connection, and the pool of idle ones."""

from __future__ import annotations

import asyncio
import re
import select
from time import perf_counter
from typing import cast

import httptools

from holdfast.webhooks import causes

LONGEST_BODY = 16 * 1024
LONGEST_HEAD = 64 * 1024
# For chunk sizes, chunk extensions and trailers around the body, which could be endless as well.
_LONGEST_REST = 256 * 1024
LONGEST_IDLE_SECONDS = 4.0
"""Servers commonly close after five seconds. A shorter Keep-Alive timeout is respected."""

_BODY_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))
_KEEP_ALIVE_TIMEOUT = re.compile(rb"\btimeout\s*=\s*(\d{1,9})", re.IGNORECASE)


class ResponseParser:
    """Parses one response and keeps a limited part of it. It is complete as soon as no further byte could
    change the result of the attempt."""

    def __init__(self) -> None:
        self.status_code: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.has_begun = False
        self.has_head = False
        self.is_clipped = False
        self.is_complete = False
        self.idle_seconds = 0.0
        """How long the connection may wait for its next request; 0 if there must be none."""
        self.error: str | None = None
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)
        # Common mistakes of receivers. They are harmless if the connection is not used again.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True, lenient_data_after_close=True, lenient_optional_cr_before_lf=True
        )

    @property
    def has_outcome(self) -> bool:
        """Whether the status is known, or never will be. A deadline only cuts the body then."""
        return self.has_head or self.is_complete

    def feed(self, data: bytes) -> None:
        self.has_begun = True
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._complete(clipped=True)
        except httptools.HttpParserError:
            self.idle_seconds = 0.0
            if self.has_head:
                self._complete(clipped=True)
            else:
                self._fail(causes.HEAD_NOT_HTTP if self._parser.get_status_code() else causes.NOT_HTTP)
        else:
            if not self.has_head and self._size > LONGEST_HEAD:
                self._fail(causes.HEADERS_TOO_LONG)
            elif self._size > LONGEST_HEAD + _LONGEST_REST:
                self._complete(clipped=True)

    def end(self, *, is_reset: bool) -> None:
        if self.is_complete:
            return
        if self.has_head:
            self._complete(clipped=is_reset or self._count_lengths() > 0)
        elif self.has_begun:
            self._fail(causes.RESET_IN_HEADERS if is_reset else causes.CLOSED_IN_HEADERS)
        else:
            self._fail(causes.RESET_EARLY if is_reset else causes.CLOSED_EARLY)

    def _complete(self, *, clipped: bool) -> None:
        if not self.is_complete:
            self.is_complete = True
            self.is_clipped = clipped

    def _fail(self, cause: str) -> None:
        self.error = self.error or cause
        self.is_complete = True

    def _count_lengths(self) -> int:
        return sum(name.lower() in _BODY_LENGTHS for name, _ in self.headers)

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.idle_seconds = 0.0  # A second response, which nobody requested.

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.is_complete:
            return
        code = self._parser.get_status_code()
        head_size = sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)
        if self._size > LONGEST_HEAD and head_size > LONGEST_HEAD:
            self._fail(causes.HEADERS_TOO_LONG)
        elif 100 <= code < 200 and code != 101:
            self.headers.clear()
        else:
            self.status_code = code
            self.has_head = True
            if code == 101:
                self._complete(clipped=True)

    def on_body(self, body: bytes) -> None:
        if self.is_complete:
            return
        room = LONGEST_BODY - len(self.body)
        self.body += body[:room]
        if len(body) > room:
            self._complete(clipped=True)

    def on_message_complete(self) -> None:
        if not self.has_head or self.is_complete:
            return
        self._complete(clipped=False)
        # With two lengths it is uncertain where the response ended.
        if self._parser.should_keep_alive() and self._count_lengths() < 2:
            self.idle_seconds = LONGEST_IDLE_SECONDS
            for name, value in self.headers:
                if name.lower() == b"keep-alive" and (match := _KEEP_ALIVE_TIMEOUT.search(value)):
                    self.idle_seconds = max(0.0, min(self.idle_seconds, int(match[1]) - 1.0))


class Connection(asyncio.Protocol):
    """One exchange at a time. Data that was not requested closes it, and so does a response that is not read
    to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str) -> None:
        self.address = address
        self.is_open = False
        self.made_at = 0.0
        self.usable_until = 0.0
        self.first_byte_at: float | None = None
        self.spoke_first = False
        self.lost: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._response: ResponseParser | None = None
        self._completed: asyncio.Future[None] | None = None
        self._poll = select.poll()

    def is_writable(self) -> bool:
        """The transport knows of an error before the loop calls ``connection_lost``."""
        return self.is_open and self._transport is not None and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Whether it is open and nothing has arrived, not even what the loop has not read yet."""
        return self.is_writable() and not self._poll.poll(0)

    def send(self, request: bytes) -> ResponseParser:
        """The connection must be open. The whole request is written at once."""
        assert self._transport is not None
        self.first_byte_at = None
        self._response = ResponseParser()
        self._transport.write(request)
        return self._response

    async def wait_for_response(self) -> None:
        """Wait until the response is complete. A caller that is cancelled here must close the connection."""
        if self._response is not None and not self._response.is_complete:
            self._completed = self._loop.create_future()
            await self._completed

    def reset(self) -> None:
        self._response = None
        self._completed = None

    def abort(self) -> None:
        self.reset()
        self._abort_transport()

    def close(self) -> None:
        """Close gracefully, with the close_notify of TLS."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self.made_at = perf_counter()
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None or response.is_complete:
            self.spoke_first = True
            self._abort_transport()
            return
        if self.first_byte_at is None:
            self.first_byte_at = perf_counter()
        response.feed(data)
        self._wake_if_complete(response)

    def eof_received(self) -> None:
        # Returning None closes the transport; connection_lost follows without an error.
        self._end_response(is_reset=False)

    def connection_lost(self, error: Exception | None) -> None:
        self._end_response(is_reset=error is not None)
        self._transport = None
        self.lost.set_result(None)

    def _end_response(self, *, is_reset: bool) -> None:
        self.is_open = False
        if self._response is not None:
            self._response.end(is_reset=is_reset)
            self._wake_if_complete(self._response)

    def _wake_if_complete(self, response: ResponseParser) -> None:
        if not response.is_complete:
            return
        if not response.idle_seconds:
            # Now and not when the sender wakes: an endless response would go on meanwhile.
            self._abort_transport()
        if self._completed is not None and not self._completed.done():
            self._completed.set_result(None)

    def _abort_transport(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()


MOST_IN_ALL = 1024
MOST_PER_ORIGIN = 256
# A host name that moves to another address is followed within this time.
LONGEST_LIFE_SECONDS = 60.0
_SWEEP_SECONDS = 0.5
# The transport ends a TLS shutdown after one second.
_LONGEST_SHUTDOWN_SECONDS = 2.0


Origin = tuple[str, str, int]


class IdleConnections:
    """Last in, first out, so that connections left over from a burst expire."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, list[Connection]] = {}
        self._origins: dict[Connection, Origin] = {}
        self._closing: set[asyncio.Future[None]] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        idle = self._by_origin.get(origin)
        now = perf_counter()
        while idle:
            connection = idle.pop()
            del self._origins[connection]
            if connection.is_open and now < connection.usable_until:
                return connection
            self._close(connection)
        return None

    def put(self, origin: Origin, connection: Connection, idle_seconds: float) -> None:
        now = perf_counter()
        if not connection.is_open or now > connection.made_at + LONGEST_LIFE_SECONDS:
            self._close(connection)
            return
        connection.usable_until = now + idle_seconds
        idle = self._by_origin.setdefault(origin, [])
        if len(idle) >= MOST_PER_ORIGIN:
            self._drop(idle[0])
        elif len(self._origins) >= MOST_IN_ALL:
            self._drop(next(iter(self._origins)))
        idle.append(connection)
        self._origins[connection] = origin
        if self._sweep_timer is None:
            self._sweep_timer = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    async def close(self) -> None:
        for connection in list(self._origins):
            self._drop(connection)
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        if self._closing:
            await asyncio.wait(self._closing, timeout=_LONGEST_SHUTDOWN_SECONDS)

    def _drop(self, connection: Connection) -> None:
        self._by_origin[self._origins.pop(connection)].remove(connection)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        """A TLS shutdown takes a moment; ``close`` waits for it."""
        if not connection.lost.done():
            self._closing.add(connection.lost)
            connection.lost.add_done_callback(self._closing.discard)
            connection.close()

    def _sweep(self) -> None:
        now = perf_counter()
        for connection in [idle for idle in self._origins if not idle.is_open or now >= idle.usable_until]:
            self._drop(connection)
        for origin in [origin for origin, idle in self._by_origin.items() if not idle]:
            del self._by_origin[origin]
        self._sweep_timer = None
        if self._origins:
            self._sweep_timer = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)
