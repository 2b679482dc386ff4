"""The head of a request, and those that are known already."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_KNOWN_AT_MOST = 500
_LONGEST_KNOWN = 2048
_LINES_AT_MOST = 40

# Narrower than what the parser takes: whatever else stands in a first line is the parser's to judge.
_PLAIN_LINE = re.compile(rb"(GET|HEAD|PUT|PATCH|POST|DELETE) (/[\w.~%/-]*)(?:\?([\w.~%&=+:-]*))? HTTP/1\.1")
_METHODS = {name.encode(): name for name in ("GET", "HEAD", "PUT", "PATCH", "POST", "DELETE")}


class Head:
    """The header lines of a request; one object for all requests that have the same."""

    __slots__ = ("lines", "notes", "values")

    def __init__(self, lines: list[tuple[bytes, bytes]]) -> None:
        self.lines = lines
        """Names in lower case."""
        self.values = dict(lines)
        """By name; the last one where a name stands twice."""
        self.notes: Any = None
        """For what follows from the head alone, so that it is worked out once."""


class Request(NamedTuple):
    """One that came as a whole."""

    method: str
    path: bytes
    query: bytes
    head: Head
    body: bytes


class KnownHeads:
    """Clients send the same header lines again and again, and the parser read them the first time.

    Only heads of messages that keep the connection open and whose length they tell are remembered: for
    those, where the message ends is known as well.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Head, int]] = {}

    def request_in(self, data: bytes) -> Request | None:
        """The request, if these bytes are one and no more, with a head that is known."""
        line_end = data.find(b"\r\n")
        end = data.find(b"\r\n\r\n", line_end)
        if end <= line_end:
            return None
        known = self._known.get(data[line_end:end])
        if known is None:
            return None
        head, length = known
        line = _PLAIN_LINE.fullmatch(data, 0, line_end)
        if line is None or len(data) != end + 4 + length:
            return None
        method, path, query = line.groups(b"")
        return Request(_METHODS[method], path, query, head, data[end + 4 :])

    def learn(self, data: bytes, head: Head) -> None:
        """``head`` is what the parser made of the first head in this data."""
        line_end = data.find(b"\r\n")
        end = data.find(b"\r\n\r\n", line_end)
        # The parser passes over empty lines before a request; what it read then stands elsewhere.
        starts_with_it = _PLAIN_LINE.fullmatch(data, 0, max(line_end, 0)) is not None and end > line_end
        is_small = end - line_end <= _LONGEST_KNOWN and len(head.lines) <= _LINES_AT_MOST
        if not starts_with_it or not is_small or not _tells_its_length(head):
            return
        if len(self._known) >= _KNOWN_AT_MOST:
            self._known.clear()
        self._known[data[line_end:end]] = head, int(head.values.get(b"content-length", b"0"))


def _tells_its_length(head: Head) -> bool:
    return b"transfer-encoding" not in head.values and b"expect" not in head.values
