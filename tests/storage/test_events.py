"""The feed's order: numbered after the commit, gapless, each unit's events in their own order."""

from datetime import timedelta

from holdfast.domain.status import Status
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import sum_up
from holdfast.storage import events, reports
from holdfast.storage.database import Database
from tests.support.inventory import new_project, replacement, store

OFF, ON = Status.UNAVAILABLE, Status.AVAILABLE


async def test_an_event_that_commits_late_is_never_passed_by_a_reader(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "early"), replacement(project_id, "late"))
    feed = EventFeed(database)
    async with database.writing() as slow:
        await slow.execute("update unit set status = 'unavailable', version = 2 where code = 'early'")
        await slow.execute(
            """
            insert into event
                (id, project_id, unit_id, unit_version, type, previous_status, status, created_at)
            select gen_random_uuid(), project_id, id, 2, 'unit.unavailable', 'available', 'unavailable', now()
            from unit where code = 'early'
            """
        )
        await store(database, replacement(project_id, "late", status=OFF))
        seen = await feed.read(None, 10, None)
        assert [item.unit_code for item in seen.items] == ["late"]
    caught_up = await feed.read(seen.next_position, 10, None)
    assert [item.unit_code for item in caught_up.items] == ["early"]


async def test_positions_have_no_gaps_and_keep_the_order_of_each_unit(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, *(replacement(project_id, f"A-{number}") for number in range(5)))
    for status in (OFF, ON, OFF):
        await store(database, *(replacement(project_id, f"A-{number}", status=status) for number in range(5)))
    async with database.writing() as connection:
        assert await events.number(connection, 4) == 4
    page = await EventFeed(database).read(None, 100, None)
    assert [item.position for item in page.items] == list(range(1, 16))
    for number in range(5):
        statuses = [item.status for item in page.items if item.unit_code == f"A-{number}"]
        assert statuses == [OFF, ON, OFF]


async def test_two_numberers_at_once_number_each_event_once(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    await store(database, replacement(project_id, "A-1", status=OFF))
    async with database.writing() as first:
        assert await events.number(first, 10) == 1
        async with database.reading() as other:
            assert await events.any_unnumbered(other)
    async with database.writing() as second:
        assert await events.number(second, 10) == 0


async def test_forgotten_events_leave_the_feed_from_its_old_end(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    for status in (OFF, ON, OFF):
        await store(database, replacement(project_id, "A-1", status=status))
    feed = EventFeed(database)
    before = await feed.read(None, 100, None)
    async with database.writing() as connection:
        await connection.execute(
            "update event set created_at = created_at - interval '401 days' where position <= 2"
        )
    await sum_up(database)
    assert await feed.trim(timedelta(days=400), 100) == 2
    async with database.reading() as connection:
        assert await events.ends(connection) == (3, 2)
    assert (await feed.read(None, 100, None)).items == before.items[2:]


async def test_no_kept_event_is_left_behind_a_forgotten_one(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    for status in (OFF, ON, OFF):
        await store(database, replacement(project_id, "A-1", status=status))
    feed = EventFeed(database)
    before = await feed.read(None, 100, None)
    async with database.writing() as connection:
        await connection.execute(
            "update event set created_at = created_at - interval '401 days' where position in (1, 3)"
        )
    await sum_up(database)
    assert await feed.trim(timedelta(days=400), 100) == 1
    assert [item.position for item in (await feed.read(None, 100, None)).items] == [2, 3]
    assert before.next_position == 3


async def test_no_event_is_forgotten_before_it_is_summed(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    for status in (OFF, ON, OFF):
        await store(database, replacement(project_id, "A-1", status=status))
    feed = EventFeed(database)
    await feed.number()
    async with database.writing() as connection:
        await connection.execute("update event set created_at = created_at - interval '401 days'")
    assert await feed.trim(timedelta(days=400), 100) == 0
    async with database.writing() as connection:
        assert await reports.sum_events(connection, 2) == 2
    assert await feed.trim(timedelta(days=400), 100) == 2
    await sum_up(database)
    assert await feed.trim(timedelta(days=400), 100) == 1
    async with database.reading() as connection:
        assert await connection.fetchval("select sum(steps)::int from event_hour") == 3
