"""Reads one answer out of the bytes that arrive, and never keeps more of them than it may. No I/O."""

from __future__ import annotations

import asyncio
import re
import select
from time import perf_counter
from typing import NamedTuple, cast

import httptools

from holdfast.webhooks import causes

LONGEST_BODY = 16 * 1024
LONGEST_HEAD = 64 * 1024
# Around the body come chunk sizes, chunk extensions and trailers, which could go on for ever as well.
_LONGEST_REST = 256 * 1024
LONGEST_IDLE_SECONDS = 4.0
"""Servers commonly close after five; one that says less is believed."""

_BODY_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))
_KEEP_ALIVE_TIMEOUT = re.compile(rb"\btimeout\s*=\s*(\d{1,9})", re.IGNORECASE)


class Answer:
    """Settled as soon as nothing that may still come would change what is told of the attempt."""

    def __init__(self) -> None:
        self.status_code: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.has_begun = False
        self.has_head = False
        self.is_clipped = False
        self.is_settled = False
        self.idle_seconds = 0.0
        """How long the connection may wait for its next request; 0 if there must be none."""
        self.fault: str | None = None
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)
        # Sloppy and seen. None of it is dangerous to a client that does not reuse the connection then.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True, lenient_data_after_close=True, lenient_optional_cr_before_lf=True
        )

    @property
    def is_decided(self) -> bool:
        """The status came, or never will: time may run out now, and only cuts the body."""
        return self.has_head or self.is_settled

    def feed(self, data: bytes) -> None:
        self.has_begun = True
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._settle(clipped=True)
        except httptools.HttpParserError:
            self._break_off()
        else:
            self._bound_size()

    def end(self, *, is_reset: bool) -> None:
        """The connection is gone."""
        if self.is_settled:
            return
        if self.has_head:
            self._settle(clipped=is_reset or self._has_known_length())
        elif self.has_begun:
            self._fail(causes.RESET_IN_HEADERS if is_reset else causes.CLOSED_IN_HEADERS)
        else:
            self._fail(causes.RESET_EARLY if is_reset else causes.CLOSED_EARLY)

    def _break_off(self) -> None:
        self.idle_seconds = 0.0
        if self.has_head:
            self._settle(clipped=True)
        else:
            self._fail(causes.HEAD_NOT_HTTP if self._parser.get_status_code() else causes.NOT_HTTP)

    def _bound_size(self) -> None:
        if self.is_settled:
            return
        if not self.has_head and self._size > LONGEST_HEAD:
            self._fail(causes.HEADERS_TOO_LONG)
        elif self._size > LONGEST_HEAD + _LONGEST_REST:
            self._settle(clipped=True)

    def _head_size(self) -> int:
        return sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)

    def _has_known_length(self) -> bool:
        return any(name.lower() in _BODY_LENGTHS for name, _ in self.headers)

    def _longest_idle(self) -> float:
        seconds, lengths = LONGEST_IDLE_SECONDS, 0
        for name, value in self.headers:
            lowered = name.lower()
            if lowered in _BODY_LENGTHS:
                lengths += 1
            elif lowered == b"keep-alive" and (found := _KEEP_ALIVE_TIMEOUT.search(value)):
                seconds = max(0.0, min(seconds, int(found[1]) - 1.0))
        # With two lengths it is anybody's guess where the answer ended.
        return seconds if lengths < 2 else 0.0

    def _settle(self, *, clipped: bool) -> None:
        if not self.is_settled:
            self.is_settled = True
            self.is_clipped = clipped

    def _fail(self, cause: str) -> None:
        self.fault = self.fault or cause
        self.is_settled = True

    # From here on: what the parser calls.

    def on_message_begin(self) -> None:
        if self.is_settled:
            self.idle_seconds = 0.0  # Another answer behind the one that was asked for.

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.is_settled:
            return
        code = self._parser.get_status_code()
        if self._size > LONGEST_HEAD and self._head_size() > LONGEST_HEAD:
            self._fail(causes.HEADERS_TOO_LONG)
        elif 100 <= code < 200 and code != 101:
            self.headers.clear()
        else:
            self.status_code = code
            self.has_head = True
            if code == 101:
                self._settle(clipped=True)

    def on_body(self, body: bytes) -> None:
        if self.is_settled:
            return
        room = LONGEST_BODY - len(self.body)
        self.body += body[:room]
        if len(body) > room:
            self._settle(clipped=True)

    def on_message_complete(self) -> None:
        if self.has_head and not self.is_settled:
            self._settle(clipped=False)
            if self._parser.should_keep_alive():
                self.idle_seconds = self._longest_idle()


# One HTTP/1.1 connection to a receiver, and one exchange on it at a time.


class Connection(asyncio.Protocol):
    """Whatever arrives while nothing was asked ends it, and so does an answer that is not read to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str) -> None:
        self.address = address
        self.is_open = False
        self.made_at = 0.0
        self.usable_until = 0.0
        self.first_byte_at: float | None = None
        self.spoke_unasked = False
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._settled: asyncio.Future[None] | None = None
        self.lost: asyncio.Future[None] = loop.create_future()
        self._poll = select.poll()

    def is_writable(self) -> bool:
        """The transport knows of an error before the loop has come round to telling it."""
        return self.is_open and self._transport is not None and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Still open, and nothing has arrived: also nothing that the loop has had no time to read yet."""
        return self.is_writable() and not self._poll.poll(0)

    def ask(self, request: bytes) -> Answer:
        """Only on a connection that is open; the whole request is handed over at once."""
        assert self._transport is not None
        self.first_byte_at = None
        self._answer = Answer()
        self._transport.write(request)
        return self._answer

    async def settle(self) -> None:
        """Wait until the answer is settled. Whoever is cancelled here closes the connection."""
        if self._answer is not None and not self._answer.is_settled:
            self._settled = self._loop.create_future()
            await self._settled

    def rest(self) -> None:
        """The exchange is over, and the next may come."""
        self._answer = None
        self._settled = None

    def abort(self) -> None:
        self.is_open = False
        self.rest()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """With a goodbye, where TLS has one."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # From here on: what the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self.made_at = perf_counter()
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or answer.is_settled:
            self.spoke_unasked = True
            self._break_off()
            return
        if self.first_byte_at is None:
            self.first_byte_at = perf_counter()
        answer.feed(data)
        self._wake_if_settled(answer)

    def eof_received(self) -> None:
        # None closes the transport, and connection_lost comes without an error.
        self.is_open = False
        if self._answer is not None:
            self._answer.end(is_reset=False)
            self._wake_if_settled(self._answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None:
            self._answer.end(is_reset=error is not None)
            self._wake_if_settled(self._answer)
        self._transport = None
        self.lost.set_result(None)

    def _wake_if_settled(self, answer: Answer) -> None:
        if not answer.is_settled:
            return
        if not answer.idle_seconds:
            self._break_off()
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def _break_off(self) -> None:
        """At once, and not when the one who waits comes round to it: an endless answer goes on meanwhile."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()


# Connections that wait for their next request, bounded in number and in time.

MOST_IN_ALL = 1024
MOST_PER_ORIGIN = 256
# So that a name that moves is followed, and no receiver keeps one worker's connections for ever.
LONGEST_LIFE_SECONDS = 60.0
_SWEEP_SECONDS = 0.5
# The transport cuts it short after one.
_LONGEST_GOODBYE_SECONDS = 2.0


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class IdleConnections:
    """The last to come is the first to go, so that what a burst left over is not kept awake."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, list[Connection]] = {}
        self._origins: dict[Connection, Origin] = {}
        self._leaving: set[asyncio.Future[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._origins)

    def take(self, origin: Origin) -> Connection | None:
        waiting = self._by_origin.get(origin)
        now = perf_counter()
        while waiting:
            connection = waiting.pop()
            del self._origins[connection]
            if connection.is_open and now < connection.usable_until:
                return connection
            self._let_go(connection)
        return None

    def put(self, origin: Origin, connection: Connection, idle_seconds: float) -> None:
        now = perf_counter()
        if not connection.is_open or now > connection.made_at + LONGEST_LIFE_SECONDS:
            self._let_go(connection)
            return
        connection.usable_until = now + idle_seconds
        waiting = self._by_origin.setdefault(origin, [])
        if len(waiting) >= MOST_PER_ORIGIN:
            self._drop(waiting[0])
        elif len(self._origins) >= MOST_IN_ALL:
            self._drop(next(iter(self._origins)))
        waiting.append(connection)
        self._origins[connection] = origin
        if self._sweep is None:
            self._sweep_later()

    async def close(self) -> None:
        """All that wait and all that are on their way out are gone after this."""
        for connection in list(self._origins):
            self._drop(connection)
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_LONGEST_GOODBYE_SECONDS)

    def _drop(self, connection: Connection) -> None:
        self._by_origin[self._origins.pop(connection)].remove(connection)
        self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        """Where TLS is in use its goodbye takes a moment, for which the connection is still ours."""
        if not connection.lost.done():
            self._leaving.add(connection.lost)
            connection.lost.add_done_callback(self._leaving.discard)
            connection.close()

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep_now)

    def _sweep_now(self) -> None:
        now = perf_counter()
        for connection in [idle for idle in self._origins if not idle.is_open or now >= idle.usable_until]:
            self._drop(connection)
        for origin in [origin for origin, waiting in self._by_origin.items() if not waiting]:
            del self._by_origin[origin]
        self._sweep = None
        if self._origins:
            self._sweep_later()
