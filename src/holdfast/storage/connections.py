"""A pool of connections: asyncpg's, with limits on waiting, which replaces all when one is lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import asyncpg

WAIT_SECONDS = 5.0
CLOSE_SECONDS = 1.0

_LOST = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# The server answers, and then closes the connection, though the driver does not know it yet.
_ENDED_BY_SERVER = ("08", "57P", "25P03")


class _Connection(asyncpg.Connection):
    async def close(self, *, timeout: float | None = None) -> None:
        """Close, also when the server has gone: the pool closes expired ones in a task that nobody awaits."""
        with suppress(OSError):
            await super().close(timeout=timeout)


class Connections:
    """Opened when first needed, kept for good, replaced when lost."""

    def __init__(
        self,
        connect: Callable[..., Coroutine[Any, Any, asyncpg.Connection]],
        database_url: str,
        size: int,
        *,
        command_timeout: float | None = None,
        server_settings: dict[str, str] | None = None,
    ) -> None:
        """``connect`` is called with the URL and the options."""
        self._options: dict[str, Any] = {
            "dsn": database_url,
            "connect": connect,
            "connection_class": _Connection,
            "max_size": size,
            "command_timeout": command_timeout,
            "server_settings": server_settings,
        }
        self._opened: asyncpg.Pool | None = None
        self._turns = asyncio.Semaphore(size)

    async def open(self) -> None:
        """Open the pool in the running loop, without a connection."""
        self._opened = await asyncpg.create_pool(
            min_size=0,
            max_queries=sys.maxsize,
            max_inactive_connection_lifetime=0,
            # No statement in between: the session has no state that the next user must not see.
            reset=_leave_session_as_it_is,
            **self._options,
        )

    @property
    def _pool(self) -> asyncpg.Pool:
        assert self._opened is not None, "The database is not open."
        return self._opened

    @asynccontextmanager
    async def one(self) -> AsyncIterator[asyncpg.Connection]:
        await self._take_turn()
        try:
            acquired = await self._pool.acquire()
            connection = cast(asyncpg.Connection, acquired)
            try:
                yield connection
            except asyncio.CancelledError:
                # Do not wait until the server has cancelled the statement.
                terminate(connection)
                raise
            except _LOST:
                await self._give_up(connection)
                raise
            except asyncpg.PostgresError as failure:
                if (failure.sqlstate or "").startswith(_ENDED_BY_SERVER):
                    await self._give_up(connection)
                raise
            finally:
                await self._pool.release(acquired)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Wait a while for those who use a connection; then asyncpg terminates it."""
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()

    async def expire(self) -> None:
        """Replace each connection when it is next used."""
        await self._pool.expire_connections()

    async def _take_turn(self) -> None:
        """Limit the wait for a connection, and not the time that it takes to connect."""
        if self._turns.locked():
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turns.acquire()
        else:
            await self._turns.acquire()

    async def _give_up(self, connection: asyncpg.Connection) -> None:
        """Replace the idle connections too: they are probably lost as well, which a statement on each of them
        would find out only by waiting."""
        terminate(connection)
        await self._pool.expire_connections()


def terminate(connection: asyncpg.Connection) -> None:
    """Close at once; a connection that was lost has left the pool already, and refuses every call."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def _leave_session_as_it_is(connection: asyncpg.Connection) -> None:
    pass
