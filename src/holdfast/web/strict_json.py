"""JSON read strictly: what one parser would read differently from another is refused."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from holdfast.web.http_errors import MalformedBody

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
    refuse_rest(text, end)
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


def refuse_rest(text: str, at: int) -> None:
    if skip_whitespace(text, at) != len(text):
        raise MalformedBody(f"The body goes on after its JSON value (character {at}).")
