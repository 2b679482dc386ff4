"""What staff do to a unit only if it is as they know it."""

import pytest

from holdfast.domain.precondition import Precondition
from holdfast.domain.refusals import PreconditionFailed, UnknownUnit
from holdfast.domain.status import Action, Caller, Status
from holdfast.domain.unit import revision
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Rules, Selling, StaffAction
from holdfast.operations.write_path import Written
from holdfast.storage.database import Database
from tests.operations.buyers import STAFF, hold
from tests.operations.commands import rows
from tests.operations.interfering import InterferingDatabase
from tests.support.sales import BUYER, make_lapse
from tests.support.stock import SLUG

ACTIONS = [
    StaffAction(Action.OPEN),
    StaffAction(Action.CLOSE_SALE, BUYER),
    StaffAction(Action.TAKE_OFF_SALE),
    StaffAction(Action.ARCHIVE),
]


async def act(selling: Selling, asked: StaffAction, *revisions: str, code: str = "A-1") -> Written:
    known = Precondition(match=frozenset(revisions))
    return await selling.act(SLUG, code, asked, Caller.STAFF, STAFF, known)


async def current(database: Database) -> str:
    return revision(*await Inventory(database).find(SLUG, "A-1"))


@pytest.mark.parametrize("asked", ACTIONS, ids=[asked.action for asked in ACTIONS])
async def test_an_action_on_the_revision_that_stands_is_done_and_on_another_it_is_not(
    selling: Selling, database: Database, asked: StaffAction
) -> None:
    known = await current(database)
    with pytest.raises(PreconditionFailed) as refused:
        await act(selling, asked, "99a-1", known.replace("a", "h"))
    assert refused.value.current == known
    assert await rows(database, "select version, turn from unit where code = 'A-1'") == [(1, 1)]
    assert await rows(database, "select count(*) from booking") == [(0,)]
    assert (await act(selling, asked, "99a-1", known)).changed
    with pytest.raises(PreconditionFailed):
        await act(selling, asked, known)


async def test_a_condition_is_held_against_what_stands_when_it_is_stored(
    selling: Selling, database: Database
) -> None:
    known = await current(database)
    other = Inventory(InterferingDatabase(database, lambda: hold(selling)))
    with pytest.raises(PreconditionFailed):
        await act(Selling(database, other, Rules()), StaffAction(Action.ARCHIVE), known)
    await other.close()
    assert await rows(database, "select status, archived from unit where code = 'A-1'") == [("held", False)]


async def test_a_condition_is_held_against_what_the_clock_has_made_of_the_unit(
    selling: Selling, database: Database
) -> None:
    held = await hold(selling)
    known = await current(database)
    await make_lapse(database, held.booking)
    with pytest.raises(PreconditionFailed):
        await act(selling, StaffAction(Action.ARCHIVE), known)
    released = await current(database)
    archived = await act(selling, StaffAction(Action.ARCHIVE), released)
    assert (archived.unit.status, archived.unit.archived) == (Status.UNAVAILABLE, True)


async def test_a_condition_on_a_unit_that_does_not_exist_does_not_hide_that(selling: Selling) -> None:
    for asked in ACTIONS:
        with pytest.raises(UnknownUnit):
            await act(selling, asked, "1a-1", code="B-1")
