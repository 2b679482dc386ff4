"""How long holds and reservations may last is the same in the code and in the database."""

from uuid import UUID

import asyncpg
import pytest

from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.storage.database import Database
from tests.support.inventory import new_project

LONGEST = {"hold_seconds": LONGEST_HOLD_SECONDS, "reservation_days": LONGEST_RESERVATION_DAYS}


async def is_stored(url: str, project_id: UUID, column: str, value: float) -> bool:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"update project set {column} = $2 where id = $1", project_id, value)
    except asyncpg.CheckViolationError:
        return False
    finally:
        await connection.close()
    return True


@pytest.mark.parametrize("column", LONGEST)
async def test_the_longest_period_of_the_code_is_that_of_the_database(
    database: Database, postgres_url: str, column: str
) -> None:
    project_id = await new_project(database)
    longest = LONGEST[column]
    values = (0, 0.00001, longest, longest + 0.001)
    stored = [await is_stored(postgres_url, project_id, column, value) for value in values]
    assert stored == [False, True, True, False]
