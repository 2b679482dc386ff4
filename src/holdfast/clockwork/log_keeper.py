"""Makes the days of the log ahead, and drops those that are no longer kept."""

from datetime import timedelta

from holdfast.operations.delivery_queue import ready_log, trim_log
from holdfast.storage.database import Database

PAUSE_SECONDS = 3600.0


class LogKeeper:
    name = "log keeper"

    def __init__(self, database: Database, keep: timedelta) -> None:
        self._database = database
        self._keep = keep

    async def run_once(self) -> float:
        await ready_log(self._database)
        await trim_log(self._database, self._keep)
        return PAUSE_SECONDS
