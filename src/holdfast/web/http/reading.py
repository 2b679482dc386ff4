"""From the bytes of a connection to its requests, within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import httptools

from holdfast.web.http.exchange import Exchange
from holdfast.web.http.heads import Head, KnownHeads

LARGEST_HEAD = 64 * 1024
LARGEST_FRAMING = 2 * 1024**2

_LONGEST_LENGTH = 20
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)


class NoRequest(Exception):
    """What came is no HTTP, or too much of it."""


class LastRequest(Exception):
    """What follows is not ours to read."""


class Beginning(NamedTuple):
    """A request whose head is complete."""

    method: str
    path: bytes
    query: bytes
    head: Head
    keep_alive: bool
    wants_continue: bool


class RequestReader:
    """Tells of each request when its head is complete, and feeds it its body as that comes."""

    def __init__(
        self,
        known_heads: KnownHeads,
        begin: Callable[[Beginning], Exchange | None],
        now: Callable[[], float],
    ) -> None:
        self._known_heads = known_heads
        self._begin = begin
        self._now = now
        self.incoming: Exchange | None = None
        """The exchange whose body is being read."""
        self.in_message = False
        self.head_since: float | None = None
        """When the head began that is being read."""

        self._parser: Any = httptools.HttpRequestParser(self)
        # What comes after the last request is passed over; without this it would be an error before
        # that request has its answer.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._fresh_data: bytes | None = None
        """What the parser reads, as long as no head in it is complete."""
        self._is_over = False
        self._messages = 0
        self._target = b""
        self._header_lines: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        """Bytes received of a head that is not complete, its first ones apart."""
        self._framing_size = 0
        """Bytes of a message that were neither head nor body: chunk sizes and trailers."""

    def read(self, data: bytes) -> None:
        """What comes after the last request, or after what is none, is not kept."""
        if self._is_over:
            return
        try:
            self._read(data)
        except (NoRequest, LastRequest):
            self._is_over = True
            self._header_lines = []
            raise

    def close(self) -> None:
        """Parser, reader and connection hold each other; nothing is left for the garbage collector."""
        self._is_over = True
        self._parser = self.incoming = None
        self._begin = _nobody

    def _read(self, data: bytes) -> None:
        if not self.in_message:
            self._fresh_data = data
            if b"pgrade:" in data:
                data = _without_upgrade(data)
        in_head, messages = self.head_since is not None, self._messages
        if self.in_message and not in_head:
            self._framing_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise LastRequest from None
        except httptools.HttpParserError as fault:
            raise NoRequest from fault
        finally:
            self._fresh_data = None
        if in_head and messages == self._messages:
            self._head_size += len(data)
        if (self.head_since and self._head_size > LARGEST_HEAD) or self._framing_size > LARGEST_FRAMING:
            raise NoRequest

    # Called by the parser

    def on_message_begin(self) -> None:
        self.in_message = True
        self.head_since = self._now()
        self._messages += 1
        self._head_size = self._framing_size = 0
        self._target = b""
        self._header_lines = []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Not those behind the body: nobody asks for them.
        if self.head_since is not None:
            self._header_lines.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.head_since = None
        head = Head(self._header_lines)
        if self._parser.should_upgrade() and _announces_a_body(head):
            raise ValueError("a body that the parser would take for another protocol")
        if len(head.values.get(b"content-length", b"")) > _LONGEST_LENGTH:
            raise ValueError("a length of many zeros")
        path, query = _parts_of(self._target)
        is_current = self._parser.get_http_version() == "1.1"
        keep_alive = is_current and self._parser.should_keep_alive()
        if keep_alive and self._fresh_data is not None:
            self._known_heads.learn(self._fresh_data, head)
        self._fresh_data = None
        wants_continue = is_current and head.values.get(b"expect", b"").lower() == b"100-continue"
        method = self._parser.get_method().decode("ascii")
        self.incoming = self._begin(Beginning(method, path, query, head, keep_alive, wants_continue))

    def on_body(self, body: bytes) -> None:
        self._framing_size -= len(body)
        if self.incoming is not None and not self.incoming.ended:
            self.incoming.feed(body)

    def on_message_complete(self) -> None:
        self.in_message = False
        self._framing_size = 0
        if self.incoming is not None:
            self.incoming.finish()
            self.incoming = None


def _nobody(_: Beginning) -> None:
    """Nobody is there to take a request."""


def _parts_of(target: bytes) -> tuple[bytes, bytes]:
    """Path and query."""
    url = httptools.parse_url(target)
    path = url.path or (b"/" if url.host else None)
    if path is None:
        raise ValueError("a target that is no path")
    return path, url.query or b""


def _announces_a_body(head: Head) -> bool:
    return b"transfer-encoding" in head.values or head.values.get(b"content-length", b"0").strip(b"0") != b""


def _without_upgrade(data: bytes) -> bytes:
    """The head without its offer to speak another protocol, which a server is free to pass over.

    Java's own client makes that offer with every request. The parser would take what follows for the
    other protocol, and the body would be lost.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + rest if end else data
