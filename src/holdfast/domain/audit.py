"""Audit entries: one for every change, stored in its transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID


class ActorKind(StrEnum):
    KEY = "key"
    STAFF = "staff"
    BUYER = "buyer"
    CLOCK = "clock"
    PAYMENT = "payment"
    """The payment system, by its signature."""
    COMMAND = "command"
    """Somebody at the console of the server."""


class Author(NamedTuple):
    kind: ActorKind
    id: str | None = None
    """Of the key or the payment, the reference of the buyer's booking, the e-mail address of staff."""
    request_id: str | None = None


CLOCK = Author(ActorKind.CLOCK)
COMMAND = Author(ActorKind.COMMAND)


class Change(NamedTuple):
    """The fields that differ, before and after. ``before`` is None for something new."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any]

    @classmethod
    def between(cls, before: Any, after: Any, fields: Iterable[str]) -> Change:
        """Compare two records in these fields. Whole numbers are written without a point."""
        names = [name for name in fields if getattr(before, name) != getattr(after, name)]
        old, new = ({name: _as_sent(getattr(one, name)) for name in names} for one in (before, after))
        return cls(old, new)


def _as_sent(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class AuditEntry(NamedTuple):
    subject_id: UUID
    """The unit, the project, or the endpoint."""
    project_id: UUID | None
    at: datetime
    author: Author
    action: str
    booking_reference: str | None
    change: Change
