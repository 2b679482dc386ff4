"""Times as callers write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

TIME_MESSAGE = "This must be a time such as 2026-11-14T09:30:00.000Z."

# The library passes over a NUL and all that follows it.
_CHARACTERS = re.compile(r"[0-9A-Za-z:.,+-]+")


def read_time(text: str) -> datetime | None:
    """In UTC, which a time without an offset is taken for, and in whole milliseconds, as all are kept."""
    if not _CHARACTERS.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
