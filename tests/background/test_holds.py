"""The loop that releases expired holds: rounds until none is left, then a pause until the next end."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.background import holds
from holdfast.background.holds import LONGEST_PAUSE_SECONDS, SHORTEST_PAUSE_SECONDS, HoldExpiryLoop
from holdfast.storage.database import BACKGROUND, Database
from holdfast.storage.holds import is_foreground_busy
from tests.support.sales import hold, make_lapse, new_units, reserve
from tests.support.sql import MAY_IDLE, REFUSE, execute, value

HELD = "select count(*) from unit where status = 'held'"
RELEASED = "select count(*) from event where type = 'unit.released'"


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    """Of the background, where the loop runs; the foreground is idle."""
    async with Database(postgres_url, name=BACKGROUND, settings=MAY_IDLE) as opened:
        yield opened


async def add_lapsed(database: Database, number: int) -> None:
    codes = [f"A-{at:02}" for at in range(number)]
    project_id = await new_units(database, *codes)
    await make_lapse(database, *[await hold(database, (project_id, code)) for code in codes])


async def until_the_foreground_is_idle(database: Database) -> None:
    async with asyncio.timeout(60):
        while await database.read(is_foreground_busy):
            continue


async def test_it_pauses_until_the_next_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the next end is far away: a hold that begins meanwhile may be shorter."""
    loop = HoldExpiryLoop(database)
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    project_id = await new_units(database, "A-1", "A-2")
    await reserve(database, (project_id, "A-1"), seconds=1000)
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    monkeypatch.setattr(holds, "LONGEST_PAUSE_SECONDS", 10_000)
    assert 500 < await loop.run_once() <= 1000
    await hold(database, (project_id, "A-2"), hold_seconds=500)
    assert 0 < await loop.run_once() <= 500
    assert await value(database, HELD) == 1


async def test_a_locked_unit_is_tried_again_after_the_shortest_pause(database: Database) -> None:
    await add_lapsed(database, 1)
    loop = HoldExpiryLoop(database)
    async with database.writing() as writer:
        await writer.execute("select from unit for update")
        assert await loop.run_once() == SHORTEST_PAUSE_SECONDS
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    assert await value(database, HELD) == 0


async def test_a_unit_that_cannot_be_released_is_tried_again_later(database: Database) -> None:
    """Until then the loop pauses as if there were no such unit."""
    await add_lapsed(database, 3)
    refused = REFUSE.format(table="unit", state="raise_exception", condition="new.code = 'A-01'")
    await execute(database, refused)
    loop = HoldExpiryLoop(database)
    assert [await loop.run_once() for _ in range(2)] == [LONGEST_PAUSE_SECONDS] * 2
    assert await value(database, HELD) == 1
    await execute(database, "drop trigger refuse on unit")
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    assert await value(database, HELD) == 1
    loop._failed = dict.fromkeys(loop._failed, 0.0)
    await loop.run_once()
    assert await value(database, HELD) == 0


@pytest.mark.parametrize(("lapsed", "left"), [(1, []), (2, [0]), (3, [1]), (30, [28, 4])])
async def test_round_follows_upon_round_until_all_are_released(
    database: Database, monkeypatch: pytest.MonkeyPatch, lapsed: int, left: list[int]
) -> None:
    """One batch of two, then four in each of three lanes; between the rounds it can be told to stop."""
    monkeypatch.setattr(holds, "EXPIRED_AT_ONCE", 2)
    await add_lapsed(database, lapsed)
    loop = HoldExpiryLoop(database)
    for still_held in left:
        assert await loop.run_once() == 0
        assert await value(database, HELD) == still_held
    assert await loop.run_once() == LONGEST_PAUSE_SECONDS
    assert await value(database, HELD) == 0
    assert await value(database, RELEASED) == lapsed


async def test_while_the_foreground_is_busy_it_does_less_at_a_time_and_pauses_in_between(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "EXPIRED_AT_ONCE", 2)
    await add_lapsed(database, 10)
    loop = HoldExpiryLoop(database)
    async with Database(postgres_url, settings=MAY_IDLE) as foreground, foreground.writing() as other:
        await other.execute("select")
        for still_held in (8, 4):
            assert await loop.run_once() > 0
            assert await value(database, HELD) == still_held
    await until_the_foreground_is_idle(database)
    assert await loop.run_once() == 0
    assert await value(database, HELD) == 0


async def test_the_foreground_is_busy_just_after_a_statement(database: Database, postgres_url: str) -> None:
    seen = []
    async with Database(postgres_url) as foreground, foreground.reading() as other:
        # On a machine that is very busy the moment may be over before it is asked for.
        for _ in range(20):
            await other.execute("select")
            seen.append(await database.read(is_foreground_busy))
        assert any(seen)
        await until_the_foreground_is_idle(database)
