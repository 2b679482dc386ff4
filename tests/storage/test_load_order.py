"""Writers find units in the order in which they asked for them, whatever the planner thinks of the tables."""

from holdfast.storage.database import Database
from holdfast.storage.units import load_for_update
from tests.support.inventory import new_project, replacement, store

MANY = 1000


async def test_many_new_units_of_a_small_project_are_found_in_their_order(database: Database) -> None:
    """Few units, known to be few: a join by hash would look cheap, and give the rows in another order."""
    project_id = await new_project(database)
    await store(database, *(replacement(project_id, f"A-{number:03}") for number in range(60)))
    async with database.writing_autocommit() as connection:
        await connection.execute("vacuum (analyze) unit")
        keys = sorted((project_id, f"Z-{number:04}") for number in range(MANY))
        for locked in (False, True):
            async with connection.transaction():
                _, snapshots = await load_for_update(connection, database.project_cache, keys, locked=locked)
            assert len(snapshots) == MANY
