"""holdfast backup"""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import click

from holdfast.cli.database import database_url, read_settings
from holdfast.cli.output import format_bytes, print_json, shared_options, showing_progress
from holdfast.settings import Settings
from holdfast.storage.backup.archive import Manifest, refuse_target
from holdfast.storage.backup.dump import Wanted, back_up
from holdfast.storage.embedded import EmbeddedPostgres
from holdfast.storage.errors import BackupError
from holdfast.storage.secrets import load_encryption_keys

_MADE = """\
Backed up to {file} ({size}): projects {counts[projects]}, units {counts[units]}, bookings {counts[bookings]}.
It has the encryption keys and the personal data of buyers in it: guard it as you guard them.\
"""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option(
    "--even-unreadable", is_flag=True, help="Also where the encryption keys do not open all the secrets."
)
@shared_options
def backup(file: Path, force: bool, even_unreadable: bool, data: Path | None, as_json: bool) -> None:
    """Write the database and its encryption keys into FILE, while everything goes on running."""
    # So that it unwinds: the file that is not whole goes, and a database that was started here stops.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, target = read_settings(data), file.absolute()
    refuse_target(target, replace=force)
    _refuse_absent(settings)
    wanted = Wanted(target, force, load_encryption_keys(settings), even_unreadable)
    with database_url(settings) as url, showing_progress() as progress:
        manifest = asyncio.run(
            back_up(url, wanted, lambda done: progress.tell(f"{format_bytes(done)} written"))
        )
    _tell(target, manifest, as_json)


def _refuse_absent(settings: Settings) -> None:
    """Other commands make a database where there is none. A backup of that would be mistaken for one."""
    if settings.database_url is not None:
        return
    with suppress(PermissionError):
        if not EmbeddedPostgres(settings.data_dir).is_made:
            raise BackupError(
                f"There is no database in {settings.data_dir}; name its directory with --data or"
                " HOLDFAST_DATA_DIR."
            )


def _tell(target: Path, manifest: Manifest, as_json: bool) -> None:
    size = target.stat().st_size
    if as_json:
        print_json({"file": str(target), "bytes": size, **manifest.document()})
    else:
        click.echo(_MADE.format(counts=manifest.counts, file=target, size=format_bytes(size)))
