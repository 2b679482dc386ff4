"""How endpoints have fared in the last day, hour by hour."""

from __future__ import annotations

from datetime import timedelta

from holdfast.storage import delivery_log
from holdfast.storage.database import Database

SETTLED_AFTER = timedelta(seconds=5)
LONGEST_STRETCH = timedelta(hours=1)


class DeliveryHours:
    def __init__(self, database: Database, settled_after: timedelta = SETTLED_AFTER) -> None:
        self._database = database
        self._settled_after = settled_after

    async def count_on(self) -> bool:
        """Count what ended since the last time, an hour's worth at most; whether there is more."""
        async with self._database.writing() as connection:
            found = await delivery_log.lock_uncounted(connection, self._settled_after)
            if found is None or found.settled <= found.since:
                return False
            upto = min(found.settled, found.since + LONGEST_STRETCH)
            await delivery_log.count_hours(connection, found.since, upto)
            return upto < found.settled
