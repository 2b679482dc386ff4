"""How a command gets at its database: the embedded one or a service, migrated if need be."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from holdfast.settings import Settings
from holdfast.storage.database import Database, open_database
from holdfast.storage.embedded import using_embedded
from holdfast.storage.schema import migrate

T = TypeVar("T")


def read_settings(data: Path | None) -> Settings:
    settings = Settings.from_environment(os.environ)
    return settings if data is None else settings.model_copy(update={"data_dir": data.absolute()})


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    if settings.database_url is not None:
        yield settings.database_url
        return
    with using_embedded(settings.data_dir) as url:
        yield url


def with_database(data: Path | None, work: Callable[[Database], Awaitable[T]]) -> T:
    with database_url(read_settings(data)) as url:
        return asyncio.run(_work_on(url, work))


async def _work_on(url: str, work: Callable[[Database], Awaitable[T]]) -> T:
    await migrate(url)
    async with open_database(url, writers=1, readers=1) as database:
        return await work(database)
