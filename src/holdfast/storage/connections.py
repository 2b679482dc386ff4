"""A few connections, shared by those who need one for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

WAIT_SECONDS = 5.0
CLOSE_SECONDS = 5.0

# What leaves a connection in the middle of something. Any other failure is an answer, and the
# connection is as good as before.
_CUT_SHORT = (asyncio.CancelledError, OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class Connections:
    """Opened when first needed, kept for good, replaced when lost.

    The driver's own pool wraps every call, and gives a connection back in a task of its own, which
    together take longer than the statements of a small batch.
    """

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], size: int) -> None:
        self._connect = connect
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
                yield connection
            except _CUT_SHORT:
                connection.terminate()
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

    def _kept(self) -> asyncpg.Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None
