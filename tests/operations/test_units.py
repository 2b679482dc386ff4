"""The units, as the integration API uses them."""

import pytest

from holdfast.domain.errors import DatabaseUnavailable, UnknownProject
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from tests.support.inventory import SLUG, new_project, replacement


async def test_a_project_that_went_with_its_database_is_forgotten_at_the_first_write(
    database: Database,
) -> None:
    inventory = Units(database)
    project_id = await new_project(database)
    assert await inventory.project_id(SLUG) == project_id
    async with database.writing() as connection:
        await connection.execute("delete from project")
    with pytest.raises(DatabaseUnavailable):
        await inventory.write(replacement(project_id, "A-1"))
    with pytest.raises(UnknownProject):
        await inventory.project_id(SLUG)
