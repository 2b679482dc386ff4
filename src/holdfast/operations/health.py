"""Readiness of this process, and the address that `serve` records for other commands."""

from holdfast.domain.errors import SchemaNotCurrent
from holdfast.storage import schema
from holdfast.storage.database import Database

_WHERE_SERVE_LISTENS = "http://127.0.0.1:8000"


async def check_ready(database: Database) -> None:
    """Check that the database is reached, and that this code works with its schema."""
    if not schema.is_ready(await database.read(schema.current_revision)):
        raise SchemaNotCurrent


async def load_public_url(database: Database) -> str:
    """Return the address where `serve` last was, or would be, as far as a command can know."""
    return await database.read(schema.public_url) or _WHERE_SERVE_LISTENS
