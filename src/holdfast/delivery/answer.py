"""Reads one answer out of the bytes that arrive, and never keeps more of them than it may. No I/O."""

from __future__ import annotations

import re

import httptools

from holdfast.delivery import causes

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
