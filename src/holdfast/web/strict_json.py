"""JSON read strictly: what one parser would read differently from another is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from holdfast.domain.refusals import InvalidInput
from holdfast.web.refusals import ItemTooLarge, MalformedBody

LONGEST_NUMBER = 1000
LONGEST_ITEM = 1024**2

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WHITESPACE = " \t\n\r"
_SPACES = re.compile(f"[{_WHITESPACE}]*").match
_ESCAPED_NO_CHARACTER = re.compile(r"\\u(0000|[dD][89a-fA-F])").search
_LONGEST_TOKEN = len("-Infinity") + len("\\u0000")
_WINDOWS = (4 * 1024, 64 * 1024, LONGEST_ITEM + 1)


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
        raise _Refused(f"the name {json.dumps(_first_repeated(pairs))} stands twice in one object")
    return members


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    return next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]


_SKIM = msgspec.json.Decoder(dict[str, Any], float_hook=_number).decode
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


def parse(text: str) -> Any:
    """All numbers come as ``Decimal``, exactly as written."""
    if not text.strip(_WHITESPACE):
        raise MalformedBody("The body is empty; send a JSON object.")
    value, end = value_at(text, _skip_whitespace(text, 0))
    _refuse_rest(text, end)
    return value


def value_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that starts at ``start``, and where it ends."""
    try:
        return _DECODER.raw_decode(text, start)
    except ValueError as fault:
        raise _malformed(fault, 0) from fault
    except RecursionError:
        raise MalformedBody("The body is nested too deeply.") from None


def is_plain(text: str, members: int) -> bool:
    """Whether a text that a lenient parser took for one flat object has just that many members.

    Each name ends in ``":``, so a name that stands twice, or one that the parser passed over, is one
    too many. A text may count more than it has and be no worse for it: it is then read strictly.
    """
    return (
        text.count('":') == members
        and " :" not in text
        and "\t:" not in text
        and "\n:" not in text
        and "\r:" not in text
        and ("\\u" not in text or not _ESCAPED_NO_CHARACTER(text))
    )


def item_end(text: str, start: int) -> int:
    """Where the item that starts at ``start`` ends; what is plain is not read strictly for that."""
    end = text.find("}", start, start + _WINDOWS[0]) + 1 if text[start : start + 1] == "{" else 0
    if end:
        part = text[start:end]
        try:
            if is_plain(part, len(_SKIM(part))):
                return end
        except (ValueError, RecursionError):
            pass
    return item_at(text, start)[1]


def item_at(text: str, start: int) -> tuple[Any, int]:
    """Like ``value_at``, for one of many values in a long text.

    It looks at ever larger windows of the text, so that no more than ``LONGEST_ITEM`` characters
    become objects at a time: a number of two characters is an object of a hundred bytes.
    """
    for window in _WINDOWS:
        part = text[start : start + window]
        is_all = start + len(part) == len(text)
        try:
            value, length = _DECODER.raw_decode(part)
        except RecursionError:
            raise MalformedBody("The body is nested too deeply.") from None
        except ValueError as fault:
            if is_all or not _may_be_cut_off(fault, part):
                raise _malformed(fault, start) from fault
        else:
            # A number that ends where the window ends may go on behind it.
            if length < len(part) or is_all:
                return value, start + length
    raise ItemTooLarge(LONGEST_ITEM)


def _may_be_cut_off(fault: ValueError, part: str) -> bool:
    """Whether the fault may be no more than the end of the window."""
    if not isinstance(fault, json.JSONDecodeError):
        return False
    return fault.msg.startswith("Unterminated") or fault.pos >= len(part) - _LONGEST_TOKEN


def _malformed(fault: ValueError, offset: int) -> MalformedBody:
    if isinstance(fault, json.JSONDecodeError):
        return MalformedBody(f"The body is not JSON: {fault.msg} (character {offset + fault.pos}).")
    return MalformedBody(f"The body is not acceptable JSON: {fault}.")


def array_items(text: str) -> Iterator[tuple[int, int]]:
    """Where each item of the JSON array starts and ends. Reads on only as it is asked to."""
    at = _skip_whitespace(text, 0)
    if text[at : at + 1] != "[":
        _refuse_rest(text, item_at(text, at)[1])
        raise InvalidInput.at("", "The body must be a JSON array of units.")
    at = _skip_whitespace(text, at + 1)
    if text[at : at + 1] == "]":
        _refuse_rest(text, at + 1)
        return
    while True:
        end = item_end(text, at)
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
    at = _skip_whitespace(text, 0)
    while at < len(text):
        end = item_end(text, at)
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if end > line_end or text[end:line_end].strip(_WHITESPACE):
            raise MalformedBody(f"Each line is one JSON value; this one is not (character {at}).")
        yield at, end
        at = _skip_whitespace(text, line_end)


def _skip_whitespace(text: str, at: int) -> int:
    return _SPACES(text, at).end()  # type: ignore[union-attr]


def _refuse_rest(text: str, at: int) -> None:
    if _skip_whitespace(text, at) != len(text):
        raise MalformedBody(f"The body goes on after its JSON value (character {at}).")
