"""Units as staff see them: with the booking that has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.domain.booking import Booking
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import Unit
from holdfast.operations.inventory import Inventory
from holdfast.storage import audit, bookings, delivery_log
from holdfast.storage.audit import Recorded
from holdfast.storage.database import Database
from holdfast.storage.delivery_log import UnitDelivery

__all__ = ["Recorded", "StaffUnit", "StaffUnits", "UnitDelivery"]


class StaffUnit(NamedTuple):
    unit: Unit
    project: Project
    booking: Booking | None
    """The one that has the unit; None if none does."""


class StaffUnits:
    def __init__(self, database: Database, inventory: Inventory) -> None:
        self._database = database
        self._inventory = inventory

    async def find(self, slug: str, code: str) -> StaffUnit:
        unit, project = await self._inventory.find(slug, code)
        (found,) = await self._with_bookings([unit], project)
        return found

    async def page(
        self, slug: str, after_code: str, limit: int, status: Status | None
    ) -> tuple[list[StaffUnit], bool]:
        """In the order of their codes, and whether there are more."""
        page, project = await self._inventory.page(slug, after_code, limit, status, None)
        return await self._with_bookings(page[:limit], project), len(page) > limit

    async def history(self, unit: Unit, before_id: int, limit: int) -> list[Recorded]:
        """One more than ``limit``, if there is one; the latest first."""
        async with self._database.reading() as connection:
            return await audit.history(connection, unit.id, before_id, limit + 1)

    async def latest_deliveries(self, unit: Unit, limit: int) -> list[UnitDelivery]:
        """The latest first."""
        async with self._database.reading_one_moment() as connection:
            return await delivery_log.latest_of_unit(connection, unit, limit)

    async def _with_bookings(self, units: Sequence[Unit], project: Project) -> list[StaffUnit]:
        locked = [unit.id for unit in units if unit.status in LOCKED]
        claims = {}
        if locked:
            async with self._database.reading() as connection:
                claims = await bookings.claims_on(connection, locked)
        return [StaffUnit(unit, project, claims.get(unit.id)) for unit in units]
