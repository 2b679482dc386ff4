"""Requests and answers as they were on the wire, for eyes and for a terminal; whatever bytes they had."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import NamedTuple
from unicodedata import category

from holdfast.domain.endpoint_url import InvalidEndpointUrl, parse_endpoint_url
from holdfast.operations.deliveries import Attempt

_MADE_BY_CURL = frozenset({"host", "content-length"})
_A_LINE = 16
_TEXT_CONTROLS = "\t\n\r"
_TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


class Shown(NamedTuple):
    text: str
    is_dump: bool = False
    """Of bytes that are no text."""


def request_text(attempt: Attempt, body: str) -> str | None:
    """None: the request was never written."""
    if not attempt.request_headers:
        return None
    return f"POST {_target(attempt.url)} HTTP/1.1\n{_lines(attempt.request_headers)}\n\n{body}"


def response_head(attempt: Attempt) -> str:
    return _lines(attempt.response_headers)


def response_body(attempt: Attempt) -> Shown:
    text = _as_text(attempt.response_body)
    return Shown(_dump(attempt.response_body), True) if text is None else Shown(text)


def curl_text(attempt: Attempt, body: str) -> str | None:
    """The same request again, signature and all."""
    if not attempt.request_headers:
        return None
    headers = [
        f"-H {shlex.quote(f'{name}: {value}')}"
        for name, value in attempt.request_headers
        if name.lower() not in _MADE_BY_CURL
    ]
    parts = [f"curl -X POST {shlex.quote(attempt.url)}", *headers, f"--data-raw {shlex.quote(body)}"]
    return " \\\n  ".join(parts)


def _target(url: str) -> str:
    try:
        return parse_endpoint_url(url).request_target
    except InvalidEndpointUrl:
        return url


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in headers)


def _as_text(body: bytes) -> str | None:
    """None if it is not text: what cannot be seen would be hidden in it."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if any(map(_is_hidden, text)) else text


def _is_hidden(character: str) -> bool:
    """A control character, or one that turns the direction of what follows."""
    return character in _TURNING or (category(character) == "Cc" and character not in _TEXT_CONTROLS)


def _dump(body: bytes) -> str:
    """Place, bytes, and what of them is ASCII."""
    lines = []
    for start in range(0, len(body), _A_LINE):
        part = body[start : start + _A_LINE]
        seen = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:06x}  {part.hex(' '):<{_A_LINE * 3 - 1}}  {seen}")
    return "\n".join(lines)
