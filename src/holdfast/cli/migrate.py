"""holdfast migrate"""

import asyncio
import os
from pathlib import Path

import click

from holdfast.cli.database import database_url, read_settings
from holdfast.cli.output import print_json, shared_options
from holdfast.settings import check_setting_names
from holdfast.storage import schema


@click.command()
@shared_options
def migrate(data: Path | None, as_json: bool) -> None:
    """Bring the database's schema up to date. `serve` and `work` do it too."""
    check_setting_names(os.environ)
    with database_url(read_settings(data)) as url:
        applied = asyncio.run(schema.migrate(url))
    if as_json:
        print_json({"applied": applied, "revision": schema.HEAD})
    elif applied:
        click.echo(f"The schema is now at revision {schema.HEAD} (applied: {', '.join(applied)}).")
    else:
        click.echo(f"The schema was up to date, at revision {schema.HEAD}.")
