"""JSON: encoding, responses, and strict parsing, which rejects text that parsers read differently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.domain.errors import InvalidInput
from holdfast.domain.wire_format import camel_case as camel_case
from holdfast.web.errors import ItemTooLarge, MalformedBody
from holdfast.web.request import BODY_LIMIT, JSON, Request

Header = tuple[bytes, bytes]

NO_STORE: Header = (b"cache-control", b"no-store")
"""For what one caller alone may see: nothing in between keeps it."""
LONGEST_NUMBER = 1000

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WHITESPACE = " \t\n\r"
_SPACES = re.compile(f"[{_WHITESPACE}]*").match
_SPACE_BEFORE_COLON = re.compile(f"[{_WHITESPACE}]:").search
_ESCAPED_NO_CHARACTER = re.compile(r"\\u(0000|[dD][89a-fA-F])").search

LONGEST_ITEM = 1024**2

_LONGEST_TOKEN = len("-Infinity") + len("\\u0000")
_WINDOWS = (4 * 1024, 64 * 1024, LONGEST_ITEM + 1)

_SKIM = msgspec.json.Decoder(dict[str, Any]).decode

_SLICE = 256 * 1024
_DECLARES_A_BODY = (b"content-type", b"content-encoding")

encode = msgspec.json.Encoder(decimal_format="number").encode


def time_text(time: datetime) -> str:
    """Return the text of ``domain.wire_format.format_timestamp``, in a quarter of its time."""
    text = encode(time).decode()
    # The encoder writes microseconds if there are any: "2026-11-14T09:30:00.123000Z", quotes included.
    return f"{text[1:24]}Z" if time.microsecond else f"{text[1:20]}.000Z"


def optional_time_text(time: datetime | None) -> str | None:
    return None if time is None else time_text(time)


class JsonResponse(Response):
    """A response whose header lines are written as bytes: this is on the path of every API request."""

    def __init__(
        self, document: Any, status: int = 200, headers: Iterable[Header] = (), media_type: str = JSON
    ) -> None:
        self.status_code = status
        self.background = None
        self.body = encode(document)
        self.raw_headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            *headers,
        ]


class JsonPartsResponse(Response):
    """Parts that are JSON together, sent in slices: they may be many megabytes and are not copied."""

    def __init__(self, parts: Sequence[bytes | bytearray]) -> None:
        super().__init__(media_type=JSON, headers={"content-length": str(sum(map(len, parts)))})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        for part in self._parts:
            for at in range(0, len(part), _SLICE):
                piece = bytes(part[at : at + _SLICE])
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def read_json_text(request: Request, limit: int = BODY_LIMIT) -> str:
    request.require_media_type()
    return decode_body(await request.read_body(limit))


async def read_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    return parse_json(await read_json_text(request, limit))


async def read_optional_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    """Return an empty object if no body was sent, which needs no media type; a wrong one is rejected."""
    if any(name in request.header_values for name in _DECLARES_A_BODY):
        request.require_media_type()
    body = await request.read_body(limit)
    if not body:
        return {}
    request.require_media_type()
    return parse_json(decode_body(body))


class _NotStrict(ValueError):
    """Raised inside the decoder, for faults that its own grammar lets through."""


def _parse_number(text: str) -> Decimal:
    if len(text) > LONGEST_NUMBER:
        raise _NotStrict(f"it has a number of more than {LONGEST_NUMBER} characters")
    try:
        return Decimal(text)
    except InvalidOperation:
        # An exponent beyond all measure: out of every bound, like infinity.
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")


def _reject_constant(name: str) -> Any:
    raise _NotStrict(f"{name} is not JSON")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _NotStrict(f"the name {json.dumps(repeated)} is given twice in one object")
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_float=_parse_number,
    parse_int=_parse_number,
    parse_constant=_reject_constant,
)


def decode_body(body: bytes) -> str:
    if body.startswith(_BYTE_ORDER_MARKS):
        raise MalformedBody("The body starts with a byte order mark; send plain UTF-8.")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise MalformedBody(f"The body is not UTF-8 (byte {fault.start}).") from fault


def parse_json(text: str) -> Any:
    """Parse strictly. All numbers come as ``Decimal``, exactly as written."""
    if not text.strip(_WHITESPACE):
        raise MalformedBody("The body is empty; send a JSON object.")
    try:
        value, end = _DECODER.raw_decode(text, _skip_whitespace(text, 0))
    except ValueError as fault:
        raise _malformed(fault, 0) from fault
    except RecursionError:
        raise MalformedBody("The body is nested too deeply.") from None
    _reject_rest(text, end)
    return value


def count_names(text: str) -> int:
    """Return how many names a flat JSON object has, or more; -1 if only the strict parser can tell.

    Each name ends in ``":``. So an object in which a lenient parser finds as many names as this has
    none that is given twice, and none that the parser passed over.
    """
    if " :" in text or (("\n" in text or "\t" in text or "\r" in text) and _SPACE_BEFORE_COLON(text)):
        return -1
    if "\\" in text and _ESCAPED_NO_CHARACTER(text):
        return -1
    return text.count('":')


def _malformed(fault: ValueError, offset: int) -> MalformedBody:
    if isinstance(fault, json.JSONDecodeError):
        return MalformedBody(f"The body is not JSON: {fault.msg} (character {offset + fault.pos}).")
    return MalformedBody(f"The body is not acceptable JSON: {fault}.")


def _skip_whitespace(text: str, at: int) -> int:
    return _SPACES(text, at).end()  # type: ignore[union-attr]


def _reject_rest(text: str, at: int) -> None:
    if _skip_whitespace(text, at) != len(text):
        raise MalformedBody(f"The body goes on after its JSON value (character {at}).")


# Positions of many JSON values in one long text, without keeping any of them.


class Item(NamedTuple):
    start: int
    end: int
    names: int
    """Of a flat object; -1 if only reading it strictly can tell."""


def array_items(text: str) -> Iterator[Item]:
    """Yield the items of a JSON array."""
    at = _skip_whitespace(text, 0)
    if text[at : at + 1] != "[":
        _reject_rest(text, value_at(text, at)[1])
        raise InvalidInput.at("", "The body must be a JSON array of units.")
    at = _skip_whitespace(text, at + 1)
    if text[at : at + 1] == "]":
        _reject_rest(text, at + 1)
        return
    while True:
        item = item_at(text, at)
        yield item
        at = item.end
        if text.startswith(",{", at):
            at += 1
            continue
        at = _skip_whitespace(text, at)
        if text[at : at + 1] == "]":
            _reject_rest(text, at + 1)
            return
        if text[at : at + 1] != ",":
            raise MalformedBody(f"The body is not JSON: expecting ',' or ']' (character {at}).")
        at = _skip_whitespace(text, at + 1)


def line_items(text: str) -> Iterator[Item]:
    """Yield the items of text with one JSON value a line; empty lines are skipped."""
    at = _skip_whitespace(text, 0)
    while at < len(text):
        item = item_at(text, at)
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if item.end > line_end or text[item.end : line_end].strip(_WHITESPACE):
            raise MalformedBody(f"Each line is one JSON value; this one is not (character {at}).")
        yield item
        at = line_end + 1 if text.startswith("{", line_end + 1) else _skip_whitespace(text, line_end)


def item_at(text: str, start: int) -> Item:
    """Return the item at ``start``. One that is plainly an object is not parsed strictly."""
    if text.startswith("{", start):
        # No further than this, so that no number in it can be too long.
        end = text.find("}", start, start + LONGEST_NUMBER) + 1
        part = text[start:end]
        try:
            names = len(_SKIM(part)) if end else -1
        except (ValueError, RecursionError):
            names = -1
        if names >= 0 and names == count_names(part):
            return Item(start, end, names)
    return Item(start, value_at(text, start)[1], -1)


def value_at(text: str, start: int) -> tuple[Any, int]:
    """Return the value at ``start``, parsed strictly, and its end.

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
            # The fault may be no more than the end of the window.
            is_cut_off = isinstance(fault, json.JSONDecodeError) and (
                fault.msg.startswith("Unterminated") or fault.pos >= len(part) - _LONGEST_TOKEN
            )
            if is_all or not is_cut_off:
                raise _malformed(fault, start) from fault
        else:
            # A number that ends where the window ends may go on behind it.
            if length < len(part) or is_all:
                return value, start + length
    raise ItemTooLarge(LONGEST_ITEM)
