"""Notifications of workers that there is something to send.

PostgreSQL lets one notifying transaction commit at a time, so a notification is never part of a change. It
follows the change, and many changes share one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

LOST_CONNECTION = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""The driver's errors when there is no answer: timeouts too, and a standby in place of a primary."""

CHANNEL = "holdfast_deliveries"
NOTIFY = f"notify {CHANNEL}"
GAP_SECONDS = 0.01
"""Between two notifications of one process."""
ALIVE_SECONDS = 5.0
"""So often a listener checks its connection."""
PAUSE_AFTER_FAILURE_SECONDS = 1.0
CLOSE_SECONDS = 1.0

_FAILED = (asyncpg.PostgresError, *LOST_CONNECTION)
_log = logging.getLogger(__name__)


class Notifier:
    """Sends the first notification at once, and one for all that are requested meanwhile."""

    def __init__(self, send: Callable[[], Awaitable[None]]) -> None:
        self._send = send
        self._requested = False
        self._sending: asyncio.Task[None] | None = None

    def notify(self) -> None:
        self._requested = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._sending is not None:
            await asyncio.wait((self._sending,), timeout=CLOSE_SECONDS)

    async def _run(self) -> None:
        with suppress(*_FAILED):
            while self._requested:
                self._requested = False
                await self._send()
                await asyncio.sleep(GAP_SECONDS)


async def listen(
    connect: Callable[[], Awaitable[asyncpg.Connection]], wake: Callable[[], None], stop: asyncio.Event
) -> None:
    """Call ``wake`` on each notification, until ``stop``. A lost connection is replaced."""
    while not stop.is_set():
        try:
            connection = await connect()
        except _FAILED:
            _log.warning("cannot listen for new deliveries; polling for them until the connection is back")
        else:
            await _listen(connection, wake, stop)
        await _pause(stop, PAUSE_AFTER_FAILURE_SECONDS)


async def _listen(connection: asyncpg.Connection, wake: Callable[[], None], stop: asyncio.Event) -> None:
    try:
        await connection.add_listener(CHANNEL, lambda *_: wake())
        # Some may have come before.
        wake()
        while not stop.is_set():
            await _pause(stop, ALIVE_SECONDS)
            if await connection.fetchval("show transaction_read_only") == "on":
                raise ConnectionError("Another server takes writes now.")
    except _FAILED:
        _log.warning("the connection that listens for new deliveries was lost")
    finally:
        connection.terminate()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
