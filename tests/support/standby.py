"""A synchronous standby that is away, for which every commit waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from tests.support.delivery_engine import eventually
from tests.support.sql import connected

WAITING = "select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'SyncRep'"
SESSIONS = "select count(*) from pg_stat_activity where application_name = $1"
IS_WAITING = "select exists (select from pg_stat_activity where pid = $1 and wait_event = 'SyncRep')"
WRITE = "select pg_logical_emit_message(true, 'test', 'written')"


@asynccontextmanager
async def without_standby(url: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Every session that begins in the block knows it, too. Gives the function that ends it earlier."""
    async with connected(url) as keeper, connected(url) as prober:

        async def end() -> None:
            await keeper.execute("alter system reset synchronous_standby_names")
            await keeper.execute("select pg_reload_conf()")

        # The keeper's own commits must not wait.
        await keeper.execute("set synchronous_commit = local")
        await keeper.execute("alter system set synchronous_standby_names = 'nobody'")
        await keeper.execute("select pg_reload_conf()")
        probing = asyncio.create_task(_write_until_closed(prober))
        try:
            await eventually(lambda: keeper.fetchval(IS_WAITING, prober.get_server_pid()))
            yield end
        finally:
            await end()
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)


async def _write_until_closed(connection: asyncpg.Connection) -> None:
    """The first may be committed before the server has read its settings."""
    while True:
        await connection.execute(WRITE)
