"""Path and query parameters: how each is read, what is said of a wrong one, and its JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS
from holdfast.domain.errors import Fault, raise_faults
from holdfast.domain.message import AnyMessage, Message, MessageError
from holdfast.domain.project import SLUG_LENGTH, SLUG_PATTERN, slug_fault
from holdfast.domain.spelling import snake_case
from holdfast.domain.status import Status
from holdfast.domain.unit import CODE_LENGTH, code_fault
from holdfast.web.api.fields import PRINTABLE_PATTERN, UNPRINTABLE
from holdfast.web.fields import TIME_MESSAGE, read_time
from holdfast.web.pagination import read_cursor, read_moment_and_id_cursor, read_moment_cursor
from holdfast.web.request import Request

LARGEST_LIMIT = 1000
DEFAULT_LIMIT = 100
LONGEST_TEXT = 254
UNANSWERED = "none"
CODE_CLASSES = {f"{first}xx": first for first in range(1, 6)}
ID_MESSAGE = "This must be a UUID."
_NOT_OF_A_PAGE = "This is not a cursor that a page has given."
_NOT_OF_THE_FEED = "This is not a cursor that the feed has given."
_LONGEST_POSITION = 18
LAST_POSITION = 10**_LONGEST_POSITION
"""Beyond the end of every list that is read from its end."""
_LONGEST_NUMBER = 12
_NO_ID = UUID(int=0)

T = TypeVar("T")

# In the one form that answers have: the library takes braces and other forms as well.
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
class PathParameter:
    name: str
    parse: Callable[[str], Any]
    """Returns the value, or the fault."""
    schema: dict[str, Any]
    description: str

    def read(self, request: Request, faults: list[Fault]) -> Any:
        """Return the value; where there is a fault, one that names nothing."""
        text = request.path_parameter(self.name)
        if isinstance(text, Fault):
            faults.append(text)
            text = ""
        value = self.parse(text)
        if isinstance(value, Fault):
            if not faults or faults[-1].pointer != value.pointer:
                faults.append(value)
            return _NO_ID if self.name == "id" else text
        return value


def _read_slug(text: str) -> str | Fault:
    return slug_fault(text) or text


def _read_code(text: str) -> str | Fault:
    return code_fault(text) or text


def _read_path_id(text: str) -> UUID | Fault:
    return read_id(text) or Fault("/path/id", ID_MESSAGE)


PATH_PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        PathParameter("slug", _read_slug, _SLUG_SCHEMA, "The slug of the project."),
        PathParameter(
            "code",
            _read_code,
            _CODE_SCHEMA,
            "The unit's code, percent-encoded: `A%2F101` is the code `A/101`.",
        ),
        PathParameter("reference", str, {"type": "string"}, "The booking reference that the buyer sees."),
        PathParameter("id", _read_path_id, _ID_SCHEMA, "The id."),
    )
}


class ParameterFault(MessageError, ValueError):
    """What is wrong with a parameter."""


@dataclass(frozen=True, slots=True)
class QueryParameter:
    name: str
    parse: Callable[[str], Any]
    """Raises ``ParameterFault`` with what is wrong."""
    schema: dict[str, Any]
    description: str
    default: Any = None

    @property
    def argument(self) -> str:
        """Under this name its handler gets it."""
        return snake_case(self.name)


def read_query(request: Request, declared: Sequence[QueryParameter], faults: list[Fault]) -> dict[str, Any]:
    """Return the values by argument; a misspelt name is a fault, not a filter that is silently off."""
    values = {parameter.argument: parameter.default for parameter in declared}
    by_name = {parameter.name: parameter for parameter in declared}
    seen: set[str] = set()
    for name, sent in request.query_items():
        if name in seen:
            _refuse(faults, name, "This parameter stands twice.")
            continue
        seen.add(name)
        parameter = by_name.get(name)
        if parameter is None:
            _refuse(faults, name, "There is no parameter of this name here.")
            continue
        try:
            values[parameter.argument] = parameter.parse(_readable(sent))
        except ParameterFault as fault:
            _refuse(faults, name, fault.message)
    return values


def refuse_query(request: Request, faults: list[Fault]) -> None:
    """For a route that takes no parameters."""
    read_query(request, (), faults)


def read_id(text: str) -> UUID | None:
    return UUID(text) if _ID.fullmatch(text) else None


def _refuse(faults: list[Fault], name: str, message: AnyMessage) -> None:
    shown = name.encode(errors="backslashreplace").decode()
    faults.append(Fault(f"/query/{shown}", message))


def _readable(value: str) -> str:
    if value.isascii():
        return value
    try:
        # A character may have been sent in part percent-encoded and in part as it is.
        return value.encode(errors="surrogateescape").decode()
    except UnicodeDecodeError:
        raise ParameterFault("This is not UTF-8.") from None


def _read_limit(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    if is_number and 1 <= int(text) <= LARGEST_LIMIT:
        return int(text)
    raise ParameterFault(Message("This must be a whole number from 1 to %(most)s.", {"most": LARGEST_LIMIT}))


def _read_query_id(text: str) -> UUID:
    found = read_id(text)
    if found is None:
        raise ParameterFault(ID_MESSAGE)
    return found


def _read_time(text: str) -> datetime:
    # A plus sign that was not percent-encoded arrives as a space.
    moment = read_time(text.replace(" ", "+") if "T" in text else text)
    if moment is None:
        raise ParameterFault(TIME_MESSAGE)
    return moment


def _read_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ParameterFault("This must be true or false.")
    return text == "true"


def _reading_text(longest: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if 0 < len(text) <= longest and text.isprintable():
            return text
        message = "This must be printable text of 1 to %(most)s characters."
        raise ParameterFault(Message(message, {"most": longest}))

    return parse


def _reading_cursor(read: Callable[[str], T], message: str = _NOT_OF_A_PAGE) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            return read(text)
        except ValueError:
            raise ParameterFault(message) from None

    return parse


def _read_position(text: str) -> int:
    position = read_cursor(text)
    if position.isascii() and position.isdigit() and len(position) <= _LONGEST_POSITION:
        return int(position)
    raise ValueError(text)


def _checking(fault_of: Callable[[str, str], Fault | None]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        fault = fault_of(text, "")
        if fault is not None:
            raise ParameterFault(fault.message)
        return text

    return parse


def one_of(
    name: str, choices: Iterable[str], description: str, kind: Callable[[str], Any] = str
) -> QueryParameter:
    names = [str(choice) for choice in choices]

    def parse(text: str) -> Any:
        if text not in names:
            raise ParameterFault(Message("This must be one of %(choices)s.", {"choices": ", ".join(names)}))
        return kind(text)

    return QueryParameter(name, parse, {"type": "string", "enum": names}, description)


def flag(name: str, description: str) -> QueryParameter:
    return QueryParameter(name, _read_flag, {"type": "boolean", "default": False}, description, default=False)


def time(name: str, description: str) -> QueryParameter:
    return QueryParameter(name, _read_time, {"type": "string", "format": "date-time"}, description)


def query_id(name: str, description: str) -> QueryParameter:
    return QueryParameter(name, _read_query_id, _ID_SCHEMA, description)


def text(name: str, description: str, longest: int = LONGEST_TEXT) -> QueryParameter:
    schema = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": f"^[^{UNPRINTABLE}]+$"}
    return QueryParameter(name, _reading_text(longest), schema, description)


def feed_position(name: str, description: str) -> QueryParameter:
    return QueryParameter(
        name, _reading_cursor(_read_position, _NOT_OF_THE_FEED), _CURSOR_SCHEMA, description
    )


LIMIT = QueryParameter(
    "limit", _read_limit,
    {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT},
    "How many at most.", default=DEFAULT_LIMIT,
)  # fmt: skip
CURSOR = QueryParameter(
    "cursor", _reading_cursor(read_cursor), _CURSOR_SCHEMA,
    "`nextCursor` of the page before; without it, the first page.", default="",
)  # fmt: skip
"""Where the page before ended: a code or a slug."""
MOMENT_CURSOR = replace(CURSOR, parse=_reading_cursor(read_moment_cursor), default=None)
"""For what is listed by time."""
MOMENT_AND_ID_CURSOR = replace(CURSOR, parse=_reading_cursor(read_moment_and_id_cursor), default=None)
POSITION_CURSOR = replace(CURSOR, parse=_reading_cursor(_read_position), default=None)
STATUS = one_of("status", Status, "Only units in this status.", Status)
BOOKING_STATUS = one_of("status", BookingStatus, "Only bookings in this status.", BookingStatus)
DELIVERY_STATUS = one_of("status", DeliveryStatus, "Only deliveries in this status.", DeliveryStatus)
EVENT = one_of("event", SENT_EVENTS, "Only of this event.")
CODE_CLASS = one_of(
    "code", (*CODE_CLASSES, UNANSWERED), "Filter by the class of the last response; `none`: no response."
)
PROJECT = QueryParameter(
    "project", _checking(slug_fault), _SLUG_SCHEMA, "Only of the project with this slug."
)
UNIT_CODE = QueryParameter("unitCode", _checking(code_fault), _CODE_SCHEMA, "Only of units with this code.")


# Path parameters of pages.


def slug_in_path(request: Request) -> str:
    slug: str = _in_path(request, "slug")
    return slug


def unit_in_path(request: Request) -> tuple[str, str]:
    """Return the slug of the project and the code of the unit."""
    return slug_in_path(request), _in_path(request, "code")


def reference_in_path(request: Request) -> str:
    """Return the reference as it was typed."""
    reference: str = _in_path(request, "reference")
    return reference


def id_in_path(request: Request) -> UUID:
    own_id: UUID = _in_path(request, "id")
    return own_id


def _in_path(request: Request, name: str) -> Any:
    faults: list[Fault] = []
    value = PATH_PARAMETERS[name].read(request, faults)
    raise_faults(faults)
    return value
