"""Units are moved one by one, and concurrent moves do not undo each other."""

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.errors import InvalidInput
from holdfast.domain.layout import Placement
from holdfast.operations.projects import Move, Projects
from holdfast.operations.units import Units
from holdfast.storage import audit, projects
from holdfast.storage.database import Database
from tests.operations.test_hold_slots import until_somebody_waits
from tests.support.inventory import SLUG
from tests.support.sales import new_units

STAFF = Author(ActorKind.STAFF, "staff@example.com", "request-1")
CODES = [f"A-1{number:02}" for number in range(1, 21)]


@pytest.fixture
async def own(database: Database) -> AsyncIterator[Projects]:
    inventory = Units(database)
    yield Projects(database, inventory)
    await inventory.close()


async def chosen(own: Projects) -> dict[str, Placement]:
    return {one.code: one.placement for one in await own.layout(SLUG) if not one.is_guessed}


async def entries(database: Database, project_id: UUID) -> list[dict[str, object]]:
    async with database.reading() as connection:
        found = await audit.history(connection, project_id, 2**62, 100)
    return [json.loads(entry.after)["places"] for entry in found if entry.action == "arrange"]


async def test_the_parts_that_are_named_change_and_the_others_stay(database: Database, own: Projects) -> None:
    await new_units(database, *CODES)
    assert await own.move_units(SLUG, {"A-101": {"building": "Tower"}, "A-102": {"floor": -2}}, STAFF) == 2
    assert await own.move_units(SLUG, {"A-101": {"position": 9}}, STAFF) == 1
    assert await chosen(own) == {"A-101": Placement("Tower", 1, 9), "A-102": Placement("A", -2, 2)}


async def test_a_unit_goes_back_to_where_its_code_says(database: Database, own: Projects) -> None:
    await new_units(database, *CODES)
    await own.move_units(SLUG, {code: {"floor": 7} for code in CODES[:3]}, STAFF)
    assert await own.move_units(SLUG, {"A-101": None, "A-104": None}, STAFF) == 1
    assert sorted(await chosen(own)) == ["A-102", "A-103"]


async def test_a_move_to_where_a_unit_stands_changes_nothing_and_is_not_noted(
    database: Database, own: Projects
) -> None:
    project_id = await new_units(database, *CODES)
    assert await own.move_units(SLUG, {"A-101": {"building": "A", "floor": 1, "position": 1}}, STAFF) == 0
    assert await own.move_units(SLUG, {}, STAFF) == 0
    assert await chosen(own) == {}
    assert await entries(database, project_id) == []


async def test_a_unit_that_is_not_there_moves_nobody(database: Database, own: Projects) -> None:
    await new_units(database, *CODES)
    with pytest.raises(InvalidInput):
        await own.move_units(SLUG, {"A-101": {"floor": 7}, "nowhere": None}, STAFF)
    assert await chosen(own) == {}


async def test_the_history_tells_who_moved_what(database: Database, own: Projects) -> None:
    project_id = await new_units(database, *CODES)
    await own.move_units(SLUG, {"A-101": {"floor": 7}}, STAFF)
    assert await entries(database, project_id) == [{"A-101": {"building": "A", "floor": 7, "position": 1}}]


async def test_units_that_are_moved_at_the_same_time_have_all_moved(
    database: Database, own: Projects
) -> None:
    project_id = await new_units(database, *CODES)
    moves = [own.move_units(SLUG, {code: {"floor": at}}, STAFF) for at, code in enumerate(CODES, start=2)]
    assert await asyncio.gather(*moves) == [1] * len(CODES)
    assert await chosen(own) == {code: Placement("A", at, at - 1) for at, code in enumerate(CODES, start=2)}
    assert len(await entries(database, project_id)) == len(CODES)


async def test_different_parts_of_one_place_that_are_changed_at_the_same_time_are_both_kept(
    database: Database, own: Projects
) -> None:
    await new_units(database, "A-101")
    moves: list[Move] = [{"building": "Tower"}, {"floor": 7}, {"position": 9}]
    await asyncio.gather(*(own.move_units(SLUG, {"A-101": move}, STAFF) for move in moves))
    assert await chosen(own) == {"A-101": Placement("Tower", 7, 9)}


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
