"""Commands for the write path, and what came of them."""

from collections.abc import Sequence
from typing import Any

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Holder
from holdfast.domain.holds import HoldLimits
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.write_path import Command, Outcome, WriteResult, write
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey
from tests.support.sales import new_opening

LIMITS = HoldLimits(per_visitor=3, per_address=3, rehold_seconds=60)


async def opening(database: Database, key: UnitKey, holder: Holder | None = None) -> HoldUnit:
    return HoldUnit(key, COMMAND, await new_opening(database, holder=holder, limits=LIMITS))


async def rows(database: Database, statement: str) -> list[tuple[Any, ...]]:
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.fetch(statement)]


async def all_done(database: Database, commands: Sequence[Command]) -> list[WriteResult]:
    outcomes = await write(database, commands)
    assert all(isinstance(outcome, WriteResult) for outcome in outcomes), outcomes
    return [outcome for outcome in outcomes if isinstance(outcome, WriteResult)]


def kinds(outcomes: Sequence[Outcome]) -> list[type]:
    return [type(outcome) for outcome in outcomes]
