"""The partitions of the log, one a day: created ahead, dropped when they are no longer kept."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta

import asyncpg

from holdfast.storage.database import Connection

TABLES = ("ended_delivery", "attempt")
DAYS_AHEAD = 3

# Advisory locks: held while days are created, and while they are dropped, which may wait for a long reader.
_CREATING, DROPPING = 0x686F6C65, 0x686F6C66
_TODAY = "select (clock_timestamp() at time zone 'UTC')::date"
_FIRST_KEPT = "select ((clock_timestamp() - $1::interval) at time zone 'UTC')::date"
_MISSING = "select name from unnest($1::text[]) as name where to_regclass(name) is null"
# Created apart and then attached: unlike `create table ... partition of`, this waits for no reader or writer.
_CREATE = "create table {part} (like {table} including all)"
# A role that may create nothing itself has this function: see application_role.sql.
_HAS_FUNCTION = "select to_regprocedure('create_log_day(text, date)') is not null"
_CREATE_BY_FUNCTION = "select create_log_day($1, $2)"
_ATTACH = "alter table {table} attach partition {part} for values from ('{day} 00:00Z') to ('{after} 00:00Z')"
_PARTS = """
    select part.relname, inhdetachpending
    from pg_inherits join pg_class as part on part.oid = inhrelid
    where inhparent = $1::text::regclass order by part.relname
"""
_CUT_OFF = """
    select relname from pg_class
    where relkind = 'r' and relname ~ ('^' || $1 || '_[0-9]{8}$') and not relispartition
        and relnamespace = (select relnamespace from pg_class where oid = $1::text::regclass)
"""


async def are_ready(connection: Connection) -> bool:
    """Return whether today and tomorrow have their partitions."""
    today: date = await connection.fetchval(_TODAY)
    names = [_part(table, today + timedelta(days=ahead)) for table in TABLES for ahead in (0, 1)]
    return not await connection.fetch(_MISSING, names)


async def create_upcoming(connection: Connection, days_back: int = 1) -> None:
    """Within a transaction. Any number of processes may do so at once."""
    # The dispatcher's lock timeout is for locked endpoints: at a first start another loop creates the days.
    await connection.execute("set local lock_timeout = 0")
    await connection.execute(f"select pg_advisory_xact_lock({_CREATING})")
    await connection.execute("set local lock_timeout to default")
    today: date = await connection.fetchval(_TODAY)
    for ahead in range(-days_back, DAYS_AHEAD + 1):
        for table in TABLES:
            await _create_day(connection, table, today + timedelta(days=ahead))


async def drop_before(connection: Connection, keep: timedelta) -> list[str]:
    """Outside a transaction, drop old days while others read and write the log.

    A drop that was interrupted is finished first. While another process drops days, nothing is done.
    """
    if not await connection.fetchval(f"select pg_try_advisory_lock({DROPPING})"):
        return []
    try:
        return await _drop_before(connection, keep)
    finally:
        # A lost connection has given up the lock.
        with suppress(asyncpg.InterfaceError):
            await connection.execute(f"select pg_advisory_unlock({DROPPING})")


async def _drop_before(connection: Connection, keep: timedelta) -> list[str]:
    first_kept = await connection.fetchval(_FIRST_KEPT, keep)
    dropped: list[str] = []
    for table in TABLES:
        for part, is_being_detached in await connection.fetch(_PARTS, table):
            if is_being_detached or date.fromisoformat(part.rpartition("_")[2]) < first_kept:
                mode = "finalize" if is_being_detached else "concurrently"
                await connection.execute(f"alter table {table} detach partition {part} {mode}")
        for (part,) in await connection.fetch(_CUT_OFF, table):
            await connection.execute(f"drop table {part}")
            dropped.append(part)
    return dropped


async def _create_day(connection: Connection, table: str, day: date) -> None:
    part = _part(table, day)
    if await connection.fetch(_MISSING, [part]):
        if await connection.fetchval(_HAS_FUNCTION):
            await connection.execute(_CREATE_BY_FUNCTION, table, day)
        else:
            await connection.execute(_CREATE.format(table=table, part=part))
        after = day + timedelta(days=1)
        await connection.execute(_ATTACH.format(table=table, part=part, day=day, after=after))


def _part(table: str, day: date) -> str:
    return f"{table}_{day:%Y%m%d}"
