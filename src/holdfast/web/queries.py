"""Query parameters: each is checked, and a misspelt one is a fault, not a filter that is silently off."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import DeliveryStatus
from holdfast.domain.endpoint import PING
from holdfast.domain.event import EventName
from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.project import slug_fault
from holdfast.domain.refusals import Fault
from holdfast.domain.status import Status
from holdfast.domain.unit import code_fault
from holdfast.web.call import Call
from holdfast.web.cursors import read_cursor, read_moment_and_id_cursor, read_moment_cursor
from holdfast.web.times import TIME_MESSAGE, read_time

LARGEST_LIMIT = 1000
DEFAULT_LIMIT = 100
_LONGEST_POSITION = 18
LAST_POSITION = 10**_LONGEST_POSITION
"""Beyond the end of every list that is read from its end."""
_LONGEST_NUMBER = 12
LONGEST_TEXT = 254
UNANSWERED = "none"
CODE_CLASSES = {f"{first}xx": first for first in range(1, 6)}
ID_MESSAGE = "This must be a UUID."
_NOT_OF_A_PAGE = "This is not a cursor that a page has given."

T = TypeVar("T")

# In the one form that answers have: the library takes braces and other forms as well.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


class Query:
    """Reads parameters one by one and keeps the faults; ``finish`` finds those nobody asked for."""

    def __init__(self, call: Call, faults: list[Fault]) -> None:
        self._faults = faults
        self._values: dict[str, str | None] = {}
        self._read: set[str] = set()
        for name, value in call.query_items():
            if name in self._values:
                self._refuse(name, "This parameter stands twice.")
            self._values[name] = self._readable(name, value)

    def limit(self) -> int:
        text = self._take("limit")
        if text is None:
            return DEFAULT_LIMIT
        if (
            text.isascii()
            and text.isdigit()
            and len(text) <= _LONGEST_NUMBER
            and 1 <= int(text) <= LARGEST_LIMIT
        ):
            return int(text)
        self._refuse(
            "limit", Message("This must be a whole number from 1 to %(most)s.", {"most": LARGEST_LIMIT})
        )
        return DEFAULT_LIMIT

    def status(self, shown: Sequence[Status] = tuple(Status)) -> Status | None:
        """``shown``: those that the list has."""
        text = self._one_of("status", shown)
        return None if text is None else Status(text)

    def booking_status(self) -> BookingStatus | None:
        text = self._one_of("status", tuple(BookingStatus))
        return None if text is None else BookingStatus(text)

    def delivery_status(self) -> DeliveryStatus | None:
        text = self._one_of("status", tuple(DeliveryStatus))
        return None if text is None else DeliveryStatus(text)

    def event(self) -> str | None:
        return self._one_of("event", (*EventName, PING))

    def code_class(self) -> str | None:
        """Of the receiver's answers: a name of ``CODE_CLASSES``, or ``UNANSWERED``."""
        return self._one_of("code", (*CODE_CLASSES, UNANSWERED))

    def id(self, name: str) -> UUID | None:
        text = self._take(name)
        found = None if text is None else read_id(text)
        if text is not None and found is None:
            self._refuse(name, ID_MESSAGE)
        return found

    def slug(self, name: str) -> str | None:
        return self._checked_text(name, slug_fault)

    def code(self, name: str) -> str | None:
        return self._checked_text(name, code_fault)

    def text(self, name: str, longest: int = LONGEST_TEXT) -> str | None:
        text = self._take(name)
        if text is None or (0 < len(text) <= longest and text.isprintable()):
            return text
        message = "This must be printable text of 1 to %(most)s characters."
        self._refuse(name, Message(message, {"most": longest}))
        return None

    def time(self, name: str) -> datetime | None:
        text = self._take(name)
        if text is None:
            return None
        # A plus sign that was not percent-encoded arrives as a space.
        moment = read_time(text.replace(" ", "+") if "T" in text else text)
        if moment is None:
            self._refuse(name, TIME_MESSAGE)
        return moment

    def flag(self, name: str) -> bool:
        text = self._take(name)
        if text not in (None, "true", "false"):
            self._refuse(name, "This must be true or false.")
        return text == "true"

    def text_cursor(self) -> str:
        """Where the page before ended: a code or a slug. Empty at the start."""
        return self._cursor(read_cursor) or ""

    def position(self, name: str) -> int | None:
        text = self._take(name)
        if text is None:
            return None
        try:
            position = read_cursor(text)
        except ValueError:
            position = ""
        if position.isascii() and position.isdigit() and len(position) <= _LONGEST_POSITION:
            return int(position)
        self._refuse(
            name, _NOT_OF_A_PAGE if name == "cursor" else "This is not a cursor that the feed has given."
        )
        return None

    def moment_cursor(self) -> tuple[datetime, int] | None:
        """Where the page before ended, for what is listed by time."""
        return self._cursor(read_moment_cursor)

    def moment_and_id_cursor(self) -> tuple[datetime, UUID] | None:
        return self._cursor(read_moment_and_id_cursor)

    def finish(self) -> None:
        for name in self._values.keys() - self._read:
            self._refuse(name, "There is no parameter of this name here.")

    def _cursor(self, read: Callable[[str], T]) -> T | None:
        text = self._take("cursor")
        if text is None:
            return None
        try:
            return read(text)
        except ValueError:
            self._refuse("cursor", _NOT_OF_A_PAGE)
            return None

    def _one_of(self, name: str, choices: Sequence[str]) -> str | None:
        text = self._take(name)
        if text is None or text in choices:
            return text
        self._refuse(name, Message("This must be one of %(choices)s.", {"choices": ", ".join(choices)}))
        return None

    def _checked_text(self, name: str, fault_of: Callable[[str, str], Fault | None]) -> str | None:
        text = self._take(name)
        fault = None if text is None else fault_of(text, f"/query/{name}")
        if fault is not None:
            self._faults.append(fault)
        return text

    def _readable(self, name: str, value: str) -> str | None:
        if value.isascii():
            return value
        try:
            # A character may have been sent in part percent-encoded and in part as it is.
            return value.encode(errors="surrogateescape").decode()
        except UnicodeDecodeError:
            self._refuse(name, "This is not UTF-8.")
            return None

    def _take(self, name: str) -> str | None:
        self._read.add(name)
        return self._values.get(name)

    def _refuse(self, name: str, message: AnyMessage) -> None:
        shown = name.encode(errors="backslashreplace").decode()
        self._faults.append(Fault(f"/query/{shown}", message))


def refuse_query(call: Call, faults: list[Fault]) -> None:
    """For a route that takes no parameters."""
    if call.has_query:
        Query(call, faults).finish()


def read_id(text: str) -> UUID | None:
    return UUID(text) if _ID.fullmatch(text) else None
