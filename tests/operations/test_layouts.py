"""Units are moved one by one, concurrent moves do not undo each other, and much is computed in a thread."""

import asyncio
import json
from threading import get_ident
from uuid import UUID

import pytest

from holdfast.domain.errors import InvalidInput
from holdfast.domain.layout import Placement
from holdfast.operations.layouts import run_in_thread
from holdfast.operations.projects import Move, Projects
from holdfast.operations.units import Units
from holdfast.storage import audit, projects
from holdfast.storage.database import Database
from tests.operations.scene import STAFF, until_somebody_waits
from tests.support.inventory import SLUG
from tests.support.sales import new_units

CODES = [f"A-1{number:02}" for number in range(1, 6)]


@pytest.fixture
def own(database: Database) -> Projects:
    return Projects(database, Units(database))


async def chosen(own: Projects) -> dict[str, Placement]:
    return {one.code: one.placement for one in await own.layout(SLUG) if not one.is_guessed}


async def entries(database: Database, project_id: UUID) -> list[dict[str, object]]:
    found = await database.read(audit.history, project_id, 2**62, 100)
    return [json.loads(entry.after)["places"] for entry in found if entry.action == "arrange"]


async def test_a_unit_is_moved_by_parts_and_moved_back(database: Database, own: Projects) -> None:
    project_id = await new_units(database, *CODES)
    assert await own.move_units(SLUG, {"A-101": {"building": "Tower"}, "A-102": {"floor": -2}}, STAFF) == 2
    assert await own.move_units(SLUG, {"A-101": {"position": 9}}, STAFF) == 1
    assert await chosen(own) == {"A-101": Placement("Tower", 1, 9), "A-102": Placement("A", -2, 2)}
    assert await own.move_units(SLUG, {"A-101": None, "A-104": None}, STAFF) == 1
    assert list(await chosen(own)) == ["A-102"]
    *_, last = await entries(database, project_id)
    assert last == {
        "A-101": {"building": "Tower", "floor": 1, "position": 1},
        "A-102": {"building": "A", "floor": -2, "position": 2},
    }


async def test_a_move_to_the_same_place_changes_nothing(database: Database, own: Projects) -> None:
    project_id = await new_units(database, *CODES)
    assert await own.move_units(SLUG, {"A-101": {"building": "A", "floor": 1, "position": 1}}, STAFF) == 0
    assert await own.move_units(SLUG, {}, STAFF) == 0
    with pytest.raises(InvalidInput):
        await own.move_units(SLUG, {"A-101": {"floor": 7}, "nowhere": None}, STAFF)
    assert await chosen(own) == {}
    assert await entries(database, project_id) == []
    # Nor do settings that are sent again.
    for _ in range(2):
        assert (await own.settle(SLUG, {"hold_seconds": 60.0}, STAFF)).hold_seconds == 60
    settled = await database.read(audit.history, project_id, 2**62, 100)
    assert [entry.action for entry in settled].count("settle") == 1


async def test_units_moved_at_the_same_time_have_all_moved(database: Database, own: Projects) -> None:
    project_id = await new_units(database, *CODES)
    moves = [own.move_units(SLUG, {code: {"floor": at}}, STAFF) for at, code in enumerate(CODES, start=2)]
    assert await asyncio.gather(*moves) == [1] * len(CODES)
    assert await chosen(own) == {code: Placement("A", at, at - 1) for at, code in enumerate(CODES, start=2)}
    assert len(await entries(database, project_id)) == len(CODES)
    parts: list[Move] = [{"building": "Tower"}, {"floor": 70}, {"position": 90}]
    await asyncio.gather(*(own.move_units(SLUG, {"A-101": part}, STAFF) for part in parts))
    assert (await chosen(own))["A-101"] == Placement("Tower", 70, 90)


async def test_a_move_waits_for_whoever_arranges_the_whole_layout(database: Database, own: Projects) -> None:
    project_id = await new_units(database, *CODES)
    async with database.writing() as connection:
        await projects.get(connection, project_id, lock=True)
        moving = asyncio.create_task(own.move_units(SLUG, {"A-101": {"floor": 7}}, STAFF))
        await until_somebody_waits(database)
        assert not moving.done()
    assert await moving == 1


async def test_a_page_of_the_layout_goes_by_codes(database: Database, own: Projects) -> None:
    await new_units(database, *CODES, "Villa 1")
    await own.move_units(SLUG, {"A-103": {"floor": 7}}, STAFF)
    page = await own.layout_page(SLUG, "A-101", 2)
    assert [(one.code, one.placement.floor, one.is_guessed) for one in page] == [
        ("A-102", 1, True),
        ("A-103", 7, False),
        ("A-104", 1, True),
    ]
    assert [one.code for one in await own.layout_page(SLUG, "", 9, "villa")] == ["Villa 1"]
    assert await own.layout_page(SLUG, "", 9, "%") == []


async def test_long_work_runs_in_a_thread_and_short_work_at_once(anyio_backend: str) -> None:
    assert await run_in_thread(10, get_ident) == get_ident()
    assert await run_in_thread(100_000, get_ident) != get_ident()
    for things in (10, 100_000):
        assert await run_in_thread(things, sorted, [3, 1, 2], reverse=True) == [3, 2, 1]
        with pytest.raises(ValueError, match="x"):
            await run_in_thread(things, int, "x")
