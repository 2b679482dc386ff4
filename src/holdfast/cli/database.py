"""The database of a command, embedded or a service, `holdfast migrate` and `holdfast advance`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar

import click

from holdfast.cli.output import Output, read_settings, shared_options
from holdfast.settings import Settings, check_setting_names
from holdfast.storage import recovery, schema
from holdfast.storage.database import Database
from holdfast.storage.embedded.server import check_exists, using_embedded

T = TypeVar("T")


def database_url(
    settings: Settings, *, owner: bool = False, may_create: bool = False, alone: bool = False
) -> AbstractContextManager[str]:
    """Of the embedded database, the URL is for the application's role or for the ``owner`` of the schema."""
    if settings.database_url is not None:
        return nullcontext(settings.database_url)
    if not may_create:
        check_exists(settings.data_dir)
    return using_embedded(settings.data_dir, owner=owner, alone=alone)


def with_database(work: Callable[[Database], Awaitable[T]]) -> T:
    """Run ``work`` on the database, which must be there, with a schema that this release works with."""

    async def check_and_run(url: str) -> T:
        await schema.check(url)
        async with Database(url, writers=1, readers=1) as database:
            return await work(database)

    with database_url(read_settings()) as url:
        return asyncio.run(check_and_run(url))


def database_command(work: Callable[..., Awaitable[Output]]) -> Callable[..., None]:
    """Make a command of a coroutine function that takes the database and returns what to print."""

    @shared_options
    @wraps(work)
    def command(as_json: bool, **arguments: Any) -> None:
        with_database(lambda database: work(database, **arguments)).print(as_json)

    return command


@click.command()
@shared_options
def migrate(as_json: bool) -> None:
    """Migrate the database's schema. `serve` and `work` do it too."""
    check_setting_names(os.environ)
    with database_url(read_settings(), owner=True, may_create=True) as url:
        applied = asyncio.run(schema.migrate(url))
    if applied:
        text = f"The schema is now at revision {schema.HEAD} (applied: {', '.join(applied)})."
    else:
        text = f"The schema was up to date, at revision {schema.HEAD}."
    Output({"applied": applied, "revision": schema.HEAD}, text).print(as_json)


@click.command()
@shared_options
def advance(as_json: bool) -> None:
    """Issue only new ids after a recovery that lost changes. Run it before `serve` and `work`."""
    with database_url(read_settings(), owner=True, alone=True) as url:
        asyncio.run(recovery.advance(url))
    text = "Every counter was advanced: no id, reference, cursor or ETag of the lost time is given out again."
    Output({"advanced": True}, text).print(as_json)
