"""Whether this process can do its work."""

from holdfast.domain.refusals import DatabaseAway
from holdfast.storage.database import Database
from holdfast.storage.schema import HEAD, current_revision


class Health:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_ready(self) -> bool:
        """The database is reached, and its schema is the one this code knows."""
        try:
            async with self._database.reading() as connection:
                return await current_revision(connection) == HEAD
        except DatabaseAway:
            return False
