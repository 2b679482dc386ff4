"""Whether this process can do its work."""

from holdfast.domain.errors import SchemaNotCurrent
from holdfast.storage.database import Database
from holdfast.storage.schema import HEAD, current_revision


class Health:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def refuse_unless_ready(self) -> None:
        """Ready: the database is reached, and its schema is the one this code knows."""
        async with self._database.reading() as connection:
            if await current_revision(connection) != HEAD:
                raise SchemaNotCurrent
