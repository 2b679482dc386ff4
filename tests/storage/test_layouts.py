"""Where staff have put units: the chosen places, whole or not at all."""

from uuid import UUID

import pytest

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.layout import Placement
from holdfast.operations.projects import Projects
from holdfast.operations.units import Units
from holdfast.storage import layouts, units
from holdfast.storage.database import Connection, ConstraintViolated, Database
from tests.support.inventory import new_project, replacement, store

CHOSEN = {
    "A-1": Placement("Tower", -2, 1),
    "A-2": Placement(None, None, None),
    "شقة": Placement("ب", 200, 999),
}


async def chosen_places(connection: Connection, project_id: UUID) -> dict[str, Placement]:
    return {
        unit.code: unit.chosen for unit in await layouts.list_units(connection, project_id) if unit.chosen
    }


async def test_chosen_places_are_read_back_and_the_others_are_not_there(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, *(replacement(project_id, code) for code in [*CHOSEN, "A-3"]))
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, CHOSEN)
    async with database.reading() as connection:
        assert await chosen_places(connection, project_id) == CHOSEN
        units = await layouts.list_units(connection, project_id)
    assert [unit.code for unit in units] == sorted([*CHOSEN, "A-3"])


async def test_a_layout_replaces_the_one_before_it_and_no_other_project_is_touched(
    database: Database,
) -> None:
    project_id, other_id = await new_project(database), await new_project(database, "other")
    await store(database, *(replacement(one, code) for one in (project_id, other_id) for code in CHOSEN))
    async with database.writing() as connection:
        for one in (project_id, other_id):
            await layouts.replace(connection, one, CHOSEN)
        await layouts.replace(connection, project_id, {"A-2": Placement("B", 1, 1)})
    async with database.reading() as connection:
        assert await chosen_places(connection, project_id) == {"A-2": Placement("B", 1, 1)}
        assert await chosen_places(connection, other_id) == CHOSEN
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, {})
        assert await chosen_places(connection, project_id) == {}


async def test_a_code_of_no_unit_is_not_kept(database: Database) -> None:
    project_id = await new_project(database)
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, {"nowhere": Placement("A", 1, 1)})
        assert await chosen_places(connection, project_id) == {}


@pytest.mark.parametrize("building", ["", "x" * 51])
async def test_a_building_has_a_name_of_bounded_length(database: Database, building: str) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    with pytest.raises(ConstraintViolated):
        async with database.writing() as connection:
            await layouts.replace(connection, project_id, {"A-1": Placement(building, 1, 1)})


STAFF = Author(ActorKind.STAFF, "staff@example.com", "request-1")
CHOSEN_ANEW = [("A-2", Placement("B", 1, 1)), ("A-1", Placement("B", 1, 2))]


async def arrange(database: Database) -> None:
    projects = Projects(database, Units(database))
    await projects.arrange("palm-court", CHOSEN_ANEW, STAFF)


async def test_a_layout_does_not_wait_for_those_who_write_to_its_units(database: Database) -> None:
    project_id = await new_project(database)
    codes = ["A-1", "A-2"]
    await store(database, *(replacement(project_id, code) for code in codes))
    async with database.writing() as connection:
        keys = [(project_id, code) for code in codes]
        await units.load_for_update(connection, database.project_cache, keys, locked=True)
        await connection.execute("update unit set turn = turn + 1 where code = 'A-2'")
        await arrange(database)
    async with database.reading() as connection:
        assert await chosen_places(connection, project_id) == dict(CHOSEN_ANEW)


async def test_those_who_write_to_units_do_not_wait_for_their_layout(database: Database) -> None:
    project_id = await new_project(database)
    await store(database, *(replacement(project_id, code) for code in ("A-1", "A-2")))
    async with database.writing() as connection:
        await layouts.replace(connection, project_id, dict(CHOSEN_ANEW))
        keys = [(project_id, code) for code in ("A-1", "A-2")]
        async with database.writing() as other:
            await units.load_for_update(other, database.project_cache, keys, locked=True)
        await store(database, *(replacement(*key, 5) for key in keys))


UNDO = """
    create function undo() returns trigger language plpgsql as $$
        begin raise exception 'for the sake of another' using errcode = 'deadlock_detected'; end
    $$;
    create trigger undo before insert on unit_place execute function undo()
"""


async def test_a_layout_that_was_undone_for_the_sake_of_another_may_be_sent_again(
    database: Database,
) -> None:
    project_id = await new_project(database)
    await store(database, *(replacement(project_id, code) for code in ("A-1", "A-2")))
    async with database.writing() as connection:
        await connection.execute(UNDO)
    with pytest.raises(DatabaseUnavailable):
        await arrange(database)
    async with database.writing() as connection:
        await connection.execute("drop trigger undo on unit_place")
    await arrange(database)
