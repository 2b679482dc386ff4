"""Sums over time: each event once, each unit once."""

from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from holdfast.domain.reports import StatusPair
from holdfast.domain.status import Status
from holdfast.operations.events import EventFeed
from holdfast.storage import reports
from holdfast.storage.database import Database
from tests.support.inventory import new_project, replacement, store
from tests.support.sales import hold, new_units, sell

ZONE = "Asia/Riyadh"
AVAILABLE, HELD, RESERVED, SOLD, UNAVAILABLE = Status


async def summed(database: Database, limit: int = 1000) -> int:
    async with database.writing() as connection:
        return await reports.sum_events(connection, limit)


async def steps_of(database: Database, project_id: UUID) -> dict[StatusPair, int]:
    """Of today and the days around it, for a test may run at midnight."""
    found: dict[StatusPair, int] = {}
    async with database.reading() as connection:
        today = await reports.today(connection, ZONE)
        for steps in (await reports.steps(connection, project_id, today - timedelta(days=1), ZONE)).values():
            for step, number in steps.items():
                found[step] = found.get(step, 0) + number
    return found


async def test_steps_are_the_same_whether_they_are_summed_numbered_or_neither(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    await sell(database, (project_id, "A-1"))
    await hold(database, (project_id, "A-2"))
    expected = {(AVAILABLE, HELD): 2, (HELD, RESERVED): 1, (RESERVED, SOLD): 1}
    assert await steps_of(database, project_id) == expected
    await EventFeed(database).number()
    assert await steps_of(database, project_id) == expected
    assert [await summed(database, 3), await summed(database, 3), await summed(database, 3)] == [3, 1, 0]
    assert await steps_of(database, project_id) == expected
    await hold(database, (project_id, "A-3"))
    assert (await steps_of(database, project_id))[AVAILABLE, HELD] == 3
    await EventFeed(database).number()
    await summed(database)
    assert (await steps_of(database, project_id))[AVAILABLE, HELD] == 3


async def test_the_steps_of_another_project_do_not_count(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    other_id = await new_project(database, "other")
    await hold(database, (project_id, "A-1"))
    await EventFeed(database).number()
    await summed(database)
    assert await steps_of(database, other_id) == {}


async def created_of(database: Database, project_id: UUID) -> dict[Status, int]:
    found: dict[Status, int] = {}
    async with database.writing() as connection:
        await reports.recount(connection, project_id)
        for by_status in (await reports.created(connection, project_id, date(2020, 1, 1), ZONE)).values():
            for status, number in by_status.items():
                found[status] = found.get(status, 0) + number
    return found


async def test_units_count_with_the_status_that_they_were_created_with(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    await store(database, *(replacement(project_id, code, status=UNAVAILABLE) for code in ("B-1", "B-2")))
    await store(database, replacement(project_id, "B-2", status=AVAILABLE))
    await store(database, replacement(project_id, "A-3", status=UNAVAILABLE))
    await sell(database, (project_id, "A-1"))
    await store(database, replacement(project_id, "A-2", 5))
    assert await created_of(database, project_id) == {AVAILABLE: 3, UNAVAILABLE: 2}
    assert await created_of(database, project_id) == {AVAILABLE: 3, UNAVAILABLE: 2}


async def test_a_project_is_miscounted_until_it_is_counted_with_all_its_units(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    async with database.writing() as connection:
        assert await reports.miscounted(connection) == [project_id]
        await reports.recount(connection, project_id)
        assert await reports.miscounted(connection) == []
        assert await reports.counted_units(connection, project_id) == 1
    await store(database, replacement(project_id, "A-2"))
    async with database.reading() as connection:
        assert await reports.miscounted(connection) == [project_id]


async def test_sales_stand_on_the_day_on_which_they_were_closed(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    await sell(database, (project_id, "A-1"))
    async with database.writing() as connection:
        today = await reports.today(connection, ZONE)
        await connection.execute("update booking set closed_at = '2026-03-01 22:30:00Z'")
        found = await reports.sold(connection, project_id, date(2026, 3, 1), ZONE)
    assert found == {date(2026, 3, 2): (1, Decimal(1_000_000))}
    assert today > date(2026, 1, 1)
