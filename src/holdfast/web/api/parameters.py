"""Path and query parameters: how each is parsed, and its JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS
from holdfast.domain.errors import Fault
from holdfast.domain.message import Message
from holdfast.domain.project import SLUG_LENGTH, SLUG_PATTERN, slug_fault
from holdfast.domain.spelling import snake_case
from holdfast.domain.status import Status
from holdfast.domain.unit import CODE_LENGTH, code_fault
from holdfast.web.fields import (
    PRINTABLE_PATTERN,
    TIME_MESSAGE,
    UNPRINTABLE,
    FieldError,
    OneOf,
    checked_by,
    parse_time,
)
from holdfast.web.pagination import (
    NUMBER_CURSOR,
    TEXT_CURSOR,
    TIME_AND_ID_CURSOR,
    TIME_AND_NUMBER_CURSOR,
    CursorCodec,
)
from holdfast.web.request import Request

LARGEST_LIMIT = 1000
DEFAULT_LIMIT = 100
LONGEST_TEXT = 254
UNANSWERED = "none"
CODE_CLASSES = {f"{first}xx": first for first in range(1, 6)}
_LONGEST_NUMBER = 12

# In the one form that responses have: the library takes braces and other forms as well.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)

_ID_SCHEMA = {"type": "string", "format": "uuid"}
_CURSOR_SCHEMA = {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_-]+$"}
_SLUG_SCHEMA = {
    "type": "string",
    "pattern": SLUG_PATTERN,
    "minLength": SLUG_LENGTH[0],
    "maxLength": SLUG_LENGTH[1],
}
_CODE_SCHEMA = {
    "type": "string",
    "minLength": CODE_LENGTH[0],
    "maxLength": CODE_LENGTH[1],
    "pattern": PRINTABLE_PATTERN,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    parse: Callable[[str], Any]
    """Raises ``FieldError`` for what is not valid."""
    schema: dict[str, Any]
    description: str
    default: Any = None

    @property
    def argument(self) -> str:
        """The name of the handler's argument."""
        return snake_case(self.name)


def read_path(request: Request, parameter: Parameter, faults: list[Fault]) -> Any:
    """Return the value of a path parameter. After a fault the value names nothing."""
    text = request.path_parameter(parameter.name)
    if isinstance(text, Fault):
        faults.append(text)
        return parameter.default
    try:
        return parameter.parse(text)
    except FieldError as error:
        faults.append(Fault(f"/path/{parameter.name}", error.message))
        return text if parameter.default == "" else parameter.default


def read_query(request: Request, declared: Sequence[Parameter], faults: list[Fault]) -> dict[str, Any]:
    """Return the values by argument; a misspelt name is a fault, not a filter that is silently off."""
    values = {parameter.argument: parameter.default for parameter in declared}
    by_name = {parameter.name: parameter for parameter in declared}
    seen: set[str] = set()
    for name, sent in request.query_items():
        try:
            if name in seen:
                raise FieldError("This parameter stands twice.")
            seen.add(name)
            if name not in by_name:
                raise FieldError("There is no parameter of this name here.")
            values[by_name[name].argument] = by_name[name].parse(_as_utf_8(sent))
        except FieldError as error:
            shown = name.encode(errors="backslashreplace").decode()
            faults.append(Fault(f"/query/{shown}", error.message))
    return values


def parse_id(text: str) -> UUID | None:
    return UUID(text) if _ID.fullmatch(text) else None


def _require_id(text: str) -> UUID:
    own_id = parse_id(text)
    if own_id is None:
        raise FieldError("This must be a UUID.")
    return own_id


def _as_utf_8(value: str) -> str:
    if value.isascii():
        return value
    try:
        # A character may have been sent in part percent-encoded and in part as it is.
        return value.encode(errors="surrogateescape").decode()
    except UnicodeDecodeError:
        raise FieldError("This is not UTF-8.") from None


def _parse_limit(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    if is_number and 1 <= int(text) <= LARGEST_LIMIT:
        return int(text)
    raise FieldError(Message("This must be a whole number from 1 to %(most)s.", {"most": LARGEST_LIMIT}))


def _parse_time(text: str) -> datetime:
    # A plus sign that was not percent-encoded arrives as a space.
    time = parse_time(text.replace(" ", "+") if "T" in text else text)
    if time is None:
        raise FieldError(TIME_MESSAGE)
    return time


def _parse_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise FieldError("This must be true or false.")
    return text == "true"


def one_of(name: str, choices: Iterable[str], description: str) -> Parameter:
    choice = OneOf(choices)
    return Parameter(name, choice.parse, choice.schema, description)


def flag(name: str, description: str) -> Parameter:
    return Parameter(name, _parse_flag, {"type": "boolean", "default": False}, description, default=False)


def time_parameter(name: str, description: str) -> Parameter:
    return Parameter(name, _parse_time, {"type": "string", "format": "date-time"}, description)


def id_parameter(name: str, description: str) -> Parameter:
    return Parameter(name, _require_id, _ID_SCHEMA, description)


def text_parameter(name: str, description: str, longest: int = LONGEST_TEXT) -> Parameter:
    def parse(text: str) -> str:
        if 0 < len(text) <= longest and text.isprintable():
            return text
        message = "This must be printable text of 1 to %(most)s characters."
        raise FieldError(Message(message, {"most": longest}))

    schema = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": f"^[^{UNPRINTABLE}]+$"}
    return Parameter(name, parse, schema, description)


def cursor_parameter(codec: CursorCodec[Any], default: Any = None) -> Parameter:
    parse = _cursor_parser(codec, "This is not a cursor that a page has given.")
    return Parameter(
        "cursor",
        parse,
        _CURSOR_SCHEMA,
        "`nextCursor` of the page before; without it, the first page.",
        default,
    )


def feed_cursor(name: str, description: str) -> Parameter:
    parse = _cursor_parser(NUMBER_CURSOR, "This is not a cursor that the feed has given.")
    return Parameter(name, parse, _CURSOR_SCHEMA, description)


def _cursor_parser(codec: CursorCodec[Any], message: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return codec.decode(text)
        except ValueError:
            raise FieldError(message) from None

    return parse


PATH_PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter("slug", checked_by(slug_fault), _SLUG_SCHEMA, "The slug of the project.", ""),
        Parameter(
            "code",
            checked_by(code_fault),
            _CODE_SCHEMA,
            "The unit's code, percent-encoded: `A%2F101` is the code `A/101`.",
            "",
        ),
        Parameter("reference", str, {"type": "string"}, "The booking reference that the buyer sees.", ""),
        Parameter("id", _require_id, _ID_SCHEMA, "The id.", UUID(int=0)),
    )
}

LIMIT = Parameter(
    "limit", _parse_limit,
    {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT},
    "How many at most.", default=DEFAULT_LIMIT,
)  # fmt: skip
CURSOR = cursor_parameter(TEXT_CURSOR, "")
"""Where the page before ended: a code or a slug."""
NUMBER = cursor_parameter(NUMBER_CURSOR)
TIME_AND_NUMBER = cursor_parameter(TIME_AND_NUMBER_CURSOR)
TIME_AND_ID = cursor_parameter(TIME_AND_ID_CURSOR)
STATUS = one_of("status", Status, "Only units in this status.")
BOOKING_STATUS = one_of("status", BookingStatus, "Only bookings in this status.")
DELIVERY_STATUS = one_of("status", DeliveryStatus, "Only deliveries in this status.")
EVENT = one_of("event", SENT_EVENTS, "Only of this event.")
CODE_CLASS = one_of(
    "code", (*CODE_CLASSES, UNANSWERED), "Filter by the class of the last response; `none`: no response."
)
PROJECT = Parameter("project", checked_by(slug_fault), _SLUG_SCHEMA, "Only of the project with this slug.")
UNIT_CODE = Parameter("unitCode", checked_by(code_fault), _CODE_SCHEMA, "Only of units with this code.")
