"""What a restored database does not take up where the backup ended.

What happened after the backup is lost here, but others have seen it: buyers have references, receivers have
ids of deliveries, readers of the feed have cursors. Nothing that was given out then may be given out again
for something else. So all that counts goes on far beyond what can have been counted since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from holdfast.storage.backup.archive import Backup
from holdfast.storage.backup.connection import ClientConnection, Program, opened_door, running
from holdfast.storage.database import BACKGROUND, FOREGROUND, Connection, translate_errors
from holdfast.storage.errors import BackupError
from holdfast.storage.schema import ADVISORY_LOCK, migrate, refuse_unsuitable

FURTHER = 1_000_000

COUNTED = {
    "projects": "project",
    "units": "unit",
    "bookings": "booking",
    "events": "event",
    "endpoints": "endpoint",
    "pendingDeliveries": "pending_delivery",
    "keys": "api_key",
    "staff": "staff",
}

COUNTS = "select " + ", ".join(f"(select count(*) from {table})" for table in COUNTED.values())

# The ids of events, and so those of deliveries, follow from the version of their unit.
_MOVE_ON = f"""
    select setval('booking_number', least(last_value + {FURTHER}, 4294967295)) from booking_number;
    select setval('unit_ref_number', last_value + {FURTHER}) from unit_ref_number;
    update event_feed set last_position = last_position + {FURTHER};
    update unit set version = version + {FURTHER};
"""

# Whoever has signed out since must not be signed in again, and a link works once.
_SIGN_OUT = """
    delete from staff_session;
    delete from setup_link;
"""

_PAUSE = "update endpoint set paused = true where removed_at is null;"

_MISSING = """
    if (select count(*) from {table}) <> {count} then
        raise exception 'the backup says that there are {count} rows of {table}, and that is not what came';
    end if;
"""


def closing_statements(counts: Mapping[str, int], *, paused: bool) -> str:
    """The last part of the transaction. The dump has left the search path empty, and ours is the usual one:
    a table that is not found by it is one that Holdfast would not find either."""
    checks = "".join(
        _MISSING.format(table=table, count=counts[name]) for name, table in COUNTED.items() if name in counts
    )
    return f"""
        reset search_path;
        do $$ begin {checks} end $$;
        {_MOVE_ON}
        {_SIGN_OUT}
        {_PAUSE if paused else ""}
        commit;
    """


# A backup is restored: into an empty database, all of it or nothing.

_TAKE_TURN = f"select pg_try_advisory_lock({ADVISORY_LOCK})"
_IN_USE = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and application_name = any($1::text[])
    )
"""
# Whatever somebody made here: tables, types, functions. Those of extensions come with the service.
_NOT_EMPTY = """
    with ours as (
        select oid, 'pg_class'::regclass as kind, relnamespace as schema from pg_class
        union all select oid, 'pg_type'::regclass, typnamespace from pg_type
        union all select oid, 'pg_proc'::regclass, pronamespace from pg_proc
    )
    select exists (
        select from ours join pg_namespace on pg_namespace.oid = ours.schema
        where nspname <> 'information_schema' and nspname not like 'pg\\_%'
            and not exists (
                select from pg_depend
                where classid = ours.kind and objid = ours.oid and deptype = 'e'
            )
    )
"""
_LOAD = ("--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1", "--output=/dev/null", "--file=-")
_READ = ("--file=-", "--no-owner", "--no-privileges")
# Older servers do not know it, and refuse the whole for its sake.
_UNKNOWN_SETTING, _KNOWN_SINCE = b"SET transaction_timeout", 17
_LINES_BEFORE_THE_FIRST_TABLE = 30


async def restore(
    database_url: str, backup: Backup, *, paused: bool, on_bytes: Callable[[int], None]
) -> list[str]:
    """Gives the revisions that were applied afterwards. ``on_bytes``: how much of the dump is read so far."""
    async with _empty_database(database_url) as door:
        await _load(door, backup, paused, on_bytes)
    applied = await migrate(database_url)
    await _analyze(database_url)
    return applied


@asynccontextmanager
async def _empty_database(database_url: str) -> AsyncIterator[ClientConnection]:
    """Meanwhile nobody migrates it: `serve` and `work` wait, and then find what was restored."""
    async with opened_door(database_url) as door:
        with translate_errors():
            await _refuse_unfit(door.connection)
        yield door


async def _refuse_unfit(connection: Connection) -> None:
    await refuse_unsuitable(connection)
    if not await connection.fetchval(_TAKE_TURN):
        raise BackupError("Another process migrates, backs up or restores this database; wait for its end.")
    if await connection.fetchval(_IN_USE, [FOREGROUND, BACKGROUND]):
        raise BackupError("Holdfast is running on this database; stop every `serve` and `work` first.")
    if await connection.fetchval(_NOT_EMPTY):
        raise BackupError(
            "The database is not empty, and a backup is restored into an empty one only; name a new one with"
            " --data or HOLDFAST_DATABASE_URL."
        )


async def _load(
    door: ClientConnection, backup: Backup, paused: bool, on_bytes: Callable[[int], None]
) -> None:
    major = door.connection.get_server_version().major
    async with (
        running("pg_restore", {}, *_READ) as reader,
        running("psql", door.programs, *_LOAD) as writer,
    ):
        feeding = asyncio.create_task(_feed(reader, backup, on_bytes))
        try:
            await _type(reader, writer, major)
            await _until_loaded(writer)
            await writer.take(closing_statements(backup.manifest.counts, paused=paused).encode())
            writer.end_input()
        except (BrokenPipeError, ConnectionResetError):
            # It has ended before its input did, and says why.
            await writer.finish()
            raise
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        await writer.finish()


async def _feed(reader: Program, backup: Backup, on_bytes: Callable[[int], None]) -> None:
    done = 0
    # What ends before it has read everything says itself what was wrong.
    with suppress(BrokenPipeError, ConnectionResetError):
        for chunk in backup.chunks():
            await reader.take(chunk)
            done += len(chunk)
            on_bytes(done)
    reader.end_input()


async def _type(reader: Program, writer: Program, major: int) -> None:
    """Never the option for a single transaction: input that breaks off would end that one well."""
    await writer.take(b"begin;\n")
    for _ in range(_LINES_BEFORE_THE_FIRST_TABLE):
        line = await reader.line()
        if major >= _KNOWN_SINCE or not line.startswith(_UNKNOWN_SETTING):
            await writer.take(line)
    async for chunk in reader.chunks():
        await writer.take(chunk)
    await reader.finish()


async def _until_loaded(writer: Program) -> None:
    """The end of the transaction is not even sent before: should this process be killed, nobody ends it."""
    await writer.take(b"\\echo loaded\n")
    if not await writer.line():
        await writer.finish()


async def _analyze(database_url: str) -> None:
    """A dump has no statistics, and plans made without them are bad ones."""
    async with opened_door(database_url) as door:
        with translate_errors():
            await door.connection.execute("analyze")
