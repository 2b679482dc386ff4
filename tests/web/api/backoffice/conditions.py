"""Every condition that a unit can be in, each brought about as buyers and staff bring it about."""

from dataclasses import dataclass
from enum import StrEnum

import httpx

from holdfast.domain.status import Status
from tests.support.backoffice import Desk, Held, hold, hold_and_sign, succeeded
from tests.support.client import Unit
from tests.support.sql import Sql

WAIT_FOR_THE_END = """
    select pg_sleep(greatest(0, extract(epoch from
        coalesce(unit.hold_expires_at, unit.reserved_until) - clock_timestamp())) + 0.002)
    from unit join project on project.id = unit.project_id
    where project.slug = $1 and unit.code = $2
"""
LOCK = """
    select 1 from unit join project on project.id = unit.project_id
    where project.slug = $1 and unit.code = $2 for update of unit
"""


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


MID_SALE = (Condition.HELD, Condition.SIGNED, Condition.RESERVED, Condition.SOLD)


@dataclass(frozen=True)
class Office:
    """Staff and a buyer who work together."""

    desk: Desk
    public: httpx.Client

    def bring(self, unit: Unit, condition: Condition) -> Held | None:
        """From available; the buyer's side of it, if there is a buyer."""
        if condition in MID_SALE:
            return self._sell(unit, condition)
        if condition is Condition.UNAVAILABLE:
            self.desk.did(unit, "take-off-sale")
        elif condition is Condition.ARCHIVED:
            self.desk.did(unit, "archive")
        return None

    def held(self, unit: Unit) -> Held:
        return hold(self.public, unit)

    def signed(self, unit: Unit) -> Held:
        return hold_and_sign(self.public, unit)

    def reserved(self, unit: Unit) -> Held:
        held = self.signed(unit)
        succeeded(self.desk.act_on_booking(held.reference, "confirm-deposit"))
        return held

    def sold(self, unit: Unit) -> Held:
        held = self.reserved(unit)
        self.desk.did(unit, "close-sale")
        return held

    def _sell(self, unit: Unit, condition: Condition) -> Held:
        ways = {"held": self.held, "signed": self.signed, "reserved": self.reserved, "sold": self.sold}
        return ways[condition](unit)


def wait_for_the_end(sql: Sql, unit: Unit) -> None:
    """Of its hold or reservation, by the database's clock."""
    sql.value(WAIT_FOR_THE_END, unit.project.slug, unit.code)


def release(unit: Unit) -> None:
    """Whoever writes to a unit whose time is over writes its release first."""
    assert unit.patch({}).status_code == 200
