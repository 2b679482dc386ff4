"""Moments that browsers are told and send back: up to when a page that goes on has been told everything."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.web.html.forms import Form
from holdfast.web.request import Request

_LONGEST_NUMBER = 18


def told_until(request: Request, sent: Form) -> datetime | None:
    """Up to when the browser has been told: by itself, or by the page that it shows."""
    last = request.header_values.get(b"last-event-id", b"").decode("latin-1")
    moment = whole_number(last) or whole_number(sent.text("since"))
    try:
        return None if moment is None else datetime.fromtimestamp(moment / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def whole_number(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else None


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
