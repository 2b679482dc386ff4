"""What the audit trail keeps of a change, read for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from holdfast.operations.units import Recorded
from holdfast.web.fields import parse_time

_LONGEST_TEXT = 280
_TIMES = frozenset(
    {"holdExpiresAt", "reservedUntil", "expiresAt", "revokedAt", "disabledAt", "since", "until"}
)


class Difference(NamedTuple):
    name: str
    before: Any
    after: Any


def values_of(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return values


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Without what stands on both sides for the sake of its name alone. Long texts are compared whole."""
    names = dict.fromkeys([*before, *after])
    return [
        Difference(name, _shown(name, before.get(name)), _shown(name, after.get(name)))
        for name in names
        if name not in before or name not in after or before[name] != after[name]
    ]


def _shown(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, str):
        return parse_time(value)
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return value[:_LONGEST_TEXT] + "…"
    return value


# Entries of the history, read for people: who did what, and what differs.


class HistoryLine(NamedTuple):
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


def history_lines(entry: Recorded) -> HistoryLine:
    before = None if entry.before is None else values_of(entry.before)
    after = values_of(entry.after)
    return HistoryLine(
        entry.at,
        entry.actor_kind,
        entry.key_name or entry.actor_id,
        entry.action,
        entry.booking_reference,
        before is None,
        between(before or {}, after),
        entry.request_id,
    )
