"""The loop that sums events leaves pages nothing to sum."""

from uuid import UUID

from holdfast.operations.events import EventFeed
from holdfast.operations.reports import COMPARED_EVERY, sum_up
from holdfast.storage import reports
from holdfast.storage.database import Database
from tests.support.inventory import replacement, store
from tests.support.sales import new_units, sell


async def counted(database: Database, project_id: UUID) -> int:
    async with database.reading() as connection:
        return await reports.counted_units(connection, project_id)


async def test_a_round_sums_every_numbered_event_and_counts_every_unit(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    await sell(database, (project_id, "A-1"))
    await EventFeed(database).number()
    await sum_up(database)
    assert await counted(database, project_id) == 2
    async with database.reading() as connection:
        assert await reports.unsummed(connection) == 0
        assert await connection.fetchval("select sum(steps)::int from event_hour") == 3


async def test_two_loops_sum_each_event_once(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    await sell(database, (project_id, "A-1"))
    await EventFeed(database).number()
    for _ in range(2):
        await sum_up(database)
    async with database.reading() as connection:
        assert await connection.fetchval("select sum(steps)::int from event_hour") == 3


async def test_units_are_compared_by_one_loop_and_seldom(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    await sum_up(database)
    await store(database, replacement(project_id, "A-2"))
    await sum_up(database)
    assert await counted(database, project_id) == 1
    async with database.writing() as connection:
        await connection.execute(
            "update event_sums set units_compared_at = units_compared_at - $1::interval", COMPARED_EVERY
        )
    await sum_up(database)
    assert await counted(database, project_id) == 2


async def test_a_loop_does_not_wait_for_another_that_has_the_turn(database: Database) -> None:
    project_id = await new_units(database, "A-1")
    await sell(database, (project_id, "A-1"))
    await EventFeed(database).number()
    async with database.writing() as other:
        assert await reports.sum_events(other, 1) == 1
        await sum_up(database)
        assert await counted(database, project_id) == 0
    await sum_up(database)
    assert await counted(database, project_id) == 1
    async with database.reading() as connection:
        assert await connection.fetchval("select sum(steps)::int from event_hour") == 3
