"""Watchers of a board get every change once, whoever made it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.layout import Placement
from holdfast.domain.status import Status
from holdfast.operations import live_updates as operation
from holdfast.operations.live_updates import BoardChanges, LiveUpdates, Watcher
from holdfast.storage import boards, layouts
from holdfast.storage.database import Connection, Database, current_time
from tests.support.inventory import claim, new_project, replacement, store
from tests.support.sales import hold, make_lapse, new_units


class Slow:
    """A read whose answer is old when it arrives."""

    def __init__(self) -> None:
        self.has_read = asyncio.Event()
        self.may_go_on = asyncio.Event()


class AskedDatabase(Database):
    """Counts how often it is read, can be away, and can be slow to answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reads = 0
        self.is_away = False
        self.slow: Slow | None = None
        """The next read."""

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        self.reads += 1
        if self.is_away:
            raise DatabaseUnavailable
        async with self._database.reading() as connection:
            slow, self.slow = self.slow, None
            yield connection
            if slow is not None:
                slow.has_read.set()
                await slow.may_go_on.wait()


@pytest.fixture
def asked(database: Database) -> AskedDatabase:
    return AskedDatabase(database)


@pytest.fixture
async def watching(asked: AskedDatabase, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveUpdates]:
    """Looks when it is told to, and only then."""
    monkeypatch.setattr(operation, "POLL_SECONDS", 3600)
    opened = LiveUpdates(asked)
    yield opened
    await opened.close()


async def moment(database: Database) -> datetime:
    async with database.reading() as connection:
        return await current_time(connection)


async def started(watching: LiveUpdates, watcher: Watcher) -> Watcher:
    """It gets all that was there before."""
    await watching.run_once()
    watcher.take()
    return watcher


def is_current(watching: LiveUpdates) -> bool:
    return watching.is_current


def told(news: BoardChanges) -> dict[str, Status]:
    return {unit.code: unit.status for unit in news.units}


async def test_a_change_is_told_once_to_everybody_who_watches_its_project(
    database: Database, watching: LiveUpdates
) -> None:
    project_id, other_id = await new_units(database, "A-1", "A-2"), await new_project(database, "other")
    first, second, other = [await watching.watch(one, None) for one in (project_id, project_id, other_id)]
    for watcher in (first, second, other):
        await started(watching, watcher)
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    await watching.run_once()
    for watcher in (first, second):
        await watcher.wait()
        news = watcher.take()
        assert told(news) == {"A-1": Status.UNAVAILABLE}
        assert news.counts is not None
        assert news.counts.by_status[Status.UNAVAILABLE] == 1
        assert not news.everything
    assert other.take().units == []
    await watching.run_once()
    assert first.take().units == []


async def test_new_units_and_new_prices_are_told(database: Database, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await started(watching, await watching.watch(project_id, None))
    await store(database, replacement(project_id, "A-1", 5), replacement(project_id, "A-2"))
    await watching.run_once()
    news = watcher.take()
    assert {unit.code: int(unit.price_sar) for unit in news.units} == {"A-1": 5, "A-2": 1_000_000}
    assert news.counts is not None
    assert news.counts.total == 2


async def test_a_hold_that_ends_is_told_though_nobody_has_written_it(
    database: Database, watching: LiveUpdates
) -> None:
    project_id = await new_units(database, "A-1")
    booking = await hold(database, (project_id, "A-1"))
    watcher = await started(watching, await watching.watch(project_id, None))
    await make_lapse(database, booking)
    await watching.run_once()
    assert told(watcher.take()) == {"A-1": Status.AVAILABLE}


async def test_of_many_changes_of_a_unit_the_latest_is_told(
    database: Database, watching: LiveUpdates
) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await started(watching, await watching.watch(project_id, None))
    for price in (5, 6):
        await store(database, replacement(project_id, "A-1", price))
        await watching.run_once()
    assert [int(unit.price_sar) for unit in watcher.take().units] == [6]


async def test_however_many_watch_the_database_is_asked_once(
    database: Database, asked: AskedDatabase, watching: LiveUpdates
) -> None:
    project_id, other_id = await new_units(database, "A-1"), await new_project(database, "other")
    for one in (project_id, other_id) * 10:
        await watching.watch(one, None)
    before = asked.reads
    await watching.run_once()
    assert asked.reads == before + 1


async def test_whoever_comes_back_is_told_what_they_missed(database: Database, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    # As if the other one had been stored long ago.
    await claim(database, "A-2", Status.RESERVED, 3600)
    async with database.writing() as connection:
        await connection.execute("update unit set updated_at = now() - interval '1 hour' where code = 'A-2'")
    left_at = await moment(database)
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    watcher = await watching.watch(project_id, left_at)
    await watcher.wait()
    news = watcher.take()
    assert told(news) == {"A-1": Status.UNAVAILABLE}
    assert news.counts is not None


async def test_whoever_was_away_for_long_is_shown_everything(
    database: Database, watching: LiveUpdates
) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await watching.watch(project_id, await moment(database) - timedelta(days=1))
    news = watcher.take()
    assert news.everything
    assert news.units == []
    assert news.counts is not None


async def test_another_layout_is_another_picture(database: Database, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1")
    async with database.reading() as connection:
        turn = (await boards.layout_turns(connection, [project_id]))[project_id]
    watcher = await started(watching, await watching.watch(project_id, await moment(database), turn))
    await watching.run_once()
    assert not watcher.take().everything
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, {"A-1": Placement("B", 7, 1)})
    await watching.run_once()
    assert watcher.take().everything
    back = await watching.watch(project_id, await moment(database), turn)
    assert back.take().everything, "it shows the picture of before"
    back = await watching.watch(project_id, await moment(database), turn + 1)
    assert not back.take().everything


async def test_a_layout_that_changes_before_the_first_look_is_told(
    database: Database, watching: LiveUpdates
) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await watching.watch(project_id, None)
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, {"A-1": Placement("B", 7, 1)})
    await watching.run_once()
    assert watcher.take().everything


async def test_too_many_changes_are_told_as_everything(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "MOST_CHANGES", 2)
    project_id = await new_units(database, "A-1")
    watcher = await watching.watch(project_id, None)
    await store(database, *(replacement(project_id, f"B-{number}") for number in range(4)))
    await watching.run_once()
    news = watcher.take()
    assert news.everything
    assert news.units == []


async def test_a_catch_up_takes_back_nothing_that_is_newer(
    database: Database, asked: AskedDatabase, watching: LiveUpdates
) -> None:
    project_id = await new_units(database, "A-1")
    left_at = await moment(database)
    slow = asked.slow = Slow()
    coming = asyncio.create_task(watching.watch(project_id, left_at))
    await slow.has_read.wait()
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    looking = asyncio.create_task(watching.run_once())
    # It waits for the one that is slow; otherwise it would be done long before.
    await asyncio.wait({looking}, timeout=0.5)
    slow.may_go_on.set()
    watcher, _ = await asyncio.gather(coming, looking)
    news = watcher.take()
    assert told(news) == {"A-1": Status.UNAVAILABLE}
    assert news.counts is not None
    assert news.counts.by_status[Status.UNAVAILABLE] == 1


async def test_of_two_versions_of_a_unit_the_newer_is_kept_whichever_comes_first(
    database: Database, watching: LiveUpdates
) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await started(watching, await watching.watch(project_id, None))
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    await watching.run_once()
    told_at, (newer,), *_ = watcher.take()
    assert told_at is not None
    older = newer._replace(version=newer.version - 1, status=Status.AVAILABLE)
    for one in (newer, older):
        watcher.add(told_at, [one], None)
    assert watcher.take().units == [newer]


async def test_a_bulk_is_told_as_everything_once(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "MOST_CHANGES", 2)
    project_id = await new_units(database, *(f"B-{number}" for number in range(6)))
    watcher = await watching.watch(project_id, None)
    await watching.run_once()
    assert watcher.take().everything
    await watching.run_once()
    assert not watcher.take().everything
    await store(database, replacement(project_id, "B-3", 5))
    await watching.run_once()
    assert watcher.take().everything


async def test_whoever_shows_a_bulk_already_is_not_told_to_show_it_anew(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "MOST_CHANGES", 2)
    project_id = await new_units(database, *(f"B-{number}" for number in range(6)))
    since = await moment(database) + timedelta(milliseconds=1)
    watcher = await watching.watch(project_id, since)
    news = watcher.take()
    assert not news.everything
    assert news.units == []


async def test_a_look_back_that_cannot_see_all_tells_everything(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = await new_units(database, *(f"B-{number}" for number in range(6)))
    watcher = await started(watching, await watching.watch(project_id, None))
    monkeypatch.setattr(operation, "MOST_CHANGES", 2)
    await watching.run_once()
    assert not watcher.take().everything
    monkeypatch.setattr(operation, "LOOK_BACK_EVERY_SECONDS", -1)
    await watching.run_once()
    news = watcher.take()
    assert news.everything
    assert news.counts is not None
    monkeypatch.setattr(operation, "LOOK_BACK_EVERY_SECONDS", 3600)
    await watching.run_once()
    assert not watcher.take().everything


async def test_a_change_that_was_committed_late_is_found_by_looking_back(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await started(watching, await watching.watch(project_id, None))
    async with database.writing() as connection:
        await connection.execute(
            "update unit set version = version + 1, status = 'unavailable',"
            " created_at = now() - interval '1 hour', updated_at = now() - interval '1 minute'"
        )
    await watching.run_once()
    assert watcher.take().units == []
    monkeypatch.setattr(operation, "LOOK_BACK_EVERY_SECONDS", -1)
    await watching.run_once()
    assert told(watcher.take()) == {"A-1": Status.UNAVAILABLE}


async def test_it_is_looked_only_while_somebody_watches(
    database: Database, asked: AskedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "POLL_SECONDS", 0)
    monkeypatch.setattr(operation, "LONGEST_PAUSE_SECONDS", 0)
    watching = LiveUpdates(asked)
    project_id = await new_units(database, "A-1")
    watcher = await watching.watch(project_id, None)
    polling = watching._polling
    assert polling is not None
    watcher.close()
    async with asyncio.timeout(30):
        await polling
    again = await watching.watch(project_id, None)
    await store(database, replacement(project_id, "A-1", 5))
    async with asyncio.timeout(30):
        await again.wait()
    again.close()
    await watching.close()


async def test_while_the_database_is_away_nobody_is_told_to_be_up_to_date(
    database: Database, asked: AskedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "POLL_SECONDS", 0)
    monkeypatch.setattr(operation, "LONGEST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(operation, "CURRENT_FOR_SECONDS", 0.2)
    watching = LiveUpdates(asked)
    project_id = await new_units(database, "A-1")
    watcher = await watching.watch(project_id, None)
    await watching.run_once()
    assert is_current(watching)
    asked.is_away = True
    reads = asked.reads
    async with asyncio.timeout(30):
        while is_current(watching) or asked.reads == reads:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
    asked.is_away = False
    await store(database, replacement(project_id, "A-1", 5))
    async with asyncio.timeout(30):
        while not any(unit.price_sar == 5 for unit in watcher.take().units):
            await watcher.wait()
    assert is_current(watching)
    await watching.close()
