"""Selling on five units, with limits."""

from collections.abc import AsyncIterator

import pytest

from holdfast.domain.hold_limits import HoldLimits
from holdfast.domain.holds import Periods
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Rules, Selling
from holdfast.storage.database import Database
from tests.support.sales import new_units

RULES = Rules(Periods(), HoldLimits(2, 3, 60))


@pytest.fixture
async def selling(database: Database) -> AsyncIterator[Selling]:
    await new_units(database, *(f"A-{number}" for number in range(1, 6)))
    inventory = Inventory(database)
    yield Selling(database, inventory, RULES)
    await inventory.close()
