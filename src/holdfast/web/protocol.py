"""uvicorn's HTTP protocol, with our answer to what is not HTTP."""

from __future__ import annotations

import asyncio
import re

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.web.call import SHORTCUT
from holdfast.web.problems import MEDIA_TYPE, problem_document
from holdfast.web.refusals import MalformedRequest
from holdfast.web.request_ids import new_request_id
from holdfast.web.wire import encode

LARGEST_HEAD = 64 * 1024
LARGEST_FRAMING = 1024**2

_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)

_ANSWER = (
    "HTTP/1.1 400 Bad Request\r\n"
    "content-type: {media_type}\r\n"
    "content-length: {length}\r\n"
    "x-request-id: {request_id}\r\n"
    "connection: close\r\n\r\n"
)


class HttpProtocol(HttpToolsProtocol):
    _head_size: int | None = None
    """Bytes received of a head that is not complete; None outside of a head."""
    _framing_size = 0
    """Bytes of a message that were neither head nor body: chunk sizes and trailers."""
    _at_start = True
    """Whether the next byte is the first one of a message."""
    _answered_at = 0.0
    _idle_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        if self._at_start and b"pgrade:" in data:
            data = _without_upgrade(data)
        in_head = self._head_size is not None
        in_body = not in_head and not self._at_start
        self._framing_size += len(data) if in_body else 0
        super().data_received(data)
        if in_head and self._head_size is not None:
            self._head_size += len(data)
        if (self._head_size or 0) > LARGEST_HEAD or self._framing_size > LARGEST_FRAMING:
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._at_start = False
        self._head_size = self._framing_size = 0

    def on_headers_complete(self) -> None:
        self._head_size = None
        super().on_headers_complete()
        # Trailers would be added to the headers; nobody asks for them, so they are dropped.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._framing_size -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._at_start = True
        self._framing_size = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """As uvicorn's own, but a connection has one timer, which is not set anew for every request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._answered_at = self.loop.time()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._idle_timer = None
        if self._head_size is not None or not self.cycle.response_complete:
            return
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._close_if_idle)
        else:
            self.timeout_keep_alive_handler()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.scope[SHORTCUT] = _CycleShortcut(cycle)  # type: ignore[literal-required]
        super()._start_asgi_task(cycle, app)

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """What is no request never reaches the application; its sender gets a problem all the same."""
        request_id = new_request_id()
        body = encode(problem_document(MalformedRequest(), request_id))
        head = _ANSWER.format(media_type=MEDIA_TYPE, length=len(body), request_id=request_id)
        self.transport.write(head.encode() + body)
        self.transport.close()


class _CycleShortcut:
    """What uvicorn's ``receive`` and ``send`` do for small requests, without messages and checks."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def received(self) -> bytes | None:
        cycle = self._cycle
        if cycle.more_body or cycle.waiting_for_100_continue or cycle.disconnected:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def send(self, status: int, lines: bytes, body: bytes) -> bool:
        cycle = self._cycle
        if cycle.disconnected or cycle.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        if cycle.transport.is_closing():
            return True
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        own_lines = _lines_of(cycle.default_headers)
        cycle.transport.write(b"".join((STATUS_LINE[status], own_lines, lines, end, body)))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True


def _lines_of(headers: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def _without_upgrade(data: bytes) -> bytes:
    """The head without its offer to speak another protocol, which a server is free to pass over.

    Java's own client makes that offer with every request. The parser would take what follows for the
    other protocol, and the body would be lost.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + rest
