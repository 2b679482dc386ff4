"""A few connections, shared by those who need one for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import asyncpg

WAIT_SECONDS = 5.0
CLOSE_SECONDS = 1.0

# What leaves a connection in the middle of something, as being cancelled does. Any other failure is an
# answer, and the connection is as good as before.
_LOST = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# An answer, but the last one: the server closes the connection, though the driver does not know it yet.
_ENDED_BY_SERVER = ("08", "57P", "25P03")


class Connections:
    """Opened when first needed, kept for good, replaced when lost.

    The driver's own pool wraps every call, and gives a connection back in a task of its own, which
    together take longer than the statements of a small batch.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection]],
        size: int,
    ) -> None:
        self._connect = connect
        self._plans = 0
        self._plans_of: WeakKeyDictionary[asyncpg.Connection, int] = WeakKeyDictionary()
        self._size = size
        self._turns = asyncio.Semaphore(size)
        self._idle: list[asyncpg.Connection] = []
        self._busy: set[asyncpg.Connection] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[asyncpg.Connection]:
        await self._take_turn()
        try:
            connection = self._kept() or await self._connect()
            self._busy.add(connection)
            try:
                await self._plan_anew(connection)
                yield connection
            except asyncio.CancelledError:
                connection.terminate()
                raise
            except _LOST:
                self._give_up(connection)
                raise
            except asyncpg.PostgresError as failure:
                if (failure.sqlstate or "").startswith(_ENDED_BY_SERVER):
                    self._give_up(connection)
                raise
            finally:
                self._busy.remove(connection)
                if not connection.is_closed():
                    self._idle.append(connection)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Waits a while for those who use a connection, then takes it away."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for _ in range(self._size):
                    await self._turns.acquire()
                for connection in self._idle:
                    await connection.close()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            for connection in (*self._idle, *self._busy):
                connection.terminate()

    async def _take_turn(self) -> None:
        if self._turns.locked():
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turns.acquire()
        else:
            await self._turns.acquire()

    def forget_plans(self) -> None:
        """Each connection plans its statements anew when it is next used."""
        self._plans += 1

    async def _plan_anew(self, connection: asyncpg.Connection) -> None:
        if self._plans_of.setdefault(connection, self._plans) != self._plans:
            self._plans_of[connection] = self._plans
            await connection.execute("discard plans")

    def _give_up(self, connection: asyncpg.Connection) -> None:
        """And the idle ones with it: what befell it has likely befallen them, and each would be found out
        only by waiting for an answer."""
        connection.terminate()
        while self._idle:
            self._idle.pop().terminate()

    def _kept(self) -> asyncpg.Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None
