"""holdfast backup, holdfast restore"""

import asyncio
import signal
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import click

from holdfast.cli.database import database_url
from holdfast.cli.output import (
    Progress,
    format_bytes,
    format_time,
    print_result,
    progress_line,
    read_settings,
    shared_options,
)
from holdfast.settings import Settings
from holdfast.storage import schema
from holdfast.storage.backup.archive import Backup, opened_backup, refuse_target
from holdfast.storage.backup.dump import BackupOptions, back_up
from holdfast.storage.backup.dump import restore as restore_backup
from holdfast.storage.embedded import EmbeddedPostgres, using_embedded_alone
from holdfast.storage.errors import BackupError
from holdfast.storage.secrets import NAME, check_same_keys, load_encryption_keys, store_keys

_MADE = """\
Backed up to {file} ({size}): projects {counts[projects]}, units {counts[units]}, bookings {counts[bookings]}.
It has the encryption keys and the personal data of buyers in it: guard it as you guard them.\
"""
_CONTENTS = """\
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
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option(
    "--even-unreadable", is_flag=True, help="Also where the encryption keys do not open all the secrets."
)
@shared_options
def backup(file: Path, force: bool, even_unreadable: bool, data: Path | None, as_json: bool) -> None:
    """Write the database and its encryption keys into FILE, while everything goes on running."""
    # Raise KeyboardInterrupt, so that the unfinished file is removed and a database started here stops.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, target = read_settings(data), file.absolute()
    refuse_target(target, replace=force)
    _check_database_exists(settings)
    options = BackupOptions(target, force, load_encryption_keys(settings), even_unreadable)
    with database_url(settings) as url, progress_line() as progress:
        manifest = asyncio.run(
            back_up(url, options, lambda done: progress.update(f"{format_bytes(done)} written"))
        )
    size = target.stat().st_size
    text = _MADE.format(counts=manifest.counts, file=target, size=format_bytes(size))
    print_result(as_json, {"file": str(target), "bytes": size, **manifest.document()}, text)


def _check_database_exists(settings: Settings) -> None:
    """Other commands create a missing database; a backup of an empty one would be mistaken for a backup."""
    if settings.database_url is not None:
        return
    with suppress(PermissionError):
        if not EmbeddedPostgres(settings.data_dir).is_made:
            raise BackupError(
                f"There is no database in {settings.data_dir}; name its directory with --data or"
                " HOLDFAST_DATA_DIR."
            )


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="See whether FILE is whole, and restore nothing.")
@click.option("--show-keys", is_flag=True, help="Print the encryption keys in FILE, and restore nothing.")
@click.option("--paused", is_flag=True, help="Pause every endpoint, so that nothing is sent: for practice.")
@shared_options
def restore(file: Path, check: bool, show_keys: bool, paused: bool, data: Path | None, as_json: bool) -> None:
    """Restore what `holdfast backup` wrote into FILE, into an empty database."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = read_settings(data)
    with progress_line() as progress, _checked(file.absolute(), progress) as backup:
        if check or show_keys:
            progress.clear()
            _describe(file.absolute(), backup, show_keys, as_json)
        else:
            applied = _restore(settings, backup, paused, progress)
            progress.clear()
            _print_restored(backup, applied, paused, as_json)


def _checked(file: Path, progress: Progress) -> AbstractContextManager[Backup]:
    return opened_backup(file, lambda done: progress.update(f"{format_bytes(done)} checked"))


def _restore(settings: Settings, backup: Backup, paused: bool, progress: Progress) -> list[str]:
    """Store the keys first: without them nobody can read the secrets."""
    has_file = not settings.encryption_keys and settings.database_url is None
    if has_file:
        check_same_keys(settings.data_dir, backup.keys)
    else:
        _check_keys(settings, backup)
    total = format_bytes(backup.dump_bytes)
    with _database(settings) as url:
        if has_file:
            store_keys(settings.data_dir, backup.keys)
        return asyncio.run(
            restore_backup(
                url,
                backup,
                paused=paused,
                on_bytes=lambda done: progress.update(f"{format_bytes(done)} of {total} read"),
            )
        )


def _check_keys(settings: Settings, backup: Backup) -> None:
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
    document = {"file": str(file), **manifest.document()}
    if show_keys:
        document["encryptionKeys"] = list(backup.keys)
        print_result(as_json, document, f"{NAME}={','.join(backup.keys)}")
        return
    created_at = format_time(manifest.created_at)
    text = _CONTENTS.format(file=file, created_at=created_at, manifest=manifest, counts=manifest.counts)
    print_result(as_json, document, text)


def _print_restored(backup: Backup, applied: list[str], paused: bool, as_json: bool) -> None:
    manifest = backup.manifest
    text = _RESTORED.format(counts=manifest.counts, created_at=format_time(manifest.created_at))
    if applied:
        text += "\n" + _MIGRATED.format(before=manifest.schema, after=schema.HEAD)
    if paused:
        text += "\n" + _PAUSED
    document = {**manifest.document(), "applied": applied, "revision": schema.HEAD, "paused": paused}
    print_result(as_json, document, text)
