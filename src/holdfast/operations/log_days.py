"""The log has a part for each day: made ahead, dropped when it is no longer kept."""

from __future__ import annotations

from datetime import timedelta

from holdfast.storage import log_partitions
from holdfast.storage.database import Database


async def ready_log(database: Database) -> None:
    """Before something is written to the log: today has its part, whatever the workers do."""
    async with database.reading() as connection:
        if await log_partitions.are_ready(connection):
            return
    async with database.writing() as connection:
        await log_partitions.make(connection)


async def trim_log(database: Database, keep: timedelta) -> list[str]:
    async with database.writing_at_once() as connection:
        return await log_partitions.drop_before(connection, keep)
