"""Every condition that a unit can be in, and what is watched while it stays in one."""

from collections.abc import Callable
from enum import StrEnum

from holdfast.domain.status import Status

Watch = Callable[[], tuple[str, list[str], int]]
"""All that a change of the unit leaves: its ETag, the types of its events, the length of its history."""


class Condition(StrEnum):
    AVAILABLE = "available"
    HELD = "held"
    SIGNED = "signed"
    RESERVED = "reserved"
    SOLD = "sold"
    UNAVAILABLE = "unavailable"
    ARCHIVED = "archived"

    @property
    def status(self) -> Status:
        special = {Condition.SIGNED: Status.HELD, Condition.ARCHIVED: Status.UNAVAILABLE}
        return special.get(self) or Status(self)


BOOKED = (Condition.HELD, Condition.SIGNED, Condition.RESERVED, Condition.SOLD)
