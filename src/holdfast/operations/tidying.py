"""What fell in between: deliveries that nobody wants any more, and those that wait for nothing."""

from __future__ import annotations

import logging
import time

from holdfast.domain.event import EventName
from holdfast.operations.cancelling import cancel_all
from holdfast.operations.log_days import ready_log
from holdfast.storage import deliveries, delivery_queue
from holdfast.storage.database import Database, RefusedByDatabase, TryAgain
from holdfast.storage.delivery_queue import FIRST_PLACE

GROWN = 4
"""So many times larger, or smaller, a table is another one to the planner."""
FEW_PAGES = 16
UNITS_AT_ONCE = 2000
LOOKING_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Tidying:
    """All of it is done at once as a rule; this is for what was interrupted, or happened at the same time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._planned_for = FEW_PAGES
        self._place = FIRST_PLACE

    async def tidy(self) -> None:
        await ready_log(self._database)
        for step in (
            self._plan_anew_if_grown,
            self._cancel_of_removed_endpoints,
            self._cancel_of_unselected_events,
            self._let_waiting_go,
        ):
            try:
                await step()
            except TryAgain:
                continue
            except RefusedByDatabase:
                _log.exception("tidying the queue was refused")

    async def _plan_anew_if_grown(self) -> None:
        """A plan for an almost empty table is ruinous for a huge one, and would be kept until the statistics
        are renewed; to plan anew all the time would make some deliveries late."""
        async with self._database.reading() as connection:
            pages = max(await delivery_queue.pages(connection), FEW_PAGES)
        if not self._planned_for / GROWN < pages < self._planned_for * GROWN:
            self._planned_for = pages
            await self._database.forget_plans()

    async def _cancel_of_removed_endpoints(self) -> None:
        async with self._database.reading() as connection:
            removed = await deliveries.removed_endpoints_with_pending(connection)
        for endpoint_id in removed:
            await cancel_all(self._database, endpoint_id)

    async def _cancel_of_unselected_events(self) -> None:
        """Even if nobody may claim for it, because it is paused. What was resent since then is left."""
        async with self._database.reading() as connection:
            found = await deliveries.endpoints_with_unselected(connection)
        for endpoint_id, wanted in found:
            unselected = [name for name in EventName if name not in wanted]
            await cancel_all(self._database, endpoint_id, unselected, resent_too=False)
            async with self._database.writing_at_once() as connection:
                await deliveries.note_none_unselected(connection, endpoint_id)

    async def _let_waiting_go(self) -> None:
        """From where the last look ended, and not for too long: there may be very many."""
        until = time.monotonic() + LOOKING_SECONDS
        while True:
            async with self._database.writing() as connection:
                looked = await delivery_queue.unblock_some(connection, self._place, UNITS_AT_ONCE)
            self._place = looked.place or FIRST_PLACE
            if looked.freed:
                self._database.hint_at_deliveries()
            if looked.place is None or time.monotonic() > until:
                return
