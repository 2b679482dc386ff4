"""Readiness of this process, and what `serve` records at its start."""

from holdfast.domain.errors import SchemaNotCurrent
from holdfast.storage import schema
from holdfast.storage.database import Database
from holdfast.storage.schema import HEAD, current_revision


class Health:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def check_ready(self) -> None:
        """Ready: the database is reached, and its schema is the one this code knows."""
        async with self._database.reading() as connection:
            if await current_revision(connection) != HEAD:
                raise SchemaNotCurrent


# What `serve` was told at its start, for the commands that come later.

_WHERE_SERVE_LISTENS = "http://127.0.0.1:8000"


async def record_start(database: Database, public_url: str, is_demo: bool) -> None:
    async with database.writing() as connection:
        await schema.note_demo(connection, is_demo)
        await schema.note_public_url(connection, public_url)


async def load_public_url(database: Database) -> str:
    """Where the pages are, as far as a command can know: where `serve` last was, or would be."""
    async with database.reading() as connection:
        return await schema.public_url(connection) or _WHERE_SERVE_LISTENS


async def is_demo(database: Database) -> bool:
    async with database.reading() as connection:
        return await schema.is_demo(connection)
