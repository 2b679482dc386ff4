"""The clock's own work: holds and reservations that are over are released, with their events."""

from __future__ import annotations

from holdfast.domain.holds import release
from holdfast.observability.metrics import count_expired
from holdfast.storage import holds
from holdfast.storage.database import Database, TransactionConflict


class HoldExpiry:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def release(self, at_most: int) -> int:
        """Units that another process is about to release, or that a writer has locked, are passed over."""
        try:
            async with self._database.writing() as connection:
                lapsed = await holds.lock_lapsed(connection, at_most)
                if not lapsed:
                    return 0
                claims = await holds.claims(connection, [unit.id for unit in lapsed])
                ended = [release(unit, claims.get(unit.id)) for unit in lapsed]
                deliveries = await holds.store(connection, ended)
        except TransactionConflict:
            return 0
        if deliveries:
            self._database.notify_workers()
        count_expired(len(lapsed))
        return len(lapsed)

    async def does_somebody_wait(self) -> bool:
        """For the database, as nobody does for us."""
        async with self._database.reading() as connection:
            return await holds.does_somebody_wait(connection)

    async def seconds_until_next(self) -> float | None:
        """By the database's clock; None if nothing is held or reserved."""
        async with self._database.reading() as connection:
            return await holds.seconds_until_next_end(connection)
