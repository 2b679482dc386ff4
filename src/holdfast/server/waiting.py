"""A service and its database are often started together; the service gives it time."""

import asyncio
import logging
import time

from holdfast.domain.errors import DatabaseAway
from holdfast.storage.schema import migrate

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.5

_log = logging.getLogger(__name__)


async def migrate_when_reachable(database_url: str, patience_seconds: float = _PATIENCE_SECONDS) -> list[str]:
    give_up_at = time.monotonic() + patience_seconds
    while True:
        try:
            return await migrate(database_url)
        except DatabaseAway:
            if time.monotonic() > give_up_at:
                raise
            _log.warning("waiting for the database")
        await asyncio.sleep(_PAUSE_SECONDS)
