"""Thousands of holds that are over and that nobody has released, made through our own operations."""

from uuid import UUID

from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.holds import HoldPeriods, HoldRequest
from holdfast.domain.transitions import Caller
from holdfast.operations.booking_commands import BookingDrafts, HoldUnit
from holdfast.operations.write_path import write
from holdfast.storage.database import Database
from tests.support.inventory import SLUG, new_project, replacement, store

AT_ONCE = 500
SHORT = HoldPeriods(hold_seconds=0.001)


async def leave_lapsed_holds(database_url: str, count: int) -> str:
    """The slug of their project. Before this returns they are over by the database's clock."""
    async with Database(database_url) as database:
        project_id = await new_project(database)
        codes = [f"A-{number:05}" for number in range(count)]
        for start in range(0, count, AT_ONCE):
            await _hold(database, project_id, codes[start : start + AT_ONCE])
        async with database.reading() as connection:
            await connection.execute("select pg_sleep(0.005)")
    return SLUG


async def _hold(database: Database, project_id: UUID, codes: list[str]) -> None:
    await store(database, *(replacement(project_id, code) for code in codes))
    drafts = BookingDrafts(database)
    opens = []
    for code in codes:
        draft = (await drafts.draft()).draft
        author = Author(ActorKind.BUYER, draft.reference)
        opens.append(HoldUnit((project_id, code), author, HoldRequest(draft, Caller.BUYER, SHORT)))
    assert not [outcome for outcome in await write(database, opens) if isinstance(outcome, Exception)]
