"""Dump a database into a backup while others write, and restore a backup into an empty database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast import __version__
from holdfast.domain.errors import SecretsUnreadable
from holdfast.storage.backup.archive import Backup, Manifest, write_manifest, writing_backup
from holdfast.storage.backup.connection import NEWEST_SERVER, Client, Program, open_client, run_program
from holdfast.storage.database import Connection, fetch_one, translate_errors
from holdfast.storage.errors import BackupError, WrongDatabase
from holdfast.storage.log_partitions import DROPPING
from holdfast.storage.recovery import ADVANCE, check_unused
from holdfast.storage.schema import ADVISORY_LOCK, NOT_EMPTY, check_suitable, current_revision, migrate
from holdfast.storage.secrets import SecretBox

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

# Meanwhile nobody changes the schema or drops a partition of the log.
_LOCK_SCHEMA = f"select pg_advisory_lock_shared({ADVISORY_LOCK}), pg_advisory_lock_shared({DROPPING})"
_EXPORT_SNAPSHOT = "select pg_export_snapshot(), clock_timestamp()"
_SERVER_VERSION = "select split_part(current_setting('server_version'), ' ', 1)"
_SEALED = """
    select secret_sealed from endpoint where removed_at is null
    union all select second_factor_sealed from staff where second_factor_sealed is not null
    union all select offered_factor_sealed from staff where offered_factor_sealed is not null
"""
_DUMP = (
    "--format=custom", "--no-owner", "--no-privileges", "--no-tablespaces", "--no-publications",
    "--no-subscriptions", "--no-security-labels", "--exclude-extension=*", "--lock-wait-timeout=5min",
)  # fmt: skip


class BackupOptions(NamedTuple):
    target: Path
    replace: bool
    """Whether an existing file may be replaced."""
    keys: Sequence[str]
    """Empty: the keys are kept elsewhere."""
    even_unreadable: bool
    """Whether secrets that none of the keys opens are accepted."""


async def back_up(database_url: str, options: BackupOptions, on_bytes: Callable[[int], None]) -> Manifest:
    """Write a backup. ``on_bytes`` is called with the bytes of the dump written so far."""
    async with open_client(database_url) as client:
        connection = client.connection
        with translate_errors():
            await _check_database(connection)
            # Before the snapshot is taken: one that waited for the locks would be too old.
            await connection.execute(_LOCK_SCHEMA)
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                snapshot, created_at = await fetch_one(connection, _EXPORT_SNAPSHOT)
                sealed = [row[0].decode(errors="replace") for row in await connection.fetch(_SEALED)]
                if options.keys and not options.even_unreadable:
                    _check_secrets(options.keys, sealed)
                revision = await current_revision(connection)
                assert revision is not None
                manifest = Manifest(
                    holdfast=__version__,
                    created_at=created_at,
                    schema=revision,
                    postgresql=await connection.fetchval(_SERVER_VERSION),
                    counts=dict(zip(COUNTED, await fetch_one(connection, COUNTS), strict=True)),
                    sealed=None if options.keys else sealed[:1000],  # The manifest is read whole.
                )
                await _write(client, snapshot, manifest, options, on_bytes)
    return manifest


async def _check_database(connection: Connection) -> None:
    major = connection.get_server_version().major
    if major > NEWEST_SERVER:
        raise BackupError(
            f"This server runs PostgreSQL {major}, but this release of Holdfast can back up PostgreSQL up to"
            f" {NEWEST_SERVER}; use the server's own pg_dump, and keep the encryption keys."
        )
    if await check_suitable(connection) is None:
        raise WrongDatabase("There is nothing to back up: the database has no schema of Holdfast.")


def _check_secrets(keys: Sequence[str], sealed: Sequence[str]) -> None:
    """Find out about wrong keys now, and not on the day that the backup is needed."""
    box = SecretBox(keys)
    for value in sealed:
        try:
            box.open(value.encode())
        except SecretsUnreadable:
            raise BackupError(
                "Some secrets in the database are not opened by the encryption keys of this command; name the"
                " right ones in HOLDFAST_ENCRYPTION_KEYS, or back up all the same with --even-unreadable."
            ) from None


async def _write(
    client: Client, snapshot: str, manifest: Manifest, options: BackupOptions, on_bytes: Callable[[int], None]
) -> None:
    with writing_backup(options.target, replace=options.replace) as file:
        async with run_program(
            "pg_dump", client.programs, *_DUMP, f"--snapshot={snapshot}", takes_input=False
        ) as dump:
            async for chunk in dump.read_chunks():
                file.add(chunk)
                on_bytes(file.dumped)
            await dump.finish()
        keys = "".join(f"{key}\n" for key in options.keys).encode()
        file.complete(keys, write_manifest(manifest), manifest.created_at.timestamp())


_CHECK_COUNT = """
    if (select count(*) from {table}) <> {count} then
        raise exception 'the backup says that there are {count} rows of {table}, and that is not what came';
    end if;
"""


def _closing_statements(counts: Mapping[str, int], paused: bool) -> str:
    """Return the last part of the transaction. It resets the search path, which the dump has emptied."""
    checks = "".join(
        _CHECK_COUNT.format(table=table, count=counts[name])
        for name, table in COUNTED.items()
        if name in counts
    )
    pause = "update endpoint set paused = true where removed_at is null;" if paused else ""
    return f"""
        reset search_path;
        do $$ begin {checks} end $$;
        {ADVANCE}
        {pause}
        commit;
    """


_LOAD = ("--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1", "--output=/dev/null", "--file=-")
_READ = ("--file=-", "--no-owner", "--no-privileges")
# Servers before version 17 reject this setting.
_NEW_SETTING, _NEW_SETTING_SINCE = b"SET transaction_timeout", 17
_LINES_BEFORE_THE_FIRST_TABLE = 30


async def restore(
    database_url: str, backup: Backup, *, paused: bool, on_bytes: Callable[[int], None]
) -> list[str]:
    """Restore, and return the migrations applied afterwards. ``on_bytes`` gets the bytes read so far."""
    async with open_client(database_url) as client:
        with translate_errors():
            await _lock_empty_database(client.connection)
        await _load(client, backup, paused, on_bytes)
    applied = await migrate(database_url)
    async with open_client(database_url) as client:
        with translate_errors():
            # Collect statistics, which a dump does not have.
            await client.connection.execute("analyze")
    return applied


async def _lock_empty_database(connection: Connection) -> None:
    """Lock the database, so that `serve` and `work` wait, and then find what was restored."""
    await check_suitable(connection)
    if not await connection.fetchval(f"select pg_try_advisory_lock({ADVISORY_LOCK})"):
        raise BackupError("Another process migrates, backs up or restores this database; wait for its end.")
    await check_unused(connection)
    if await connection.fetchval(NOT_EMPTY):
        raise BackupError(
            "The database is not empty, and a backup is restored into an empty one only; name a new one with"
            " --data or HOLDFAST_DATABASE_URL."
        )


async def _load(client: Client, backup: Backup, paused: bool, on_bytes: Callable[[int], None]) -> None:
    major = client.connection.get_server_version().major
    async with (
        run_program("pg_restore", {}, *_READ) as reader,
        run_program("psql", client.programs, *_LOAD) as writer,
    ):
        feeding = asyncio.create_task(_feed(reader, backup, on_bytes))
        try:
            await _send_statements(reader, writer, major)
            # Wait before COMMIT is sent: if this process is killed, nothing is committed.
            await writer.write(b"\\echo loaded\n")
            if not await writer.read_line():
                await writer.finish()
            await writer.write(_closing_statements(backup.manifest.counts, paused).encode())
            writer.end_input()
        except (BrokenPipeError, ConnectionResetError):
            # The program has ended before its input did, and says why.
            await writer.finish()
            raise
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        await writer.finish()


async def _feed(reader: Program, backup: Backup, on_bytes: Callable[[int], None]) -> None:
    done = 0
    # A program that ends before it has read everything says what was wrong.
    with suppress(BrokenPipeError, ConnectionResetError):
        for chunk in backup.chunks():
            await reader.write(chunk)
            done += len(chunk)
            on_bytes(done)
    reader.end_input()


async def _send_statements(reader: Program, writer: Program, major: int) -> None:
    """Begin a transaction by statement: psql's --single-transaction would commit input that breaks off."""
    await writer.write(b"begin;\n")
    for _ in range(_LINES_BEFORE_THE_FIRST_TABLE):
        line = await reader.read_line()
        if major >= _NEW_SETTING_SINCE or not line.startswith(_NEW_SETTING):
            await writer.write(line)
    async for chunk in reader.read_chunks():
        await writer.write(chunk)
    await reader.finish()
