"""Path and query parameters: how each is parsed, and its JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from pydantic import TypeAdapter

from holdfast.domain.errors import Fault, Message, UnknownBooking, UnknownProject
from holdfast.domain.layout import FLOORS
from holdfast.domain.project import slug_fault
from holdfast.domain.status import Status
from holdfast.domain.unit import code_fault
from holdfast.domain.wire_format import snake_case
from holdfast.web import fields, pagination
from holdfast.web.request import Request

LARGEST_LIMIT = 1000
DEFAULT_LIMIT = 100
LONGEST_TEXT = 254
UNANSWERED = "none"
CODE_CLASSES = {f"{first}xx": first for first in range(1, 6)}
_WHOLE_NUMBER = re.compile("-?[0-9]{1,12}")

# In the one form that responses have: the library takes braces and other forms as well.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)

_ID_SCHEMA = {"type": "string", "format": "uuid"}
_CURSOR_SCHEMA = {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_-]+$"}
_SLUG_SCHEMA = TypeAdapter(fields.Slug).json_schema()
_CODE_SCHEMA = TypeAdapter(fields.Code).json_schema() | {"pattern": fields.PRINTABLE_PATTERN}


@dataclass(frozen=True, slots=True)
class Parameter:
    parse: Callable[[str], Any]
    """Raises ``fields.FieldError`` for what is not valid."""
    schema: dict[str, Any]
    description: str
    default: Any = None
    error: type[Exception] | None = None
    """Raised if a path names nothing that exists."""
    name: str = ""
    """Of a query parameter, that of the handler's argument in camelCase."""


def read_path(request: Request, parameter: Parameter, faults: list[Fault]) -> Any:
    """Return the value of a path parameter. After a fault the value names nothing."""
    text = request.path_parameter(parameter.name)
    if isinstance(text, Fault):
        faults.append(text)
        return parameter.default
    try:
        return parameter.parse(text)
    except fields.FieldError as error:
        faults.append(Fault(f"/path/{parameter.name}", error.message))
        return text if parameter.default == "" else parameter.default


def read_query(request: Request, declared: Sequence[Parameter], faults: list[Fault]) -> dict[str, Any]:
    """Return the values by argument; a misspelled name is a fault, not a filter that is silently off."""
    values = {snake_case(parameter.name): parameter.default for parameter in declared}
    by_name = {parameter.name: parameter for parameter in declared}
    seen: set[str] = set()
    for name, sent in request.query_items():
        try:
            if name in seen:
                raise fields.FieldError("This parameter is given twice.")
            seen.add(name)
            if name not in by_name:
                raise fields.FieldError("There is no parameter with this name.")
            values[snake_case(name)] = by_name[name].parse(_as_utf_8(sent))
        except fields.FieldError as error:
            shown = name.encode(errors="backslashreplace").decode()
            faults.append(Fault(f"/query/{shown}", error.message))
    return values


def parse_id(text: str) -> UUID | None:
    return UUID(text) if _ID.fullmatch(text) else None


def _require_id(text: str) -> UUID:
    own_id = parse_id(text)
    if own_id is None:
        raise fields.FieldError("This must be a UUID.")
    return own_id


def _as_utf_8(value: str) -> str:
    if value.isascii():
        return value
    try:
        # A character may have been sent in part percent-encoded and in part as it is.
        return value.encode(errors="surrogateescape").decode()
    except UnicodeDecodeError:
        raise fields.FieldError("This is not UTF-8.") from None


def _parse_whole_number(least: int, most: int, text: str) -> int:
    if _WHOLE_NUMBER.fullmatch(text) and least <= int(text) <= most:
        return int(text)
    message = "This must be a whole number from %(least)s to %(most)s."
    raise fields.FieldError(Message(message, {"least": least, "most": most}))


def _parse_time(text: str) -> datetime:
    # A plus sign that was not percent-encoded arrives as a space.
    time = fields.parse_time(text.replace(" ", "+") if "T" in text else text)
    if time is None:
        raise fields.FieldError(fields.TIME_MESSAGE)
    return time


def _parse_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise fields.FieldError("This must be true or false.")
    return text == "true"


def one_of(choices: Iterable[str], description: str) -> Parameter:
    choice = fields.OneOf(choices)
    return Parameter(choice.parse, choice.schema, description)


def flag(description: str) -> Parameter:
    return Parameter(_parse_flag, {"type": "boolean", "default": False}, description, default=False)


def time_parameter(description: str) -> Parameter:
    return Parameter(_parse_time, {"type": "string", "format": "date-time"}, description)


def id_parameter(description: str) -> Parameter:
    return Parameter(_require_id, _ID_SCHEMA, description)


def text_parameter(description: str, longest: int = LONGEST_TEXT) -> Parameter:
    def parse(text: str) -> str:
        if 0 < len(text) <= longest and text.isprintable():
            return text
        message = "This must be printable text of 1 to %(most)s characters."
        raise fields.FieldError(Message(message, {"most": longest}))

    schema = {
        "type": "string",
        "minLength": 1,
        "maxLength": longest,
        "pattern": f"^[^{fields.UNPRINTABLE}]+$",
    }
    return Parameter(parse, schema, description)


def cursor_parameter(codec: pagination.CursorCodec[Any], default: Any = None) -> Parameter:
    parse = partial(_parse_cursor, codec, "This is not a valid cursor.")
    return Parameter(
        parse, _CURSOR_SCHEMA, "`nextCursor` of the page before; without it, the first page.", default
    )


def feed_cursor(description: str) -> Parameter:
    parse = partial(_parse_cursor, pagination.NUMBER_CURSOR, "This is not a valid cursor of the event feed.")
    return Parameter(parse, _CURSOR_SCHEMA, description)


def _parse_cursor(codec: pagination.CursorCodec[Any], message: str, text: str) -> Any:
    try:
        return codec.decode(text)
    except ValueError:
        raise fields.FieldError(message) from None


PATH_PARAMETERS = {
    "slug": Parameter(
        fields.checked_by(slug_fault), _SLUG_SCHEMA, "The slug of the project.", "", UnknownProject
    ),
    "code": Parameter(
        fields.checked_by(code_fault),
        _CODE_SCHEMA,
        "The unit's code, percent-encoded: `A%2F101` is the code `A/101`.",
        "",
    ),
    "reference": Parameter(
        str, {"type": "string"}, "The booking reference that the buyer sees.", "", UnknownBooking
    ),
    "id": Parameter(_require_id, _ID_SCHEMA, "The id.", UUID(int=0)),
}
PATH_PARAMETERS = {name: replace(parameter, name=name) for name, parameter in PATH_PARAMETERS.items()}

# Query parameters that several operations have, as types of their arguments.
Limit = Annotated[
    int,
    Parameter(
        partial(_parse_whole_number, 1, LARGEST_LIMIT),
        {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT},
        "How many at most.",
        DEFAULT_LIMIT,
    ),
]
TextCursor = Annotated[str, cursor_parameter(pagination.TEXT_CURSOR, "")]
NumberCursor = Annotated[int | None, cursor_parameter(pagination.NUMBER_CURSOR)]
TimeAndNumberCursor = Annotated[
    tuple[datetime, int] | None, cursor_parameter(pagination.TIME_AND_NUMBER_CURSOR)
]
TimeAndIdCursor = Annotated[tuple[datetime, UUID] | None, cursor_parameter(pagination.TIME_AND_ID_CURSOR)]
UnitStatusFilter = Annotated[Status | None, one_of(Status, "Only units in this status.")]
FloorFilter = Annotated[
    int | None,
    Parameter(
        partial(_parse_whole_number, *FLOORS),
        {"type": "integer", "minimum": FLOORS[0], "maximum": FLOORS[1]},
        "Only units with this `floor`.",
    ),
]
ProjectFilter = Annotated[
    str | None, Parameter(fields.checked_by(slug_fault), _SLUG_SCHEMA, "Only of the project with this slug.")
]
UnitCodeFilter = Annotated[
    str | None, Parameter(fields.checked_by(code_fault), _CODE_SCHEMA, "Only of units with this code.")
]
