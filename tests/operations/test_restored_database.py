"""Another database under a running process, such as a restored backup, issues numbers again."""

import pytest

from holdfast.domain.errors import DatabaseUnavailable, NotAvailable, TransitionNotAllowed
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.bookings import Bookings, StaffAction
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from tests.operations.buyers import OMAR, STAFF, hold
from tests.operations.commands import rows
from tests.support.inventory import SLUG
from tests.support.sales import BUYER

EVERYTHING = """
    select (select json_agg(booking order by number)::text from booking),
        (select json_agg(unit order by code)::text from unit),
        (select count(*) from event), (select count(*) from audit_entry)
"""


@pytest.fixture
async def behind(selling: Bookings, database: Database) -> Bookings:
    """It gets numbers that three bookings have already."""
    for code, requester in (("A-1", OMAR), ("A-2", OMAR), ("A-3", OMAR._replace(visitor=None))):
        await hold(selling, requester, code)
    async with database.writing() as connection:
        await connection.execute("select setval('booking_number', (select min(number) from booking), false)")
    return Bookings(database, Units(database), HoldPeriods(), HoldLimits())


async def test_a_number_that_is_taken_overwrites_nothing_and_stores_nothing(
    behind: Bookings, database: Database
) -> None:
    before = await rows(database, EVERYTHING)
    with pytest.raises(DatabaseUnavailable):
        await hold(behind, code="A-4")
    assert await rows(database, EVERYTHING) == before


async def test_a_walk_in_sale_of_a_number_that_is_taken_stores_nothing_either(
    behind: Bookings, database: Database
) -> None:
    before = await rows(database, EVERYTHING)
    with pytest.raises(DatabaseUnavailable):
        await behind.act_on_unit(SLUG, "A-4", StaffAction(Action.CLOSE_SALE, BUYER), Caller.STAFF, STAFF)
    assert await rows(database, EVERYTHING) == before


async def test_a_walk_in_sale_is_not_taken_for_the_booking_that_has_its_number(behind: Bookings) -> None:
    with pytest.raises(TransitionNotAllowed):
        await behind.act_on_unit(SLUG, "A-1", StaffAction(Action.CLOSE_SALE, BUYER), Caller.STAFF, STAFF)


async def test_numbers_of_which_one_was_taken_are_not_tried_one_by_one(
    behind: Bookings, database: Database
) -> None:
    with pytest.raises(DatabaseUnavailable):
        await hold(behind, code="A-4")
    held = await hold(behind, code="A-4")
    taken = await rows(
        database, "select number from booking where unit_id <> (select id from unit where code = 'A-4')"
    )
    assert held.booking.number > max(number for (number,) in taken)
    assert (await behind.find_with_token(held.booking.reference, held.token)).booking == held.booking


async def test_a_number_that_was_refused_by_the_domain_is_no_reason_to_forget_the_others(
    selling: Bookings,
) -> None:
    first = await hold(selling, OMAR)
    with pytest.raises(NotAvailable):
        await hold(selling, code="A-1")
    second = await hold(selling, code="A-2")
    assert second.booking.number == first.booking.number + 2
