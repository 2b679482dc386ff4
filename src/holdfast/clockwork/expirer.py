"""Releases holds and reservations at their time."""

import asyncio
import time

from holdfast.operations.expiring import Expiry

RELEASED_AT_ONCE = 1000
LANES = 3
"""While some batches are in the database's hands, the next is decided."""
LANES_IN_COMPANY = 2
BREATH_IN_COMPANY = 0.8
"""The part of a round's time for which it pauses after it, while others write: they come first."""
LONGEST_PAUSE_SECONDS = 0.25
"""So late, at most, is the release of a hold that begins and ends within a pause."""
SHORTEST_PAUSE_SECONDS = 0.005
"""For what another process has locked at this moment."""


class Expirer:
    name = "expirer"

    def __init__(self, expiry: Expiry) -> None:
        self._expiry = expiry
        self._lanes = 1

    async def run_once(self) -> float:
        """One batch for each lane; while it is behind, it is back at once or after a breath."""
        started_at = time.monotonic()
        batches = (self._expiry.release(RELEASED_AT_ONCE) for _ in range(self._lanes))
        is_behind = max(await asyncio.gather(*batches)) >= RELEASED_AT_ONCE
        if not is_behind:
            self._lanes = 1
            return await self._pause()
        if await self._expiry.does_somebody_wait():
            self._lanes = LANES_IN_COMPANY
            return (time.monotonic() - started_at) * BREATH_IN_COMPANY
        self._lanes = LANES
        return 0.0

    async def _pause(self) -> float:
        seconds = await self._expiry.seconds_until_next()
        if seconds is None:
            return LONGEST_PAUSE_SECONDS
        return min(max(seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
