"""What failed is announced to staff until they have seen it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from holdfast.storage import endpoints
from holdfast.storage.database import Database
from holdfast.storage.endpoints import FailingEndpoint, News

__all__ = ["Announcing", "FailingEndpoint", "News"]


class Announcing:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def news(self, since: datetime) -> News:
        """Since somebody last looked. A delivery that is sent anew is no news any more, nor is an endpoint
        that recovered, was paused or removed."""
        async with self._database.reading() as connection:
            return await endpoints.webhook_news(connection, since)

    async def seen(self, staff_id: UUID, at: datetime) -> None:
        """``at``: the newest of what the person saw; what failed later is still to be told."""
        async with self._database.writing() as connection:
            await endpoints.mark_news_seen(connection, staff_id, at)
