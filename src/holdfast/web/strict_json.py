"""JSON read strictly: what one parser would read differently from another is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import msgspec

from holdfast.domain.errors import InvalidInput
from holdfast.web.http_errors import ItemTooLarge, MalformedBody

LONGEST_NUMBER = 1000

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
WHITESPACE = " \t\n\r"
_SPACES = re.compile(f"[{WHITESPACE}]*").match
_SPACE_BEFORE_COLON = re.compile(f"[{WHITESPACE}]:").search
_ESCAPED_NO_CHARACTER = re.compile(r"\\u(0000|[dD][89a-fA-F])").search


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


DECODER = json.JSONDecoder(
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
    if not text.strip(WHITESPACE):
        raise MalformedBody("The body is empty; send a JSON object.")
    try:
        value, end = DECODER.raw_decode(text, skip_whitespace(text, 0))
    except ValueError as fault:
        raise malformed(fault, 0) from fault
    except RecursionError:
        raise MalformedBody("The body is nested too deeply.") from None
    reject_rest(text, end)
    return value


def names_in(text: str) -> int:
    """How many names a flat JSON object has, or more; -1 if only reading it strictly can tell.

    Each name ends in ``":``. So an object in which a lenient parser finds as many names as this has
    none that stands twice, and none that the parser passed over.
    """
    if " :" in text or (("\n" in text or "\t" in text or "\r" in text) and _SPACE_BEFORE_COLON(text)):
        return -1
    if "\\" in text and _ESCAPED_NO_CHARACTER(text):
        return -1
    return text.count('":')


def malformed(fault: ValueError, offset: int) -> MalformedBody:
    if isinstance(fault, json.JSONDecodeError):
        return MalformedBody(f"The body is not JSON: {fault.msg} (character {offset + fault.pos}).")
    return MalformedBody(f"The body is not acceptable JSON: {fault}.")


def skip_whitespace(text: str, at: int) -> int:
    return _SPACES(text, at).end()  # type: ignore[union-attr]


def reject_rest(text: str, at: int) -> None:
    if skip_whitespace(text, at) != len(text):
        raise MalformedBody(f"The body goes on after its JSON value (character {at}).")


# Many JSON values in one long text: where each of them stands, without keeping any.

LONGEST_ITEM = 1024**2

_LONGEST_TOKEN = len("-Infinity") + len("\\u0000")
_WINDOWS = (4 * 1024, 64 * 1024, LONGEST_ITEM + 1)

_SKIM = msgspec.json.Decoder(dict[str, Any]).decode


class Item(NamedTuple):
    start: int
    end: int
    names: int
    """Of a flat object; -1 if only reading it strictly can tell."""


def array_items(text: str) -> Iterator[Item]:
    """The items of a JSON array. Reads on only as it is asked to."""
    at = skip_whitespace(text, 0)
    if text[at : at + 1] != "[":
        reject_rest(text, value_at(text, at)[1])
        raise InvalidInput.at("", "The body must be a JSON array of units.")
    at = skip_whitespace(text, at + 1)
    if text[at : at + 1] == "]":
        reject_rest(text, at + 1)
        return
    while True:
        item = item_at(text, at)
        yield item
        at = item.end
        if text.startswith(",{", at):
            at += 1
            continue
        at = skip_whitespace(text, at)
        if text[at : at + 1] == "]":
            reject_rest(text, at + 1)
            return
        if text[at : at + 1] != ",":
            raise MalformedBody(f"The body is not JSON: expecting ',' or ']' (character {at}).")
        at = skip_whitespace(text, at + 1)


def line_items(text: str) -> Iterator[Item]:
    """One JSON value a line; empty lines are passed over."""
    at = skip_whitespace(text, 0)
    while at < len(text):
        item = item_at(text, at)
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if item.end > line_end or text[item.end : line_end].strip(WHITESPACE):
            raise MalformedBody(f"Each line is one JSON value; this one is not (character {at}).")
        yield item
        at = line_end + 1 if text.startswith("{", line_end + 1) else skip_whitespace(text, line_end)


def item_at(text: str, start: int) -> Item:
    """The item that starts at ``start``. One that is plainly an object is not read strictly."""
    if text.startswith("{", start):
        # No further than this, so that no number in it can be too long.
        end = text.find("}", start, start + LONGEST_NUMBER) + 1
        part = text[start:end]
        try:
            names = len(_SKIM(part)) if end else -1
        except (ValueError, RecursionError):
            names = -1
        if names >= 0 and names == names_in(part):
            return Item(start, end, names)
    return Item(start, value_at(text, start)[1], -1)


def value_at(text: str, start: int) -> tuple[Any, int]:
    """The value that starts at ``start``, read strictly, and where it ends.

    It looks at ever larger windows of the text, so that no more than ``LONGEST_ITEM`` characters
    become objects at a time: a number of two characters is an object of a hundred bytes.
    """
    for window in _WINDOWS:
        part = text[start : start + window]
        is_all = start + len(part) == len(text)
        try:
            value, length = DECODER.raw_decode(part)
        except RecursionError:
            raise MalformedBody("The body is nested too deeply.") from None
        except ValueError as fault:
            if is_all or not _may_be_cut_off(fault, part):
                raise malformed(fault, start) from fault
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
