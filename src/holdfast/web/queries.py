"""Query parameters: each is checked, and a misspelt one is a fault, not a filter that is silently off."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from holdfast.domain.booking import BookingStatus
from holdfast.domain.project import slug_fault
from holdfast.domain.refusals import Fault
from holdfast.domain.status import Status
from holdfast.domain.unit import code_fault
from holdfast.web.call import Call
from holdfast.web.times import TIME_MESSAGE, read_time

LARGEST_LIMIT = 1000
DEFAULT_LIMIT = 100
_LONGEST_POSITION = 18
LAST_POSITION = 10**_LONGEST_POSITION
"""Beyond the end of every list that is read from its end."""
_LONGEST_NUMBER = 12
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_MOMENT = re.compile(r"([0-9]{1,15})\.([0-9]{1,18})")
"""A time in milliseconds, and a number."""


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
        self._refuse("limit", f"This must be a whole number from 1 to {LARGEST_LIMIT}.")
        return DEFAULT_LIMIT

    def status(self, shown: Sequence[Status] = tuple(Status)) -> Status | None:
        """``shown``: those that the list has."""
        text = self._take("status")
        if text is None or text in shown:
            return None if text is None else Status(text)
        self._refuse("status", f"This must be one of {', '.join(shown)}.")
        return None

    def booking_status(self) -> BookingStatus | None:
        text = self._take("status")
        if text is None or text in tuple(BookingStatus):
            return None if text is None else BookingStatus(text)
        self._refuse("status", f"This must be one of {', '.join(BookingStatus)}.")
        return None

    def slug(self, name: str) -> str | None:
        return self._checked_text(name, slug_fault)

    def code(self, name: str) -> str | None:
        return self._checked_text(name, code_fault)

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
        text = self._take("cursor")
        if text is None:
            return ""
        try:
            return read_cursor(text)
        except ValueError:
            self._refuse("cursor", "This is not a cursor that a page has given.")
            return ""

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
        giver = "a page" if name == "cursor" else "the feed"
        self._refuse(name, f"This is not a cursor that {giver} has given.")
        return None

    def moment_cursor(self) -> tuple[datetime, int] | None:
        """Where the page before ended, for what is listed by time."""
        text = self._take("cursor")
        if text is None:
            return None
        try:
            return _moment_in(read_cursor(text))
        except (ValueError, OverflowError):
            self._refuse("cursor", "This is not a cursor that a page has given.")
            return None

    def finish(self) -> None:
        for name in self._values.keys() - self._read:
            self._refuse(name, "There is no parameter of this name here.")

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

    def _refuse(self, name: str, message: str) -> None:
        shown = name.encode(errors="backslashreplace").decode()
        self._faults.append(Fault(f"/query/{shown}", message))


def refuse_query(call: Call, faults: list[Fault]) -> None:
    """For a route that takes no parameters."""
    if call.has_query:
        Query(call, faults).finish()


def _moment_in(position: str) -> tuple[datetime, int]:
    found = _MOMENT.fullmatch(position)
    if found is None:
        raise ValueError(position)
    return _EPOCH + int(found[1]) * _MILLISECOND, int(found[2])


def moment_cursor_text(moment: datetime, number: int) -> str:
    return cursor_text(f"{(moment - _EPOCH) // _MILLISECOND}.{number}")


def cursor_text(position: str) -> str:
    """Where a page ended, with a checksum, so that a cursor cut short is not taken for another place."""
    raw = position.encode()
    return base64.urlsafe_b64encode(zlib.crc32(raw).to_bytes(4) + raw).rstrip(b"=").decode()


def read_cursor(cursor: str) -> str:
    """Only the exact text that ``cursor_text`` makes is taken back."""
    try:
        position = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[4:].decode()
    except (binascii.Error, UnicodeError) as fault:
        raise ValueError from fault
    if not position or "\x00" in position or cursor_text(position) != cursor:
        raise ValueError
    return position
