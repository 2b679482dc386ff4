"""An event that the status table does not know cannot be stored, whoever writes it."""

from collections.abc import AsyncIterator
from itertools import product
from uuid import UUID, uuid4

import asyncpg
import pytest

from holdfast.domain.event import EventName
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS
from holdfast.storage.database import Database
from tests.support.inventory import new_project, replacement, store

Step = tuple[EventName, Status, Status]

KNOWN: set[Step] = {(row.event, row.source, row.target) for row in TRANSITIONS if row.event}
UNKNOWN = [step for step in product(EventName, Status, Status) if step not in KNOWN]
NAMING_A_BOOKING = (EventName.RESERVED, EventName.SOLD)

# A booking is named exactly where one has to be: the step alone decides.
INSERT = """
    insert into event (id, project_id, unit_id, unit_version, type, previous_status, status,
        booking_reference, created_at)
    select gen_random_uuid(), project_id, id, 2, $2, $3, $4, $5, clock_timestamp() from unit where id = $1
"""


@pytest.fixture
async def unit_id(database: Database) -> UUID:
    project_id = await new_project(database)
    (written,) = await store(database, replacement(project_id, "A-1"))
    return written.unit.id


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The bare driver, which names the constraint that refused."""
    opened = await asyncpg.connect(postgres_url)
    yield opened
    await opened.close()


async def test_every_step_that_the_table_does_not_know_is_refused(
    connection: asyncpg.Connection, unit_id: UUID
) -> None:
    refused_by = {step: await _refused_by(connection, unit_id, step) for step in UNKNOWN}
    assert refused_by == dict.fromkeys(UNKNOWN, "known_transition")
    assert await connection.fetchval("select count(*) from event") == 0


async def test_every_step_that_the_table_knows_is_stored(
    connection: asyncpg.Connection, unit_id: UUID
) -> None:
    for step in KNOWN:
        assert await _refused_by(connection, unit_id, step) is None
        assert await connection.fetchval("delete from event returning type") == step[0]


async def _refused_by(connection: asyncpg.Connection, unit_id: UUID, step: Step) -> str | None:
    """The constraint that stands against the step."""
    reference = str(uuid4()) if step[0] in NAMING_A_BOOKING else None
    try:
        await connection.execute(INSERT, unit_id, *step, reference)
    except asyncpg.CheckViolationError as refusal:
        return refusal.constraint_name
    return None
