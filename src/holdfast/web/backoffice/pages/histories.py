"""Entries of the history, read for people: who did what, and what differs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from holdfast.operations.staff_units import Recorded
from holdfast.web.times import read_time

_TIMES = frozenset({"holdExpiresAt", "reservedUntil"})
_LONGEST_TEXT = 280


class Difference(NamedTuple):
    name: str
    before: Any
    after: Any


class Told(NamedTuple):
    at: datetime
    actor_kind: str
    actor: str | None
    """The address of staff, the name of a key, the reference of the buyer's booking."""
    action: str
    booking_reference: str | None
    is_first: bool
    """Nothing was there before it."""
    differences: Sequence[Difference]
    request_id: str | None


def told(entry: Recorded) -> Told:
    before = None if entry.before is None else _read(entry.before)
    after = _read(entry.after)
    names = list(dict.fromkeys([*(before or {}), *after]))
    return Told(
        entry.at,
        entry.actor_kind,
        entry.key_name or entry.actor_id,
        entry.action,
        entry.booking_reference,
        before is None,
        [Difference(name, (before or {}).get(name), after.get(name)) for name in names],
        entry.request_id,
    )


def _read(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, str):
        return read_time(value)
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return value[:_LONGEST_TEXT] + "…"
    return value
