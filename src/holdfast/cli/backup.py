"""holdfast backup, holdfast restore"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import click

from holdfast.cli import output
from holdfast.cli.database import database_url
from holdfast.cli.output import Output, format_bytes, format_time
from holdfast.settings import Settings
from holdfast.storage import schema, secrets
from holdfast.storage.backup.archive import Backup, check_target, open_backup
from holdfast.storage.backup.dump import BackupOptions, back_up
from holdfast.storage.backup.dump import restore as restore_backup
from holdfast.storage.errors import BackupError

_COUNTS = "projects {projects}, units {units}, bookings {bookings}."

_file = click.argument("file", type=click.Path(path_type=Path))


@click.command()
@_file
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--even-unreadable", is_flag=True, help="Continue if the encryption keys do not open every secret."
)
@click.option("--without-keys", is_flag=True, help="Leave the encryption keys out of FILE.")
@output.shared_options
def backup(file: Path, force: bool, even_unreadable: bool, without_keys: bool, as_json: bool) -> None:
    """Write the database and its encryption keys into FILE, while everything keeps running."""
    # Raise KeyboardInterrupt, so that the unfinished file is removed and a database started here stops.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, target = output.read_settings(), file.absolute()
    check_target(target, replace=force)
    with database_url(settings, owner=True) as url, output.progress_line() as show:
        keys = () if without_keys else secrets.load_encryption_keys(settings)
        options = BackupOptions(target, force, keys, even_unreadable)
        manifest = asyncio.run(back_up(url, options, lambda done: show(f"{format_bytes(done)} written")))
    size = target.stat().st_size
    advice = "It contains the encryption keys and personal data of buyers: protect it as you protect those."
    if without_keys:
        advice = "It contains personal data of buyers. To restore it you need the encryption keys."
    counts = _COUNTS.format_map(manifest.counts)
    text = f"Backed up to {target} ({format_bytes(size)}): {counts}\n{advice}"
    Output({"file": str(target), "bytes": size, **manifest.document()}, text).print(as_json)


@click.command()
@_file
@click.option("--check", is_flag=True, help="Check whether FILE is complete, and restore nothing.")
@click.option("--show-keys", is_flag=True, help="Print the encryption keys in FILE, and restore nothing.")
@click.option("--paused", is_flag=True, help="Pause every endpoint, so that nothing is sent.")
@output.shared_options
def restore(file: Path, check: bool, show_keys: bool, paused: bool, as_json: bool) -> None:
    """Restore what `holdfast backup` wrote into FILE, into an empty database."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, file = output.read_settings(), file.absolute()
    with (
        output.progress_line() as show,
        open_backup(file, lambda done: show(f"{format_bytes(done)} checked")) as backup,
    ):
        if check or show_keys:
            result = _describe(file, backup, show_keys)
        else:
            result = _restore(settings, backup, paused, show)
    result.print(as_json)


def _describe(file: Path, backup: Backup, show_keys: bool) -> Output:
    manifest = backup.manifest
    document = {"file": str(file), **manifest.document()}
    if show_keys and not backup.keys:
        raise BackupError(f"{file} has no encryption keys: it was made with --without-keys.")
    if show_keys:
        text = f"{secrets.NAME}={','.join(backup.keys)}"
        return Output({**document, "encryptionKeys": list(backup.keys)}, text)
    text = (
        f"{file} is complete. Made on {format_time(manifest.created_at)} by Holdfast {manifest.holdfast}"
        f" with the schema {manifest.schema} on PostgreSQL {manifest.postgresql},"
        f" {'with' if backup.keys else 'without'} encryption keys:"
    )
    return Output(document, f"{text} {_COUNTS.format_map(manifest.counts)}")


def _restore(settings: Settings, backup: Backup, paused: bool, show: Callable[[str], None]) -> Output:
    """Store the keys first: without them nobody can read the secrets."""
    manifest, total, data_dir = backup.manifest, format_bytes(backup.dump_bytes), settings.data_dir
    has_key_file = backup.keys and not settings.encryption_keys and settings.database_url is None
    if not backup.keys:
        secrets.check_keys(settings, manifest.sealed or ())
    elif has_key_file:
        secrets.check_same_keys(data_dir, backup.keys)
    elif not set(backup.keys) <= set(settings.encryption_keys):
        raise BackupError(
            f"{secrets.NAME} must have the keys that the secrets in this backup are encrypted with;"
            " `holdfast restore FILE --show-keys` prints them."
        )
    with database_url(settings, owner=True, may_create=True, alone=True) as url:
        if has_key_file:
            secrets.store_keys(data_dir, backup.keys)
        applied = asyncio.run(
            restore_backup(
                url,
                backup,
                paused=paused,
                on_bytes=lambda done: show(f"{format_bytes(done)} of {total} read"),
            )
        )
    created_at, counts = format_time(manifest.created_at), _COUNTS.format_map(manifest.counts)
    text = f"Restored the backup of {created_at}: {counts}"
    if applied:
        text += f"\nThe schema was brought up to date, from revision {manifest.schema} to {schema.HEAD}."
    if paused:
        text += "\nEvery endpoint is paused: nothing is sent until you resume it."
    document = {**manifest.document(), "applied": applied, "revision": schema.HEAD, "paused": paused}
    return Output(document, text)
