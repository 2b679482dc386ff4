"""The loop that expires holds and reservations at their time."""

import asyncio
import time
from uuid import UUID

from holdfast.operations.holds import expire_due_holds
from holdfast.storage import holds
from holdfast.storage.database import Database

EXPIRED_AT_ONCE = 1000
LANES = 3
"""While the database works on some batches, the next is decided."""
BATCHES_OF_A_LANE = 4
"""One after the other, before the loop checks again whether others write and whether to stop."""
LANES_WHEN_BUSY = 2
BUSY_BACKOFF_RATIO = 0.65
"""While others write, they come first: the pause after a round is this part of its duration."""
LONGEST_PAUSE_SECONDS = 0.25
"""A hold that begins and ends within a pause expires at most this late."""
SHORTEST_PAUSE_SECONDS = 0.005
"""Before another look at what another process has locked."""


class HoldExpiryLoop:
    name = "hold expiry"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lanes = self._batches = 1
        self._failed: dict[UUID, float] = {}

    async def run_once(self) -> float:
        """Expire some batches in each lane. While more are due, return no pause or a short one."""
        started_at = time.monotonic()
        self._failed = {unit_id: until for unit_id, until in self._failed.items() if until > started_at}
        are_behind = await asyncio.gather(*(self._lane() for _ in range(self._lanes)))
        if not any(are_behind):
            self._lanes = self._batches = 1
            seconds = await self._database.read(holds.seconds_until_next_end, list(self._failed))
            longest = LONGEST_PAUSE_SECONDS
            return longest if seconds is None else min(max(seconds, SHORTEST_PAUSE_SECONDS), longest)
        if await self._database.read(holds.is_foreground_busy):
            self._lanes, self._batches = LANES_WHEN_BUSY, 1
            return min((time.monotonic() - started_at) * BUSY_BACKOFF_RATIO, LONGEST_PAUSE_SECONDS)
        self._lanes, self._batches = LANES, BATCHES_OF_A_LANE
        return 0.0

    async def _lane(self) -> bool:
        """Return whether there is more to do."""
        for _ in range(self._batches):
            if await expire_due_holds(self._database, EXPIRED_AT_ONCE, self._failed) < EXPIRED_AT_ONCE:
                return False
        return True
