"""holdfast work"""

import asyncio
import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from holdfast.cli.database import database_url, read_settings
from holdfast.cli.output import print_json, shared_options
from holdfast.observability.logging import set_up_logging
from holdfast.server import work as work_process
from holdfast.server.prepare import migrate_when_reachable
from holdfast.settings import check_setting_names
from holdfast.storage.secrets import load_encryption_keys


@click.command()
@shared_options
def work(data: Path | None, as_json: bool) -> None:
    """Run the background work only: any number of these, on any machine, until stopped."""
    set_up_logging()
    check_setting_names(os.environ)
    settings = read_settings(data)
    # Until the worker itself listens for signals, one of them unwinds what was started so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), database_url(settings) as url:
        own = settings.model_copy(
            update={"database_url": url, "encryption_keys": load_encryption_keys(settings)}
        )
        asyncio.run(migrate_when_reachable(url))
        work_process.run(own, announce=partial(_announce, as_json))


def _announce(as_json: bool) -> None:
    if as_json:
        print_json({"working": True})
    else:
        click.echo("Holdfast is working; Ctrl-C stops it.")
