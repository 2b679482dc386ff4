"""Entries of the history, read for people: who did what, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.operations.units import Recorded
from holdfast.web.backoffice.pages.differences import Difference, between, values_of


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
    before = None if entry.before is None else values_of(entry.before)
    after = values_of(entry.after)
    return Told(
        entry.at,
        entry.actor_kind,
        entry.key_name or entry.actor_id,
        entry.action,
        entry.booking_reference,
        before is None,
        between(before or {}, after),
        entry.request_id,
    )
