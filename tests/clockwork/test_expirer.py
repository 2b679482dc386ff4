"""The loop that releases: everything that is over in one round, then a pause until the next end."""

import pytest

from holdfast.clockwork import expirer
from holdfast.clockwork.expirer import LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS, Expirer
from holdfast.clockwork.runner import Loop
from holdfast.operations.expiring import Expiry
from holdfast.storage.database import Database
from tests.support.sales import hold, make_lapse, new_units

HELD = "select count(*) from unit where status = 'held'"


async def count(database: Database, statement: str) -> int:
    async with database.reading() as connection:
        return int(await connection.fetchval(statement))


async def test_where_nothing_is_held_it_looks_again_after_its_longest_pause(database: Database) -> None:
    loop: Loop = Expirer(Expiry(database))
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS


async def test_an_end_far_away_does_not_make_it_miss_one_that_begins_meanwhile(database: Database) -> None:
    await hold(database, (await new_units(database, "A-1"), "A-1"), hold_seconds=300)
    assert await Expirer(Expiry(database)).run_once() == LONGEST_PAUSE_SECONDS


async def test_it_pauses_no_longer_than_until_the_next_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expirer, "LONGEST_PAUSE_SECONDS", 10_000)
    project_id = await new_units(database, "A-1", "A-2")
    await hold(database, (project_id, "A-1"), hold_seconds=1000)
    await hold(database, (project_id, "A-2"), hold_seconds=500)
    assert 0 < await Expirer(Expiry(database)).run_once() <= 500


async def test_what_is_over_is_released_and_paused_after(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2")
    await make_lapse(database, await hold(database, (project_id, "A-1")))
    await hold(database, (project_id, "A-2"))
    assert await Expirer(Expiry(database)).run_once() == LONGEST_PAUSE_SECONDS
    assert await count(database, HELD) == 1


async def test_what_somebody_has_locked_is_tried_again_at_once_but_not_without_a_breath(
    database: Database,
) -> None:
    project_id = await new_units(database, "A-1")
    await make_lapse(database, await hold(database, (project_id, "A-1")))
    loop = Expirer(Expiry(database))
    async with database.writing() as writer:
        await writer.execute("select from unit for update")
        assert await loop.run_once() == SHORTEST_PAUSE_SECONDS
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    assert await count(database, HELD) == 0


@pytest.mark.parametrize("lapsed", [4, 5, 6, 23])
async def test_one_round_releases_all_however_many(
    database: Database, monkeypatch: pytest.MonkeyPatch, lapsed: int
) -> None:
    monkeypatch.setattr(expirer, "RELEASED_AT_ONCE", 5)
    codes = [f"A-{number:02}" for number in range(lapsed)]
    project_id = await new_units(database, *codes)
    await make_lapse(database, *[await hold(database, (project_id, code)) for code in codes])
    assert await Expirer(Expiry(database)).run_once() == LONGEST_PAUSE_SECONDS
    assert await count(database, HELD) == 0
    assert await count(database, "select count(*) from event where type = 'unit.released'") == lapsed
