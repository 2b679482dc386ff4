"""The loop that releases: round upon round until nothing is over, then a pause until the next end."""

from collections.abc import AsyncIterator

import pytest

from holdfast.background import holds
from holdfast.background.holds import LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS, HoldExpiryLoop
from holdfast.background.jobs import Loop
from holdfast.storage import holds as storage_holds
from holdfast.storage.database import BACKGROUND, Connection, Database
from tests.support.sales import hold, make_lapse, new_units

HELD = "select count(*) from unit where status = 'held'"


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    """Of the background, where the loop runs; the foreground is at rest."""
    async with Database(postgres_url, name=BACKGROUND) as opened:
        yield opened


async def count(database: Database, statement: str) -> int:
    async with database.reading() as connection:
        return int(await connection.fetchval(statement))


async def test_where_nothing_is_held_it_looks_again_after_its_longest_pause(database: Database) -> None:
    loop: Loop = HoldExpiryLoop(database)
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS


async def test_an_end_far_away_does_not_make_it_miss_one_that_begins_meanwhile(database: Database) -> None:
    await hold(database, (await new_units(database, "A-1"), "A-1"), hold_seconds=300)
    assert await HoldExpiryLoop(database).run_once() == LONGEST_PAUSE_SECONDS


async def test_it_pauses_no_longer_than_until_the_next_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "LONGEST_PAUSE_SECONDS", 10_000)
    project_id = await new_units(database, "A-1", "A-2")
    await hold(database, (project_id, "A-1"), hold_seconds=1000)
    await hold(database, (project_id, "A-2"), hold_seconds=500)
    assert 0 < await HoldExpiryLoop(database).run_once() <= 500


async def test_what_is_over_is_released_and_paused_after(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    await make_lapse(database, await hold(database, (project_id, "A-1")))
    await hold(database, (project_id, "A-2"))
    assert await HoldExpiryLoop(database).run_once() == LONGEST_PAUSE_SECONDS
    assert await count(database, HELD) == 1


async def test_what_somebody_has_locked_is_tried_again_at_once_but_not_without_a_breath(
    database: Database,
) -> None:
    project_id = await new_units(database, "A-1")
    await make_lapse(database, await hold(database, (project_id, "A-1")))
    loop = HoldExpiryLoop(database)
    async with database.writing() as writer:
        await writer.execute("select from unit for update")
        assert await loop.run_once() == SHORTEST_PAUSE_SECONDS
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    assert await count(database, HELD) == 0


async def many_lapsed(database: Database, count: int) -> None:
    codes = [f"A-{number:02}" for number in range(count)]
    project_id = await new_units(database, *codes)
    await make_lapse(database, *[await hold(database, (project_id, code)) for code in codes])


@pytest.mark.parametrize(
    ("lapsed", "left"), [(4, []), (5, [0]), (6, [1]), (85, [80, 20])], ids=["few", "five", "six", "many"]
)
async def test_round_follows_upon_round_until_all_is_released(
    database: Database, monkeypatch: pytest.MonkeyPatch, lapsed: int, left: list[int]
) -> None:
    """One batch of five, then four in each of three lanes; between the rounds it can be told to stop."""
    monkeypatch.setattr(holds, "EXPIRED_AT_ONCE", 5)
    await many_lapsed(database, lapsed)
    loop = HoldExpiryLoop(database)
    for still_held in left:
        assert await loop.run_once() == 0
        assert await count(database, HELD) == still_held
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    assert await count(database, HELD) == 0
    assert await count(database, "select count(*) from event where type = 'unit.released'") == lapsed


async def test_while_somebody_waits_for_the_database_it_does_less_at_a_time_and_pauses_in_between(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "EXPIRED_AT_ONCE", 5)
    await many_lapsed(database, 25)
    loop = HoldExpiryLoop(database)
    async with Database(postgres_url) as foreground, foreground.writing() as other:
        await other.execute("select")
        for still_held in (20, 10):
            assert await loop.run_once() > 0
            assert await count(database, HELD) == still_held
    assert await loop.run_once() == 0
    assert await count(database, HELD) == 0


async def is_seen_after_a_statement(connection: Connection, database: Database) -> bool:
    await connection.execute("select")
    return await database.read(storage_holds.is_foreground_busy)


async def test_whoever_was_at_work_a_moment_ago_is_not_done_yet(
    database: Database, postgres_url: str
) -> None:
    async with Database(postgres_url) as foreground, foreground.reading() as other:
        # On a machine that is very busy the moment may be over before it is asked for.
        assert any([await is_seen_after_a_statement(other, database) for _ in range(20)])
        async with database.reading() as connection:
            await connection.execute("select pg_sleep(0.15)")
        assert not await database.read(storage_holds.is_foreground_busy)
