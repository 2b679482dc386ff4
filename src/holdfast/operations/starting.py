"""What `serve` was told at its start, for the commands that come later."""

from holdfast.storage import installation
from holdfast.storage.database import Database

_WHERE_SERVE_LISTENS = "http://127.0.0.1:8000"


async def note_start(database: Database, public_url: str, is_demo: bool) -> None:
    async with database.writing() as connection:
        await installation.note_demo(connection, is_demo)
        await installation.note_public_url(connection, public_url)


async def public_url_of(database: Database) -> str:
    """Where the pages are, as far as a command can know: where `serve` last was, or would be."""
    async with database.reading() as connection:
        return await installation.public_url(connection) or _WHERE_SERVE_LISTENS
