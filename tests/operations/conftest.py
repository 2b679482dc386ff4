"""Selling on five units, with limits."""

from collections.abc import AsyncIterator

import pytest

from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.operations.bookings import Bookings
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from tests.support.sales import new_units

RULES = (HoldPeriods(), HoldLimits(2, 3, 60))


@pytest.fixture
async def selling(database: Database) -> AsyncIterator[Bookings]:
    await new_units(database, *(f"A-{number}" for number in range(1, 6)))
    inventory = Units(database)
    yield Bookings(database, inventory, *RULES)
    await inventory.close()
