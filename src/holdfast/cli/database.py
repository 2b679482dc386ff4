"""The database of a command, embedded or a service, and `holdfast migrate`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from holdfast.cli.output import print_result, read_settings, shared_options
from holdfast.settings import Settings, check_setting_names
from holdfast.storage import schema
from holdfast.storage.database import Database, open_database
from holdfast.storage.embedded import using_embedded

T = TypeVar("T")


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    if settings.database_url is not None:
        yield settings.database_url
        return
    with using_embedded(settings.data_dir) as url:
        yield url


def with_database(data: Path | None, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run ``work`` on the database, once its schema is up to date."""

    async def migrate_and_run(url: str) -> T:
        await schema.migrate(url)
        async with open_database(url, writers=1, readers=1) as database:
            return await work(database)

    with database_url(read_settings(data)) as url:
        return asyncio.run(migrate_and_run(url))


@click.command()
@shared_options
def migrate(data: Path | None, as_json: bool) -> None:
    """Bring the database's schema up to date. `serve` and `work` do it too."""
    check_setting_names(os.environ)
    with database_url(read_settings(data)) as url:
        applied = asyncio.run(schema.migrate(url))
    if applied:
        text = f"The schema is now at revision {schema.HEAD} (applied: {', '.join(applied)})."
    else:
        text = f"The schema was up to date, at revision {schema.HEAD}."
    print_result(as_json, {"applied": applied, "revision": schema.HEAD}, text)
