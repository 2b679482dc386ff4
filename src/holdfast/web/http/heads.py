"""The head of a request, and those that are known already."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_KNOWN_AT_MOST = 500
_LONGEST_KNOWN = 2048
_LINES_AT_MOST = 40

# Narrower than what the parser takes: whatever else stands in a first line is the parser's to judge.
_PLAIN_LINE = re.compile(rb"(GET|HEAD|PUT|PATCH|POST|DELETE) (/[\w.~%/-]*)(?:\?([\w.~%&=+:-]*))? HTTP/1\.1")
# A proxy names every client in a line of its own making. These letters cannot be taken for anything else.
FORWARDED_FOR = b"x-forwarded-for"
_FORWARDED_LINE = b"\r\nX-Forwarded-For: "
_ADDRESSES = re.compile(rb"[\dA-Fa-f:.]+(?:, ?[\dA-Fa-f:.]+)*")
_FOLD = re.compile(rb"\r\n[ \t]")
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
        """For what follows from the head alone, X-Forwarded-For apart, so that it is worked out once."""

    def forwarded_for(self, addresses: bytes) -> Head:
        """The same for another client of the proxy."""
        lines = [(name, addresses if name == FORWARDED_FOR else value) for name, value in self.lines]
        head = Head(lines)
        head.notes = self.notes
        return head


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
    those, where the message ends is known as well. Heads that differ in X-Forwarded-For alone are one.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Head, int]] = {}
        self._forwarded: dict[bytes, tuple[Head, int]] = {}
        """Those with X-Forwarded-For, by their other lines."""

    def request_in(self, data: bytes) -> Request | None:
        """The request, if these bytes are one and no more, with a head that is known."""
        line_end = data.find(b"\r\n")
        end = data.find(b"\r\n\r\n", line_end)
        if end <= line_end:
            return None
        head, length = self._find(data[line_end:end])
        if head is None:
            return None
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
        self._keep(data[line_end:end], head)

    def _find(self, lines: bytes) -> tuple[Head | None, int]:
        known = self._known.get(lines)
        if known is not None:
            return known
        others, addresses = _without_addresses(lines)
        known = self._forwarded.get(others) if addresses else None
        if known is None:
            return None, 0
        head, length = known
        return head.forwarded_for(addresses), length

    def _keep(self, lines: bytes, head: Head) -> None:
        length = int(head.values.get(b"content-length", b"0"))
        others, addresses = _without_addresses(lines)
        is_alike = addresses and _names_once(head, addresses) and _FOLD.search(lines) is None
        kept, key = (self._forwarded, others) if is_alike else (self._known, lines)
        if len(kept) >= _KNOWN_AT_MOST:
            kept.clear()
        kept[key] = head, length


def _without_addresses(lines: bytes) -> tuple[bytes, bytes]:
    """The lines without X-Forwarded-For, and the addresses in it; none if it is not as proxies write it."""
    before, found, after = lines.partition(_FORWARDED_LINE)
    addresses, line_end, rest = after.partition(b"\r\n")
    is_short = len(addresses) <= _LONGEST_KNOWN
    if not found or not is_short or _ADDRESSES.fullmatch(addresses) is None:
        return lines, b""
    return before + line_end + rest, addresses


def _names_once(head: Head, addresses: bytes) -> bool:
    """Whether the parser has read these addresses, in one line and no other."""
    return [value for name, value in head.lines if name == FORWARDED_FOR] == [addresses]


def _tells_its_length(head: Head) -> bool:
    return b"transfer-encoding" not in head.values and b"expect" not in head.values
