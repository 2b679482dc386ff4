"""Hints: workers are told that there is something to send.

PostgreSQL lets one notifying transaction commit at a time, so a hint is never part of a change. It follows
the change, and many changes have one hint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import asyncpg

CHANNEL = "holdfast_deliveries"
NOTIFY = f"notify {CHANNEL}"
GAP_SECONDS = 0.01
"""Between two hints of one process."""
ALIVE_SECONDS = 5.0
"""So often a listener asks whether its connection is still there."""
PAUSE_AFTER_FAILURE_SECONDS = 1.0

_LOST = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_log = logging.getLogger(__name__)


class Hint:
    """The first is told at once; those that come while it is on its way are told together."""

    def __init__(self, tell: Callable[[], Awaitable[None]]) -> None:
        self._tell = tell
        self._wanted = False
        self._telling: asyncio.Task[None] | None = None

    def give(self) -> None:
        self._wanted = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._telling is not None:
            await self._telling

    async def _run(self) -> None:
        while self._wanted:
            self._wanted = False
            try:
                await self._tell()
            except _LOST:
                return
            await asyncio.sleep(GAP_SECONDS)


async def listen(
    connect: Callable[[], Awaitable[asyncpg.Connection]], on_hint: Callable[[], object], stop: asyncio.Event
) -> None:
    """Until ``stop``. A lost connection is made anew; whoever waits for hints polls meanwhile."""
    while not stop.is_set():
        try:
            connection = await connect()
        except _LOST:
            _log.warning("cannot listen for new deliveries; polling for them until the connection is back")
        else:
            await _listen(connection, on_hint, stop)
        await _pause(stop, PAUSE_AFTER_FAILURE_SECONDS)


async def _listen(connection: asyncpg.Connection, on_hint: Callable[[], object], stop: asyncio.Event) -> None:
    def heard(*_: object) -> None:
        on_hint()

    try:
        await connection.add_listener(CHANNEL, heard)
        # What came while nobody listened.
        on_hint()
        while not stop.is_set():
            await _pause(stop, ALIVE_SECONDS)
            await connection.execute("select")
    except _LOST:
        _log.warning("the connection that listens for new deliveries was lost")
    finally:
        connection.terminate()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
