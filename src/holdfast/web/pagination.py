"""Keyset pages: one row more than asked for tells whether there is a next page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def split_page(
    rows: Sequence[T], limit: int, cursor_of: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """Return the rows of the page, and the cursor of the next one, if there is any."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_of(rows[limit - 1])
