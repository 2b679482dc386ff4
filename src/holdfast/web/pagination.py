"""Cursors: opaque text that says where a page ended."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar
from uuid import UUID

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_MOMENT = re.compile(r"([0-9]{1,15})\.([0-9]{1,18})")
"""A time in milliseconds, and a number."""
_MOMENT_AND_ID = re.compile(r"([0-9]{1,15})\.([0-9a-f]{32})")


class Created(Protocol):
    """What is listed by the time of its creation."""

    @property
    def created_at(self) -> datetime: ...

    @property
    def id(self) -> UUID: ...


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


def moment_cursor_text(moment: datetime, number: int) -> str:
    return cursor_text(f"{_milliseconds(moment)}.{number}")


def read_moment_cursor(cursor: str) -> tuple[datetime, int]:
    moment, number = _found(_MOMENT, cursor)
    return _moment(moment), int(number)


def moment_and_id_cursor_text(moment: datetime, own_id: UUID) -> str:
    return cursor_text(f"{_milliseconds(moment)}.{own_id.hex}")


def created_cursor_text(row: Created) -> str:
    return moment_and_id_cursor_text(row.created_at, row.id)


def read_moment_and_id_cursor(cursor: str) -> tuple[datetime, UUID]:
    moment, own_id = _found(_MOMENT_AND_ID, cursor)
    return _moment(moment), UUID(hex=own_id)


def _found(form: re.Pattern[str], cursor: str) -> tuple[str, str]:
    found = form.fullmatch(read_cursor(cursor))
    if found is None:
        raise ValueError(cursor)
    return found[1], found[2]


def _moment(milliseconds: str) -> datetime:
    try:
        return _EPOCH + int(milliseconds) * _MILLISECOND
    except OverflowError as fault:
        raise ValueError(milliseconds) from fault


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


# Keyset pages: one row more than asked for tells whether there is a next page.

T = TypeVar("T")


def split_page(
    rows: Sequence[T], limit: int, cursor_of: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """Return the rows of the page, and the cursor of the next one, if there is any."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_of(rows[limit - 1])
