"""Selling on five units, with limits, and an office with quick passwords."""

from datetime import timedelta
from uuid import UUID

import pytest

from holdfast.domain import login
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.operations.bookings import Bookings
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from tests.support.inventory import new_project
from tests.support.sales import new_units
from tests.support.staff import Office, open_office


@pytest.fixture
async def project_id(database: Database) -> UUID:
    """Of a project without units."""
    return await new_project(database)


@pytest.fixture
async def selling(database: Database) -> Bookings:
    await new_units(database, *(f"A-{number}" for number in range(1, 6)))
    return Bookings(database, Units(database), HoldPeriods(), HoldLimits(2, 3, 60, 0))


@pytest.fixture
def office(database: Database, monkeypatch: pytest.MonkeyPatch) -> Office:
    # Longer than any test takes.
    monkeypatch.setattr(login, "FIRST_WAIT", timedelta(minutes=5))
    return open_office(database)
