"""holdfast restore"""

import asyncio
import signal
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from holdfast.cli.database import read_settings
from holdfast.cli.output import (
    Progress,
    format_bytes,
    format_time,
    print_json,
    shared_options,
    showing_progress,
)
from holdfast.settings import Settings
from holdfast.storage import schema
from holdfast.storage.backup import load
from holdfast.storage.backup.archive import Backup, opened_backup
from holdfast.storage.embedded import using_embedded_alone
from holdfast.storage.errors import BackupError
from holdfast.storage.secrets import NAME, keep_keys, refuse_other_keys

_HOLDS = """\
{file} is whole. It is of {created_at}, by Holdfast {manifest.holdfast} with the schema {manifest.schema} on \
PostgreSQL {manifest.postgresql}: projects {counts[projects]}, units {counts[units]}, \
bookings {counts[bookings]}.\
"""
_RESTORED = """\
Restored what was there on {created_at}: projects {counts[projects]}, units {counts[units]}, \
bookings {counts[bookings]}.\
"""
_MIGRATED = "The schema was brought up to date, from revision {before} to {after}."
_PAUSED = "Every endpoint is paused: nothing is sent until you resume it."


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="See whether FILE is whole, and restore nothing.")
@click.option("--show-keys", is_flag=True, help="Print the encryption keys in FILE, and restore nothing.")
@click.option("--paused", is_flag=True, help="Pause every endpoint, so that nothing is sent: for practice.")
@shared_options
def restore(file: Path, check: bool, show_keys: bool, paused: bool, data: Path | None, as_json: bool) -> None:
    """Restore what `holdfast backup` wrote into FILE, into an empty database."""
    # So that it unwinds: a database that was started here stops.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = read_settings(data)
    with showing_progress() as progress, _checked(file.absolute(), progress) as backup:
        if check or show_keys:
            progress.clear()
            _describe(file.absolute(), backup, show_keys, as_json)
        else:
            applied = _restore(settings, backup, paused, progress)
            progress.clear()
            _tell(backup, applied, paused, as_json)


def _checked(file: Path, progress: Progress) -> AbstractContextManager[Backup]:
    return opened_backup(file, lambda done: progress.tell(f"{format_bytes(done)} checked"))


def _restore(settings: Settings, backup: Backup, paused: bool, progress: Progress) -> list[str]:
    """The keys come first: data without them would be data that nobody can read."""
    has_file = not settings.encryption_keys and settings.database_url is None
    if has_file:
        refuse_other_keys(settings.data_dir, backup.keys)
    else:
        _refuse_without_keys(settings, backup)
    total = format_bytes(backup.dump_bytes)
    with _database(settings) as url:
        if has_file:
            keep_keys(settings.data_dir, backup.keys)
        return asyncio.run(
            load.restore(
                url,
                backup,
                paused=paused,
                on_bytes=lambda done: progress.tell(f"{format_bytes(done)} of {total} read"),
            )
        )


def _refuse_without_keys(settings: Settings, backup: Backup) -> None:
    if not set(backup.keys) <= set(settings.encryption_keys):
        raise BackupError(
            f"{NAME} must have the keys that the secrets in this backup are encrypted with;"
            " `holdfast restore FILE --show-keys` prints them."
        )


def _database(settings: Settings) -> AbstractContextManager[str]:
    if settings.database_url is not None:
        return nullcontext(settings.database_url)
    return using_embedded_alone(settings.data_dir)


def _describe(file: Path, backup: Backup, show_keys: bool, as_json: bool) -> None:
    manifest = backup.manifest
    if as_json:
        keys = {"encryptionKeys": list(backup.keys)} if show_keys else {}
        print_json({"file": str(file), **manifest.document(), **keys})
    elif show_keys:
        click.echo(f"{NAME}={','.join(backup.keys)}")
    else:
        created_at = format_time(manifest.created_at)
        click.echo(_HOLDS.format(file=file, created_at=created_at, manifest=manifest, counts=manifest.counts))


def _tell(backup: Backup, applied: list[str], paused: bool, as_json: bool) -> None:
    manifest = backup.manifest
    if as_json:
        document: dict[str, Any] = {**manifest.document(), "applied": applied, "revision": schema.HEAD}
        print_json(document | {"paused": paused})
        return
    click.echo(_RESTORED.format(counts=manifest.counts, created_at=format_time(manifest.created_at)))
    if applied:
        click.echo(_MIGRATED.format(before=manifest.schema, after=schema.HEAD))
    if paused:
        click.echo(_PAUSED)
