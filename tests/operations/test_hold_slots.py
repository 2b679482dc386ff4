"""The slots of holds, while others write to the same units and bookings."""

import asyncio
from uuid import uuid4

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Booking, Holder, Slots
from holdfast.domain.holds import HoldLimits
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.write_path import WriteResult, write
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey
from tests.support.sales import done, make_lapse, new_opening, new_units

ONE_EACH = HoldLimits(1, 1, 0)

# As the sweeper writes it.
END = """
    update booking set status = 'lapsed', ended_at = hold_expires_at, address_slot = null, visitor_slot = null
    where number = $1
"""
SOMEBODY_WAITS = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0
    )
"""


async def opening(database: Database, key: UnitKey, holder: Holder) -> HoldUnit:
    return HoldUnit(key, COMMAND, await new_opening(database, holder=holder, limits=ONE_EACH))


async def lapsed_hold(database: Database, key: UnitKey, holder: Holder) -> Booking:
    booking = (await done(database, await opening(database, key, holder))).booking
    await make_lapse(database, booking)
    return booking


async def until_somebody_waits(database: Database) -> None:
    async with asyncio.timeout(30), database.reading() as connection:
        while not await connection.fetchval(SOMEBODY_WAITS):
            pass


class GivenUpError(Exception):
    """The sweeper's transaction comes to nothing."""


@pytest.mark.parametrize("who", ["address", "visitor"])
@pytest.mark.parametrize("committed", [True, False])
async def test_a_hold_that_is_over_does_not_count_while_its_end_is_being_written(
    database: Database, who: str, committed: bool
) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    holder = Holder(**{f"{who}_id": uuid4()})
    first = await lapsed_hold(database, (project_id, "A-1"), holder)
    command = await opening(database, (project_id, "A-2"), holder)
    try:
        async with database.writing() as connection:
            await connection.execute(END, first.number)
            asked = asyncio.create_task(write(database, [command]))
            await until_somebody_waits(database)
            if not committed:
                raise GivenUpError
    except GivenUpError:
        pass
    (outcome,) = await asked
    assert isinstance(outcome, WriteResult), outcome
    assert outcome.booking.slots == (Slots(1, None) if who == "address" else Slots(None, 1))
