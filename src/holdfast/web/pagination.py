"""Pages of lists. A cursor is opaque text that says where a page ended."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID

T = TypeVar("T")
Row = TypeVar("Row")

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
LARGEST_NUMBER = 10**18
"""No position in a list is as large."""


class CursorCodec(Generic[T]):
    """Writes positions of one form as cursors, and reads them back: a value, or a tuple of values."""

    def __init__(self, *kinds: type) -> None:
        self._kinds = kinds

    def encode(self, position: T) -> str:
        """Write a position with a checksum, so that a cursor cut short is not taken for another place."""
        values: Any = position if len(self._kinds) > 1 else (position,)
        raw = ".".join(map(_text, values)).encode()
        return base64.urlsafe_b64encode(zlib.crc32(raw).to_bytes(4) + raw).rstrip(b"=").decode()

    def decode(self, cursor: str) -> T:
        """Raises ValueError for all but the exact text that ``encode`` makes."""
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[4:].decode()
        parts = text.split(".") if len(self._kinds) > 1 else [text]
        values = [_value(kind, part) for kind, part in zip(self._kinds, parts, strict=True)]
        position: Any = tuple(values) if len(values) > 1 else values[0]
        if not text or "\x00" in text or self.encode(position) != cursor:
            raise ValueError(cursor)
        return position  # type: ignore[no-any-return]


TEXT_CURSOR: CursorCodec[str] = CursorCodec(str)
NUMBER_CURSOR: CursorCodec[int] = CursorCodec(int)
TIME_AND_NUMBER_CURSOR: CursorCodec[tuple[datetime, int]] = CursorCodec(datetime, int)
TIME_AND_ID_CURSOR: CursorCodec[tuple[datetime, UUID]] = CursorCodec(datetime, UUID)


def creation_cursor(row: Any) -> str:
    """Return the cursor of a row in a list that is ordered by the time of creation."""
    return TIME_AND_ID_CURSOR.encode((row.created_at, row.id))


def paginate(
    rows: Sequence[Row], limit: int, cursor_of: Callable[[Row], str]
) -> tuple[Sequence[Row], str | None]:
    """Return the page, and the cursor of the next one if ``rows`` has one row more than ``limit``."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_of(rows[limit - 1])


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return str((value - _EPOCH) // _MILLISECOND)
    return value.hex if isinstance(value, UUID) else str(value)


def _value(kind: type, text: str) -> Any:
    if kind is str:
        return text
    if kind is UUID:
        return UUID(hex=text)
    number = int(text)
    if not 0 <= number < LARGEST_NUMBER:
        raise ValueError(text)
    if kind is int:
        return number
    try:
        return _EPOCH + number * _MILLISECOND
    except OverflowError as error:
        raise ValueError(text) from error
