"""A backup is made: one moment of the database, while others go on writing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from holdfast import __version__
from holdfast.domain.errors import SecretsUnreadable
from holdfast.storage.backup.archive import Manifest, write_manifest, writing_backup
from holdfast.storage.backup.connection import NEWEST_SERVER, ClientConnection, opened_door, running
from holdfast.storage.backup.load import COUNTED, COUNTS
from holdfast.storage.database import Connection, fetch_one, translate_errors
from holdfast.storage.errors import BackupError
from holdfast.storage.log_partitions import DROPPING
from holdfast.storage.schema import ADVISORY_LOCK, current_revision, refuse_unsuitable
from holdfast.storage.secrets import SecretBox

# Meanwhile nobody changes the schema or drops a day of the log: whoever would waits, or does it later.
_STAND_STILL = f"select pg_advisory_lock_shared({ADVISORY_LOCK}), pg_advisory_lock_shared({DROPPING})"
_MOMENT = "select pg_export_snapshot(), clock_timestamp()"
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


class Wanted(NamedTuple):
    target: Path
    replace: bool
    """Whether a file that is there may be replaced."""
    keys: Sequence[str]
    even_unreadable: bool
    """Whether secrets that none of the keys opens are fine."""


async def back_up(database_url: str, wanted: Wanted, on_bytes: Callable[[int], None]) -> Manifest:
    """``on_bytes``: how much of the dump has been written so far."""
    async with opened_door(database_url) as door:
        with translate_errors():
            await _refuse_what_is_no_database_of_ours(door.connection)
            async with _one_moment(door.connection) as (snapshot, moment):
                if not wanted.even_unreadable:
                    await _refuse_unreadable(door.connection, wanted.keys)
                manifest = await _manifest(door.connection, moment)
                await _write(door, snapshot, manifest, wanted, on_bytes)
    return manifest


async def _refuse_what_is_no_database_of_ours(connection: Connection) -> None:
    major = connection.get_server_version().major
    if major > NEWEST_SERVER:
        raise BackupError(
            f"This server runs PostgreSQL {major}, but this release of Holdfast can back up PostgreSQL up to"
            f" {NEWEST_SERVER}; use the server's own pg_dump, and keep the encryption keys."
        )
    await refuse_unsuitable(connection)
    if await current_revision(connection) is None:
        raise BackupError("There is nothing to back up: the database has no schema of Holdfast.")


@asynccontextmanager
async def _one_moment(connection: Connection) -> AsyncIterator[tuple[str, datetime]]:
    """The locks are those of the session, taken before: a snapshot that waited for them would be too old."""
    await connection.execute(_STAND_STILL)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        snapshot, moment = await fetch_one(connection, _MOMENT)
        yield snapshot, moment


async def _refuse_unreadable(connection: Connection, keys: Sequence[str]) -> None:
    """A backup whose keys are the wrong ones would be found out on the day that it is needed."""
    box = SecretBox(keys)
    for (sealed,) in await connection.fetch(_SEALED):
        try:
            box.open(sealed)
        except SecretsUnreadable:
            raise BackupError(
                "Some secrets in the database are not opened by the encryption keys of this command; name the"
                " right ones in HOLDFAST_ENCRYPTION_KEYS, or back up all the same with --even-unreadable."
            ) from None


async def _manifest(connection: Connection, moment: datetime) -> Manifest:
    revision = await current_revision(connection)
    assert revision is not None
    return Manifest(
        holdfast=__version__,
        created_at=moment,
        schema=revision,
        postgresql=await connection.fetchval(_SERVER_VERSION),
        counts=dict(zip(COUNTED, await fetch_one(connection, COUNTS), strict=True)),
    )


async def _write(
    door: ClientConnection, snapshot: str, manifest: Manifest, wanted: Wanted, on_bytes: Callable[[int], None]
) -> None:
    options = (*_DUMP, f"--snapshot={snapshot}")
    with writing_backup(wanted.target, replace=wanted.replace) as file:
        async with running("pg_dump", door.programs, *options, takes_input=False) as dump:
            async for chunk in dump.chunks():
                file.add(chunk)
                on_bytes(file.dumped)
            await dump.finish()
        keys = "".join(f"{key}\n" for key in wanted.keys).encode()
        file.complete(keys, write_manifest(manifest), manifest.created_at.timestamp())
