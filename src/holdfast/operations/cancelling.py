"""What a change of an endpoint means for its queue, a few deliveries at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from holdfast.storage import deliveries, delivery_queue
from holdfast.storage.database import Database
from holdfast.storage.delivery_queue import Place

CANCELLED_AT_ONCE = 1000
LET_GO_AT_ONCE = 1000
LONGEST_SECONDS = 5.0
"""So long somebody may wait for it; the rest is done by the workers."""


async def cancel_all(
    database: Database, endpoint_id: UUID, events: Sequence[str] = (), *, resent_too: bool = True
) -> None:
    """All of an endpoint that is removed; of another one those of the ``events`` that it wants no more."""
    started_at = time.monotonic()
    while time.monotonic() - started_at < LONGEST_SECONDS:
        async with database.writing() as connection:
            count = await deliveries.cancel_some(
                connection, endpoint_id, events, CANCELLED_AT_ONCE, resent_too=resent_too
            )
        if count < CANCELLED_AT_ONCE:
            return


async def let_all_go(database: Database, endpoint_id: UUID) -> None:
    """Of an endpoint: whoever need not wait any more."""
    place: Place | None = (endpoint_id, UUID(int=0))
    started_at = time.monotonic()
    while place is not None and time.monotonic() - started_at < LONGEST_SECONDS:
        async with database.writing_at_once() as connection:
            place = (await delivery_queue.unblock_some_of_endpoint(connection, place, LET_GO_AT_ONCE)).place
