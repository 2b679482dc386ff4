"""Every condition that a unit can be in, each brought about as buyers and staff bring it about."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import httpx

from holdfast.domain.status import Status
from tests.support.backoffice import Desk, Held, hold, hold_and_sign
from tests.support.client import Unit

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


@dataclass(frozen=True)
class Office:
    """Staff and a buyer who work together."""

    desk: Desk
    public: httpx.Client

    def bring(self, unit: Unit, condition: Condition) -> Held | None:
        """From available; the buyer's side of it, if there is a buyer."""
        if condition in BOOKED:
            return self.book(unit, condition)
        if condition is Condition.UNAVAILABLE:
            self.desk.did(unit, "take-off-sale")
        elif condition is Condition.ARCHIVED:
            self.desk.did(unit, "archive")
        return None

    def book(self, unit: Unit, condition: Condition) -> Held:
        ways = {"held": self.held, "signed": self.signed, "reserved": self.reserved, "sold": self.sold}
        return ways[condition](unit)

    def held(self, unit: Unit) -> Held:
        return hold(self.public, unit)

    def signed(self, unit: Unit) -> Held:
        return hold_and_sign(self.public, unit)

    def reserved(self, unit: Unit) -> Held:
        held = self.signed(unit)
        self.desk.did_to_booking(held.reference, "confirm-deposit")
        return held

    def sold(self, unit: Unit) -> Held:
        held = self.reserved(unit)
        self.desk.did(unit, "close-sale")
        return held

    def cancelled(self, unit: Unit) -> Held:
        """Signed, and then given up by the buyer."""
        held = self.signed(unit)
        assert held.cancel().status_code == 204
        return held
