"""Releases holds and reservations at their time."""

import asyncio

from holdfast.operations.expiring import Expiry

RELEASED_AT_ONCE = 500
LANES = 2
"""While one batch is in the database's hands, the next is decided."""
LONGEST_PAUSE_SECONDS = 0.25
"""A hold that begins and ends within a pause is released at its end."""
SHORTEST_PAUSE_SECONDS = 0.005
"""For what another process has locked at this moment."""


class Expirer:
    name = "expirer"

    def __init__(self, expiry: Expiry) -> None:
        self._expiry = expiry

    async def run_once(self) -> float:
        released = await self._expiry.release(RELEASED_AT_ONCE)
        while released >= RELEASED_AT_ONCE:
            released = max(
                await asyncio.gather(*(self._expiry.release(RELEASED_AT_ONCE) for _ in range(LANES)))
            )
        seconds = await self._expiry.seconds_until_next()
        if seconds is None:
            return LONGEST_PAUSE_SECONDS
        return min(max(seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
