"""Events: facts that happened to a unit."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from hashlib import sha1
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.status import Status

PING = "ping"
"""The event of the test button. It goes to its endpoint whatever events that selected."""


class EventName(StrEnum):
    HELD = "unit.held"
    RELEASED = "unit.released"
    RESERVED = "unit.reserved"
    SOLD = "unit.sold"
    AVAILABLE = "unit.available"
    UNAVAILABLE = "unit.unavailable"


class UnitEvent(NamedTuple):
    id: UUID
    project_id: UUID
    unit_id: UUID
    unit_version: int
    type: EventName
    previous_status: Status
    status: Status
    booking_reference: str | None
    created_at: datetime
    unit_code: str
    payload: str = ""
    """The JSON that receivers get; set when the event is written."""


def named_uuid(namespace: UUID, name: str) -> UUID:
    """``uuid.uuid5``, which imports its hash function anew at each call."""
    digest = sha1(namespace.bytes + name.encode(), usedforsecurity=False).digest()
    return UUID(bytes=digest[:16], version=5)


def event_id(unit_id: UUID, unit_version: int) -> UUID:
    """The same change always has the same event id, so a repeated write recognizes its own effect."""
    return named_uuid(unit_id, str(unit_version))
