"""The feed, numbered after the commit, gapless, each unit's events in their order; sums; the audit trail."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeVar
from uuid import UUID, uuid4

import pytest

from holdfast.background import jobs
from holdfast.domain.audit import CLOCK, ActorKind, AuditEntry, Author, Change
from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import CursorExpired, InvalidInput
from holdfast.domain.layout import Placement
from holdfast.domain.reports import StatusPair
from holdfast.domain.status import Status
from holdfast.operations import api_keys
from holdfast.operations.events import EventFeed
from holdfast.operations.reports import sum_up
from holdfast.storage import audit, events, reports
from holdfast.storage.audit import StoredEntry
from holdfast.storage.database import Database, current_time
from tests.operations.scene import SOMEBODY_WAITS
from tests.support.delivery_engine import eventually
from tests.support.inventory import new_project, replacement, store
from tests.support.sales import hold, new_units, sell
from tests.support.sql import execute, owning, value

Key = TypeVar("Key")
ZONE = "Asia/Riyadh"
SUMMED = "update event_sums set summed_position = (select last_position from event_feed)"
ON, HELD, RESERVED, SOLD, OFF = Status


async def switched(database: Database) -> EventFeed:
    """The feed of a unit that was taken off sale, put on sale, and taken off again."""
    project_id = await new_units(database, "A-1")
    for status in (OFF, ON, OFF):
        await store(database, replacement(project_id, "A-1", status=status))
    return EventFeed(database)


async def trim(database: Database) -> int:
    return await jobs.trim(database, events.TRIM, 400, 100)


async def test_an_event_that_commits_late_is_never_passed_by_a_reader(database: Database) -> None:
    project_id = await new_units(database, "early", "late")
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
    codes = [f"A-{number}" for number in range(5)]
    project_id = await new_units(database, *codes)
    for status in (OFF, ON, OFF):
        await store(database, *(replacement(project_id, code, status=status) for code in codes))
    async with database.writing() as first:
        assert await events.number(first, 4) == 4
        assert await database.read(events.any_unnumbered)
    page = await EventFeed(database).read(None, 100, None)
    assert [item.position for item in page.items] == list(range(1, 16))
    for code in codes:
        assert [item.status for item in page.items if item.unit_code == code] == [OFF, ON, OFF]
    async with database.writing() as second:
        assert await events.number(second, 10) == 0


@pytest.mark.parametrize(
    ("old", "forgotten", "kept"), [("(1, 2)", 2, [3]), ("(1, 3)", 1, [2, 3])], ids=["a run", "with a gap"]
)
async def test_forgotten_events_leave_the_feed_from_its_old_end_and_leave_no_gap(
    database: Database, old: str, forgotten: int, kept: list[int]
) -> None:
    feed = await switched(database)
    before = await feed.read(None, 100, None)
    earlier = f"update event set created_at = created_at - interval '401 days' where position in {old}"
    await execute(database, earlier)
    await sum_up(database)
    assert await trim(database) == forgotten
    assert await database.read(events.ends) == (3, forgotten)
    assert [item.position for item in (await feed.read(None, 100, None)).items] == kept
    assert before.next_position == 3
    for cursor, error in ((0, CursorExpired), (4, InvalidInput)):
        with pytest.raises(error):
            await feed.read(cursor, 100, None)


async def test_no_event_is_forgotten_before_it_is_summed(database: Database) -> None:
    feed = await switched(database)
    await feed.number()
    await execute(database, "update event set created_at = created_at - interval '401 days'")
    assert await trim(database) == 0
    assert await summed(database, 2) == 2
    assert await trim(database) == 2
    await sum_up(database)
    assert await trim(database) == 1
    assert await value(database, "select sum(steps)::int from event_hour") == 3


async def test_readers_of_the_feed_do_not_wait_while_it_is_trimmed(database: Database) -> None:
    feed = await switched(database)
    assert await feed.number() == 3
    await execute(database, SUMMED, "update event set created_at = created_at - interval '401 days'")
    async with database.writing() as other:
        await other.execute("select from event where position = 1 for update")
        trimming = asyncio.create_task(trim(database))
        await eventually(lambda: value(database, SOMEBODY_WAITS))
        project_id = await new_project(database, "other")
        await store(database, replacement(project_id, "B-1"), replacement(project_id, "B-1", status=OFF))
        assert (await feed.read(3, 100, None)).next_position == 4
    assert await trimming == 3
    assert await database.read(events.ends) == (4, 3)


ADD_OLD_EVENTS = """
    insert into event (id, project_id, unit_id, unit_version, type, previous_status, status, created_at)
    select gen_random_uuid(), gen_random_uuid(), md5((at % 500)::text)::uuid, $1 * $2 + at,
        'unit.available', 'unavailable', 'available', now() - interval '401 days' + at * interval '1 ms'
    from generate_series(1, $2) as at
"""


async def test_new_events_take_the_place_of_those_that_were_trimmed(database: Database) -> None:
    """With a vacuum where autovacuum would do it; without one, the table and its indexes grow."""
    live, replaced = 4, 1000

    async def replace_some(at: int, *, trims: bool = True, vacuums: bool = True) -> int:
        async with database.writing_autocommit() as connection:
            await connection.execute(ADD_OLD_EVENTS, at, replaced)
            assert await events.number(connection, replaced) == replaced
            await connection.execute(SUMMED)
            if trims:
                assert await jobs.trim(database, events.TRIM, 400, replaced) == replaced
            if vacuums:
                async with owning(database) as owner:
                    await owner.execute("vacuum event")
            return int(await connection.fetchval("select pg_total_relation_size('event')"))

    for at in range(live):
        await replace_some(at, trims=False)
    full = max([await replace_some(at) for at in range(4, 8)])
    assert max([await replace_some(at) for at in range(8, 16)]) < 1.2 * full
    assert await value(database, "select count(*) from event") == live * replaced
    without = [await replace_some(at, vacuums=False) for at in range(16, 20)]
    assert without[-1] > 1.2 * full


# Sums over time: each event once, each unit once.


async def summed(database: Database, limit: int = 1000) -> int:
    async with database.writing() as connection:
        return await reports.sum_events(connection, limit)


def total(by_day: Mapping[date, Mapping[Key, int]]) -> dict[Key, int]:
    """Of today and the days around it, for a test may run at midnight."""
    counts: Counter[Key] = Counter()
    for by_key in by_day.values():
        counts.update(by_key)
    return dict(counts)


async def steps_of(database: Database, project_id: UUID) -> dict[StatusPair, int]:
    today = await database.read(reports.today, ZONE)
    return total(await database.read(reports.steps, project_id, today - timedelta(days=1), ZONE))


async def test_steps_are_the_same_whether_they_are_summed_numbered_or_neither(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    other_id = await new_project(database, "other")
    await sell(database, (project_id, "A-1"))
    await hold(database, (project_id, "A-2"))
    expected = {(ON, HELD): 2, (HELD, RESERVED): 1, (RESERVED, SOLD): 1}
    assert await steps_of(database, project_id) == expected
    await EventFeed(database).number()
    assert await steps_of(database, project_id) == expected
    assert [await summed(database, 3) for _ in range(3)] == [3, 1, 0]
    assert await steps_of(database, project_id) == expected
    await hold(database, (project_id, "A-3"))
    assert (await steps_of(database, project_id))[ON, HELD] == 3
    await EventFeed(database).number()
    await summed(database)
    assert (await steps_of(database, project_id))[ON, HELD] == 3
    assert await steps_of(database, other_id) == {}


async def test_units_count_with_the_status_that_they_were_created_with(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3")
    assert await database.read(reports.miscounted) == [project_id]
    await store(database, *(replacement(project_id, code, status=OFF) for code in ("B-1", "B-2")))
    await store(database, replacement(project_id, "B-2", status=ON))
    await store(database, replacement(project_id, "A-3", status=OFF))
    await sell(database, (project_id, "A-1"))
    await store(database, replacement(project_id, "A-2", 5))
    for _ in range(2):
        await database.write(reports.recount, project_id)
        created = await database.read(reports.created, project_id, date(2020, 1, 1), ZONE)
        assert total(created) == {ON: 3, OFF: 2}
    # A project is miscounted until it is counted with all its units.
    assert await database.read(reports.miscounted) == []
    assert await database.read(reports.counted_units, project_id) == 5
    await store(database, replacement(project_id, "A-4"))
    assert await database.read(reports.miscounted) == [project_id]


async def test_sales_stand_on_the_day_on_which_they_were_closed(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    await sell(database, (project_id, "A-1"))
    await execute(database, "update booking set closed_at = '2026-03-01 22:30:00Z'")
    found = await database.read(reports.sold, project_id, date(2026, 3, 1), ZONE)
    assert found == {date(2026, 3, 2): (1, Decimal(1_000_000))}
    assert await database.read(reports.today, ZONE) > date(2026, 1, 1)


# The audit trail: exact, in order, by unit.

AT = datetime(2026, 11, 14, 9, 30, 0, 5000, tzinfo=UTC)
LATEST = 2**62
NOTHING = Change(None, {})
STAFF = Author(ActorKind.STAFF, "nora@example.com", "request-1")


def entry(subject_id: UUID, action: str, author: Author = CLOCK, change: Change = NOTHING) -> AuditEntry:
    return AuditEntry(subject_id, uuid4(), AT, author, action, "234-679-FHK", change)


async def history(database: Database, unit_id: UUID, *entries: AuditEntry) -> list[StoredEntry]:
    """Of a unit, after these entries."""
    for one in entries:
        await database.write(audit.insert, one)
    return await database.read(audit.history, unit_id, LATEST, 100)


async def test_an_entry_is_read_back_as_it_was_written(database: Database) -> None:
    unit_id = uuid4()
    change = Change({"status": Status.HELD}, {"status": Status.AVAILABLE, "hold_expires_at": None})
    (found,) = await history(database, unit_id, entry(unit_id, "cancel-hold", STAFF, change))
    told = ("staff", "nora@example.com", "request-1", "cancel-hold", "234-679-FHK")
    assert (found.at, *found[4:9]) == (AT, *told)
    assert json.loads(found.before or "") == {"status": "held"}
    assert json.loads(found.after) == {"status": "available", "holdExpiresAt": None}
    # What was not there before is told apart from what had nothing to tell.
    changes = [entry(unit_id, "x", change=change) for change in (NOTHING, Change({}, {}))]
    assert [one.before for one in (await history(database, unit_id, *changes))[:2]] == ["{}", None]


async def test_values_are_written_in_the_names_and_forms_of_the_wire(database: Database) -> None:
    unit_id = uuid4()
    told = {
        "price_sar": Decimal("999999999999.99"),
        "vat_rate": Decimal("0.0001"),
        "area_sqm": Decimal(100),
        "hold_expires_at": AT,
        "reserved_until": AT.replace(microsecond=0),
        "booking_status": BookingStatus.REFUND_DUE,
        "images": ("https://x.example/1", {"url": "https://x.example/2"}),
        "places": {"A_1": Placement("A", 1, 2)._asdict()},
        "description": "line\nشقة",
    }
    (found,) = await history(database, unit_id, entry(unit_id, "change", change=Change({}, told)))
    assert json.loads(found.after, parse_float=Decimal) == {
        "priceSar": Decimal("999999999999.99"),
        "vatRate": Decimal("0.0001"),
        "areaSqm": 100,
        "holdExpiresAt": "2026-11-14T09:30:00.005Z",
        "reservedUntil": "2026-11-14T09:30:00.000Z",
        "bookingStatus": "refund-due",
        "images": ["https://x.example/1", {"url": "https://x.example/2"}],
        "places": {"A_1": {"building": "A", "floor": 1, "position": 2}},
        "description": "line\nشقة",
    }


async def test_a_history_is_of_one_unit_the_latest_first_page_by_page(database: Database) -> None:
    unit_id, other_id = uuid4(), uuid4()
    steps = [
        entry(one, action) for number in range(5) for one, action in ((unit_id, f"{number}"), (other_id, "x"))
    ]
    everything = await history(database, unit_id, *steps)
    assert [one.action for one in everything] == ["4", "3", "2", "1", "0"]
    assert await database.read(audit.history, unit_id, everything[1].id, 2) == everything[2:4]


async def test_old_entries_leave_the_trail_from_its_old_end_and_the_others_stay(database: Database) -> None:
    unit_id = uuid4()
    await history(database, unit_id, *(entry(unit_id, f"{number}") for number in range(5)))
    for action, days in (("0", 31), ("1", 33), ("2", 32), ("3", 29), ("4", 0)):
        await execute(
            database, f"update audit_entry set at = now() - interval '{days} d' where action = '{action}'"
        )
    left = []
    for deleted in (2, 1, 0):
        assert await jobs.trim(database, audit.TRIM, 30, 2) == deleted
        left.append([one.action for one in await history(database, unit_id)])
    assert left == [["4", "3", "0"], ["4", "3"], ["4", "3"]]


async def test_a_key_is_shown_by_its_name(database: Database) -> None:
    unit_id = uuid4()
    issued = await api_keys.issue(database, api_keys.NewApiKey("The nightly sync"))
    named = Author(ActorKind.KEY, str(issued.key.id), "request-2")
    namesake = Author(ActorKind.STAFF, str(issued.key.id))
    entries = entry(unit_id, "put", named), entry(unit_id, "sign in", namesake)
    assert [one.key_name for one in await history(database, unit_id, *entries)] == [None, "The nightly sync"]


async def test_the_changes_of_a_batch_stand_in_their_order(database: Database) -> None:
    project_id = await new_project(database)
    changes = [replacement(project_id, code, price) for price in range(1, 9) for code in ("A-1", "A-2")]
    written = await store(database, *changes)
    found = await history(database, written[0].unit.id)
    assert [one.action for one in found] == ["change"] * 7 + ["create"]
    assert [json.loads(one.after)["priceSar"] for one in reversed(found)] == list(range(1, 9))
    # Times are in whole milliseconds.
    assert (await database.read(current_time)).microsecond % 1000 == 0
