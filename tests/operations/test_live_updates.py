"""Watchers of a board get every change once, whoever made it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.layout import Placement
from holdfast.domain.status import Status
from holdfast.operations import live_updates as operation
from holdfast.operations.live_updates import BoardChanges, LiveUpdates, Watcher
from holdfast.storage import boards, layouts
from holdfast.storage.database import Connection, Database, current_time
from tests.operations.interference import Hook, WrappedDatabase
from tests.support.delivery_engine import eventually
from tests.support.inventory import claim, new_project, replacement, store
from tests.support.sales import hold, make_lapse, new_units
from tests.support.sql import execute


class AskedDatabase(WrappedDatabase):
    """Counts how often it is read, can be away, and lets something happen after the next read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.reads = 0
        self.failure: Exception | None = None
        self.after_read: Hook | None = None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        async with self._database.reading() as connection:
            hook, self.after_read = self.after_read, None
            yield connection
            if hook is not None:
                await hook()

    async def until_read_again(self) -> None:
        reads = self.reads
        await eventually(lambda: self.reads >= reads + 2)


@pytest.fixture
def asked(database: Database) -> AskedDatabase:
    return AskedDatabase(database)


@pytest.fixture
async def watching(asked: AskedDatabase, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveUpdates]:
    """Looks when it is told to, and only then."""
    monkeypatch.setattr(operation, "POLL_SECONDS", 3600)
    monkeypatch.setattr(operation, "LATE_BY", timedelta(minutes=2))
    opened = LiveUpdates(asked)
    yield opened
    await opened.close()


@pytest.fixture
def polling(watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch) -> LiveUpdates:
    """Looks all the time."""
    monkeypatch.setattr(operation, "POLL_SECONDS", 0)
    monkeypatch.setattr(operation, "LONGEST_PAUSE_SECONDS", 0)
    return watching


async def started(watching: LiveUpdates, project_id: UUID) -> Watcher:
    """A watcher who has got all that was there before."""
    watcher = await watching.watch(project_id, None)
    await watching.run_once()
    watcher.take()
    return watcher


def is_current(watching: LiveUpdates) -> bool:
    return watching.is_current


def told(news: BoardChanges) -> dict[str, Status]:
    return {unit.code: unit.status for unit in news.units}


async def test_a_change_is_told_once_to_everybody_who_watches_its_project_and_read_once_for_all(
    database: Database, asked: AskedDatabase, watching: LiveUpdates
) -> None:
    project_id, other_id = await new_units(database, "A-1", "A-2"), await new_project(database, "other")
    first, second, other = [await started(watching, one) for one in (project_id, project_id, other_id)]
    first.take()
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    before = asked.reads
    await watching.run_once()
    assert asked.reads == before + 1
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


async def test_the_latest_state_of_each_unit_is_told(database: Database, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1", "A-3")
    booking = await hold(database, (project_id, "A-3"))
    watcher = await started(watching, project_id)
    await store(database, replacement(project_id, "A-1", 5), replacement(project_id, "A-2"))
    await watching.run_once()
    await store(database, replacement(project_id, "A-1", 6))
    # Nobody writes its end.
    await make_lapse(database, booking)
    await watching.run_once()
    news = watcher.take()
    assert told(news) == dict.fromkeys(("A-1", "A-2", "A-3"), Status.AVAILABLE)
    assert [unit.price_sar for unit in news.units if unit.code == "A-1"] == [6]
    assert news.counts is not None
    assert news.counts.total == 3


async def test_whoever_comes_back_is_told_what_changed(database: Database, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    # As if the other one had been stored long ago.
    await claim(database, "A-2", Status.RESERVED, 3600)
    await execute(database, "update unit set updated_at = now() - interval '1 hour' where code = 'A-2'")
    left_at = await database.read(current_time)
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    watcher = await watching.watch(project_id, left_at)
    await watcher.wait()
    news = watcher.take()
    assert told(news) == {"A-1": Status.UNAVAILABLE}
    assert news.counts is not None
    news = (await watching.watch(project_id, left_at - timedelta(days=1))).take()
    assert (news.everything, news.units) == (True, [])
    assert news.counts is not None


async def test_another_layout_is_another_picture(database: Database, watching: LiveUpdates) -> None:
    async def moment() -> datetime:
        return await database.read(current_time)

    project_id = await new_units(database, "A-1")
    turn = (await database.read(boards.layout_turns, [project_id]))[project_id]
    watcher = await watching.watch(project_id, await moment(), turn)
    await watching.run_once()
    assert not watcher.take().everything
    await database.write(layouts.replace, project_id, {"A-1": Placement("B", 7, 1)})
    await watching.run_once()
    assert watcher.take().everything
    back = await watching.watch(project_id, await moment(), turn)
    assert back.take().everything, "it shows the picture of before"
    back = await watching.watch(project_id, await moment(), turn + 1)
    assert not back.take().everything
    # It may also change before the first look.
    other_id = await new_project(database, "other")
    await store(database, replacement(other_id, "A-1"))
    early = await watching.watch(other_id, None)
    await database.write(layouts.replace, other_id, {"A-1": Placement("B", 7, 1)})
    await watching.run_once()
    assert early.take().everything


async def test_too_many_changes_are_told_as_everything_once(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "MOST_CHANGES", 2)
    project_id = await new_units(database, *(f"B-{number}" for number in range(6)))
    since = await database.read(current_time) + timedelta(milliseconds=1)
    watcher = await watching.watch(project_id, None)
    await watching.run_once()
    news = watcher.take()
    assert (news.everything, news.units) == (True, [])
    await watching.run_once()
    assert not watcher.take().everything
    # Whoever shows them already is not told to show them anew.
    news = (await watching.watch(project_id, since)).take()
    assert (news.everything, news.units) == (False, [])
    await store(database, replacement(project_id, "B-3", 5))
    await watching.run_once()
    assert watcher.take().everything


async def test_catching_up_is_safe(database: Database, asked: AskedDatabase, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1")
    left_at = await database.read(current_time)
    looking: list[asyncio.Task[None]] = []

    async def look_meanwhile() -> None:
        await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
        looking.append(asyncio.create_task(watching.run_once()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert asked.reads == 1, "the look waits for the catch-up, which has read already"

    asked.after_read = look_meanwhile
    watcher = await watching.watch(project_id, left_at)
    await looking[0]
    news = watcher.take()
    assert told(news) == {"A-1": Status.UNAVAILABLE}
    assert news.counts is not None
    assert news.counts.by_status[Status.UNAVAILABLE] == 1


async def test_of_two_versions_the_newer_is_kept(database: Database, watching: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await started(watching, project_id)
    await store(database, replacement(project_id, "A-1", status=Status.UNAVAILABLE))
    await watching.run_once()
    told_at, (newer,), *_ = watcher.take()
    assert told_at is not None
    older = newer._replace(version=newer.version - 1, status=Status.AVAILABLE)
    for one in (newer, older):
        watcher.add(told_at, [one], None)
    assert watcher.take().units == [newer]


async def test_a_look_back_that_cannot_see_all_tells_everything(
    database: Database, watching: LiveUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = await new_units(database, *(f"B-{number}" for number in range(6)))
    watcher = await started(watching, project_id)
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
    watcher = await started(watching, project_id)
    await execute(
        database,
        "update unit set version = version + 1, status = 'unavailable',"
        " created_at = now() - interval '1 hour', updated_at = now() - interval '4 minutes'",
    )
    await watching.run_once()
    assert watcher.take().units == []
    monkeypatch.setattr(operation, "LOOK_BACK_EVERY_SECONDS", -1)
    await watching.run_once()
    assert told(watcher.take()) == {"A-1": Status.UNAVAILABLE}


async def test_polls_are_for_watchers(database: Database, asked: AskedDatabase, polling: LiveUpdates) -> None:
    project_id = await new_units(database, "A-1")
    watcher = await polling.watch(project_id, None)
    looking = polling._polling
    assert looking is not None
    watcher.close()
    watcher.close()
    async with asyncio.timeout(60):
        await looking
    asked.failure = DatabaseUnavailable()
    with pytest.raises(DatabaseUnavailable):
        await polling.watch(project_id, None)
    async with asyncio.timeout(60):
        assert polling._polling is not None
        await polling._polling
    asked.failure = None
    again = await polling.watch(project_id, None)
    await store(database, replacement(project_id, "A-1", 5))
    async with asyncio.timeout(60):
        await again.wait()


async def test_while_the_database_is_away_nobody_is_told_to_be_up_to_date(
    asked: AskedDatabase,
    polling: LiveUpdates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(operation, "monotonic", lambda: clock[0])
    project_id = await new_units(asked, "A-1")
    watcher = await polling.watch(project_id, None)
    await polling.run_once()
    assert is_current(polling)
    for failure in (DatabaseUnavailable(), LookupError("a bug")):
        asked.failure = failure
        await asked.until_read_again()
        clock[0] += 10
        await asked.until_read_again()
        assert not is_current(polling)
    assert caplog.messages[0] == "boards are not kept up to date: the database is unavailable"
    assert caplog.messages.count(caplog.messages[0]) == 1
    assert caplog.messages[-1] == "the changes of boards could not be loaded"
    asked.failure = None
    await store(asked, replacement(project_id, "A-1", 5))
    async with asyncio.timeout(60):
        while not any(unit.price_sar == 5 for unit in watcher.take().units):
            await watcher.wait()
    assert is_current(polling)
