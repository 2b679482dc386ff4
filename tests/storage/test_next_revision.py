"""This release on the schema of the next one, whose types of parameters have more attributes."""

import pytest

from holdfast.operations.holds import expire_due_holds
from holdfast.storage.database import Database, TransactionConflict
from tests.support import next_revision
from tests.support.delivery_engine import Engine, switch
from tests.support.inventory import new_project, replacement, store
from tests.support.sales import archiving, done, hold, reserve
from tests.support.sql import as_owner, rows, value

LAPSED = """
    with ended as (
        update booking set hold_expires_at = now() where status = 'open' returning unit_id
    )
    update unit set hold_expires_at = now() from ended where id = unit_id
"""


async def write_everything(engine: Engine, slug: str) -> None:
    """Send rows of each type: units, their states, bookings, releases, events, audit entries, attempts."""
    database = engine.database
    project_id = await new_project(database, slug)
    endpoint = await engine.endpoint()
    codes = ("A-1", "A-2", "A-3", "A-4")
    await store(database, *(replacement(project_id, code) for code in codes))
    await store(database, replacement(project_id, "A-1", 5))
    await reserve(database, (project_id, "A-1"))
    for code in ("A-2", "A-3"):
        await hold(database, (project_id, code))
    await engine.execute(LAPSED)
    await done(database, archiving((project_id, "A-2")))
    assert await expire_due_holds(database, 10) == 1
    await switch(database, project_id, "A-4")
    claimed = await engine.claim()
    assert len(await engine.answer(claimed)) == len(claimed) > 0
    await engine.remove(endpoint)
    entries = await rows(
        database,
        "select action from audit_entry join unit on unit.id = subject_id where code = 'A-2' "
        "and unit.project_id = $1 order by audit_entry.id",
        project_id,
    )
    assert [action for (action,) in entries] == ["create", "open", "lapse-hold", "archive"]


async def test_everything_is_written_on_the_next_revision_with_nulls_for_what_it_adds(
    engine: Engine, postgres_url: str
) -> None:
    """By connections from before, which the first batch replaces, and by those of a new process."""
    await write_everything(engine, "before")
    await next_revision.apply(as_owner(postgres_url))
    project_id = await value(engine.database, "select id from project")
    await store(engine.database, replacement(project_id, "A-9"))
    await write_everything(engine, "after")
    await next_revision.revert(as_owner(postgres_url))
    await store(engine.database, replacement(project_id, "A-9", 7))
    await write_everything(engine, "reverted")


async def test_what_is_no_batch_of_units_is_refused_once_as_a_conflict(
    database: Database, postgres_url: str
) -> None:
    await new_project(database, "before")
    await next_revision.apply(as_owner(postgres_url))
    with pytest.raises(TransactionConflict):
        await new_project(database, "after")
    await new_project(database, "after")
