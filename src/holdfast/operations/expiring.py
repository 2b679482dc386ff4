"""The clock's own work: holds and reservations that are over are released, with their events."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holdfast.domain.audit import CLOCK, Author
from holdfast.domain.decision import Decision, Standing, Wanted
from holdfast.observability.metrics import note_released
from holdfast.operations.batch import Batch
from holdfast.operations.command import NOTHING
from holdfast.storage import units
from holdfast.storage.database import Database, TryAgain
from holdfast.storage.units import UnitKey


class Release(NamedTuple):
    """Nothing of its own: whatever the write path finds lapsed it releases first."""

    key: UnitKey

    @property
    def author(self) -> Author:
        return CLOCK

    @property
    def wanted(self) -> Wanted:
        return NOTHING

    def decide(self, standing: Standing, now: datetime) -> Decision:
        assert standing.unit is not None
        return Decision(standing.unit)


class Expiry:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, at_most: int) -> int:
        """Units that another process is about to release, or that a writer has locked, are passed over."""
        try:
            async with self._database.writing() as connection:
                keys = await units.lock_lapsed(connection, at_most)
                if not keys:
                    return 0
                batch = Batch([Release(key) for key in keys], is_final=True)
                await batch.decide(connection, self._database.known_projects, locked=True)
                await batch.store(connection)
        except TryAgain:
            return 0
        note_released(len(keys))
        return len(keys)

    async def seconds_until_next(self) -> float | None:
        """By the database's clock; None if nothing is held or reserved."""
        async with self._database.reading() as connection:
            return await units.seconds_until_next_end(connection)
