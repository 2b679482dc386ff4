"""JSON read strictly: what one parser would read differently from another is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from holdfast.domain.refusals import InvalidInput
from holdfast.web.refusals import MalformedBody

LONGEST_NUMBER = 1000

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WHITESPACE = " \t\n\r"


class _Refused(ValueError):
    """Raised inside the decoder, for faults that its own grammar lets through."""


def _number(text: str) -> Decimal:
    if len(text) > LONGEST_NUMBER:
        raise _Refused(f"it has a number of more than {LONGEST_NUMBER} characters")
    try:
        return Decimal(text)
    except InvalidOperation:
        # An exponent beyond all measure: out of every bound, like infinity.
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"the name {json.dumps(twice)} stands twice in one object")
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_number, parse_constant=_constant
)


def text_of(body: bytes) -> str:
    if body.startswith(_BYTE_ORDER_MARKS):
        raise MalformedBody("The body starts with a byte order mark; send plain UTF-8.")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise MalformedBody(f"The body is not UTF-8 (byte {fault.start}).") from fault


def parse(body: bytes) -> Any:
    """All numbers come as ``Decimal``, exactly as written."""
    text = text_of(body)
    if not text.strip(_WHITESPACE):
        raise MalformedBody("The body is empty; send a JSON object.")
    value, end = value_at(text, _skip_whitespace(text, 0))
    _refuse_rest(text, end)
    return value


def value_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that starts at ``start``, and where it ends."""
    try:
        return _DECODER.raw_decode(text, start)
    except _Refused as fault:
        raise MalformedBody(f"The body is not acceptable JSON: {fault}.") from fault
    except RecursionError:
        raise MalformedBody("The body is nested too deeply.") from None
    except ValueError as fault:
        at = getattr(fault, "pos", start)
        message = getattr(fault, "msg", str(fault))
        raise MalformedBody(f"The body is not JSON: {message} (character {at}).") from fault


def array_items(text: str) -> Iterator[tuple[int, int]]:
    """Where each item of the JSON array starts and ends. Reads on only as it is asked to."""
    at = _skip_whitespace(text, 0)
    if text[at : at + 1] != "[":
        parse(text.encode())
        raise InvalidInput.at("", "The body must be a JSON array of units.")
    at = _skip_whitespace(text, at + 1)
    if text[at : at + 1] == "]":
        _refuse_rest(text, at + 1)
        return
    while True:
        _, end = value_at(text, at)
        yield at, end
        at = _skip_whitespace(text, end)
        if text[at : at + 1] == "]":
            _refuse_rest(text, at + 1)
            return
        if text[at : at + 1] != ",":
            raise MalformedBody(f"The body is not JSON: expecting ',' or ']' (character {at}).")
        at = _skip_whitespace(text, at + 1)


def line_items(text: str) -> Iterator[tuple[int, int]]:
    """Where the JSON value of each line starts and ends; empty lines are passed over."""
    at = 0
    while at < len(text):
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        start = _skip_whitespace(text, at)
        if start < line_end:
            _, end = value_at(text, start)
            if end > line_end or text[end:line_end].strip(_WHITESPACE):
                raise MalformedBody(f"Each line is one JSON value; this one is not (character {at}).")
            yield start, end
        at = line_end + 1


def _skip_whitespace(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITESPACE:
        at += 1
    return at


def _refuse_rest(text: str, at: int) -> None:
    if _skip_whitespace(text, at) != len(text):
        raise MalformedBody(f"The body goes on after its JSON value (character {at}).")
