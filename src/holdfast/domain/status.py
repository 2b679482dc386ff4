"""The statuses of a unit."""

from enum import StrEnum
from typing import Literal


class Status(StrEnum):
    AVAILABLE = "available"
    HELD = "held"
    RESERVED = "reserved"
    SOLD = "sold"
    UNAVAILABLE = "unavailable"


LOCKED = frozenset({Status.HELD, Status.RESERVED, Status.SOLD})
"""Statuses that the integration API may not touch."""

SettableStatus = Literal["available", "unavailable"]

ON_SALE = tuple(status for status in Status if status is not Status.UNAVAILABLE)

MID_BOOKING = frozenset({Status.HELD, Status.RESERVED})
"""Statuses in which a buyer is between opening the unit and owning it."""
