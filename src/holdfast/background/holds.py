"""Releases holds and reservations at their time."""

import asyncio
import time

from holdfast.operations.bookings import HoldExpiry

RELEASED_AT_ONCE = 1000
LANES = 3
"""While some batches are in the database's hands, the next is decided."""
BATCHES_OF_A_LANE = 4
"""One after the other, before it is asked again who else is at work, and whether to stop."""
LANES_WHEN_BUSY = 2
BUSY_BACKOFF_RATIO = 0.65
"""The part of a round's time for which it pauses after it, while others write: they come first."""
LONGEST_PAUSE_SECONDS = 0.25
"""So late, at most, is the release of a hold that begins and ends within a pause."""
SHORTEST_PAUSE_SECONDS = 0.005
"""For what another process has locked at this moment."""


class HoldExpiryLoop:
    name = "expirer"

    def __init__(self, expiry: HoldExpiry) -> None:
        self._expiry = expiry
        self._lanes = self._batches = 1

    async def run_once(self) -> float:
        """Some batches in each lane; while it is behind, it is back at once or after a breath."""
        started_at = time.monotonic()
        are_behind = await asyncio.gather(*(self._lane() for _ in range(self._lanes)))
        if not any(are_behind):
            self._lanes = self._batches = 1
            return await self._pause()
        if await self._expiry.is_foreground_busy():
            self._lanes, self._batches = LANES_WHEN_BUSY, 1
            return min((time.monotonic() - started_at) * BUSY_BACKOFF_RATIO, LONGEST_PAUSE_SECONDS)
        self._lanes, self._batches = LANES, BATCHES_OF_A_LANE
        return 0.0

    async def _lane(self) -> bool:
        """Whether there is more to do."""
        for _ in range(self._batches):
            if await self._expiry.expire_due(RELEASED_AT_ONCE) < RELEASED_AT_ONCE:
                return False
        return True

    async def _pause(self) -> float:
        seconds = await self._expiry.seconds_until_next()
        if seconds is None:
            return LONGEST_PAUSE_SECONDS
        return min(max(seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
