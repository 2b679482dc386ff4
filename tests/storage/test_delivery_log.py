"""A look along the indexes leaves the planner as it was for the statements after it."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from holdfast.domain.delivery import DeliveryFilter, DeliveryStatus
from holdfast.storage import delivery_log
from holdfast.storage.database import Connection, Database

LAST = datetime(9999, 1, 1, tzinfo=UTC)
EVERYTHING = DeliveryFilter(datetime(2020, 1, 1, tzinfo=UTC), LAST)
PENDING = EVERYTHING._replace(status=DeliveryStatus.PENDING)
BEFORE = (LAST, UUID(int=0))
SETTINGS = """
    select current_setting('enable_sort'), current_setting('enable_seqscan'),
        current_setting('enable_bitmapscan')
"""
LOOKS: dict[str, Callable[[Connection], Awaitable[object]]] = {
    "page": lambda connection: delivery_log.list_deliveries(connection, [], None, BEFORE, EVERYTHING, 1),
    "pending": lambda connection: delivery_log.list_deliveries(connection, [], None, BEFORE, PENDING, 1),
    "latest": lambda connection: delivery_log.find_latest(connection, [], EVERYTHING),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
async def test_what_is_asked_after_a_look_is_planned_as_usual(
    database: Database, look: Callable[[Connection], Awaitable[object]]
) -> None:
    async with database.reading_snapshot() as connection:
        before = await connection.fetchrow(SETTINGS)
        await look(connection)
        assert await connection.fetchrow(SETTINGS) == before
