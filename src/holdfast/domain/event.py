"""Ids that follow from what they name."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha1
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.domain.status import Status


_NAMED = ~(0xF000 << 64 | 0xC000 << 48)
_VERSION_5 = 0x5000 << 64 | 0x8000 << 48


def id_within(namespace: UUID, name: str) -> UUID:
    """The version 5 UUID of a name. The library's own function imports its hash anew at every call."""
    digest = sha1(namespace.bytes + name.encode(), usedforsecurity=False).digest()
    # Version and variant set here: the class takes twice as long for it.
    return UUID(int=int.from_bytes(digest[:16]) & _NAMED | _VERSION_5)


# Facts that happened to a unit.


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


def event_id(unit_id: UUID, unit_version: int) -> UUID:
    """The same change always has the same event id, so a repeated write recognises its own effect."""
    return id_within(unit_id, str(unit_version))
