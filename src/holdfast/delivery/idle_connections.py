"""Connections that wait for their next request, bounded in number and in time."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import NamedTuple

from holdfast.delivery.connection import Connection

MOST_IN_ALL = 1024
MOST_PER_ORIGIN = 256
# So that a name that moves is followed, and no receiver keeps one worker's connections for ever.
LONGEST_LIFE_SECONDS = 60.0
_SWEEP_SECONDS = 0.5
# The transport cuts it short after one.
_LONGEST_GOODBYE_SECONDS = 2.0


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class IdleConnections:
    """The last to come is the first to go, so that what a burst left over is not kept awake."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, list[Connection]] = {}
        self._origins: dict[Connection, Origin] = {}
        self._leaving: set[asyncio.Future[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._origins)

    def take(self, origin: Origin) -> Connection | None:
        waiting = self._by_origin.get(origin)
        now = perf_counter()
        while waiting:
            connection = waiting.pop()
            del self._origins[connection]
            if connection.is_open and now < connection.usable_until:
                return connection
            self._let_go(connection)
        return None

    def put(self, origin: Origin, connection: Connection, idle_seconds: float) -> None:
        now = perf_counter()
        if not connection.is_open or now > connection.made_at + LONGEST_LIFE_SECONDS:
            self._let_go(connection)
            return
        connection.usable_until = now + idle_seconds
        waiting = self._by_origin.setdefault(origin, [])
        if len(waiting) >= MOST_PER_ORIGIN:
            self._drop(waiting[0])
        elif len(self._origins) >= MOST_IN_ALL:
            self._drop(next(iter(self._origins)))
        waiting.append(connection)
        self._origins[connection] = origin
        if self._sweep is None:
            self._sweep_later()

    async def close(self) -> None:
        """All that wait and all that are on their way out are gone after this."""
        for connection in list(self._origins):
            self._drop(connection)
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_LONGEST_GOODBYE_SECONDS)

    def _drop(self, connection: Connection) -> None:
        self._by_origin[self._origins.pop(connection)].remove(connection)
        self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        """Where TLS is in use its goodbye takes a moment, for which the connection is still ours."""
        if not connection.lost.done():
            self._leaving.add(connection.lost)
            connection.lost.add_done_callback(self._leaving.discard)
            connection.close()

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep_now)

    def _sweep_now(self) -> None:
        now = perf_counter()
        for connection in [idle for idle in self._origins if not idle.is_open or now >= idle.usable_until]:
            self._drop(connection)
        for origin in [origin for origin, waiting in self._by_origin.items() if not waiting]:
            del self._by_origin[origin]
        self._sweep = None
        if self._origins:
            self._sweep_later()
