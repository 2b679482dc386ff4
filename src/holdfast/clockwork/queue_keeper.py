"""Keeps the queue of deliveries tidy."""

import time

from holdfast.operations.delivery_queue import Tidying

PAUSE_SECONDS = 1.0
REST_PER_WORK = 20.0


class QueueKeeper:
    name = "queue keeper"

    def __init__(self, tidying: Tidying) -> None:
        self._tidying = tidying

    async def run_once(self) -> float:
        """A long look is followed by a longer rest: it is a safety net, not the way things go."""
        started_at = time.monotonic()
        await self._tidying.tidy()
        return max(PAUSE_SECONDS, REST_PER_WORK * (time.monotonic() - started_at))
