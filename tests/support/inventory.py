"""A project with units, made through our own operations, inside the test's process."""

from decimal import Decimal
from uuid import UUID

from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields
from holdfast.operations.projects import add_project
from holdfast.operations.units import ReplaceUnit
from holdfast.operations.write_path import Command, WriteResult, write
from holdfast.storage.database import Database

SLUG = "palm-court"


def fields(price: int = 10**6) -> UnitFields:
    return UnitFields("apartment", Decimal("120.5"), Decimal(price), description="Corner")


def replacement(project_id: UUID, code: str, price: int = 10**6, status: Status | None = None) -> ReplaceUnit:
    return ReplaceUnit((project_id, code), fields(price), status)


async def new_project(database: Database, slug: str = SLUG) -> UUID:
    return (await add_project(database, slug, "Palm Court")).id


async def store(database: Database, *commands: Command) -> list[WriteResult]:
    outcomes = await write(database, commands)
    assert all(isinstance(outcome, WriteResult) for outcome in outcomes), outcomes
    return [outcome for outcome in outcomes if isinstance(outcome, WriteResult)]


async def claim(database: Database, code: str, status: Status, ends_in_seconds: float) -> None:
    """What a buyer's hold or reservation leaves in the row."""
    column = "hold_expires_at" if status is Status.HELD else "reserved_until"
    async with database.writing() as connection:
        await connection.execute(
            f"""
            update unit set status = $2, version = version + 1,
                updated_at = clock_timestamp() + make_interval(secs => least($3, 0) - 1),
                created_at = clock_timestamp() + make_interval(secs => least($3, 0) - 2),
                {column} = clock_timestamp() + make_interval(secs => $3)
            where code = $1
            """,
            code,
            status,
            ends_in_seconds,
        )
