"""Actions of staff that are conditional on the state that they know."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.decision import Precondition
from holdfast.domain.errors import (
    BookingChanged,
    InvalidInput,
    PreconditionFailed,
    TransitionNotAllowed,
    UnknownUnit,
)
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import revision
from holdfast.operations.bookings import Bookings, StaffAction
from holdfast.operations.units import Units
from holdfast.operations.write_path import WriteResult
from holdfast.storage.database import Database
from tests.operations.buyers import STAFF, hold
from tests.operations.commands import rows
from tests.operations.interference import InterferingDatabase
from tests.support.inventory import SLUG
from tests.support.sales import BUYER, make_lapse

ACTIONS = [
    StaffAction(Action.OPEN),
    StaffAction(Action.CLOSE_SALE, BUYER),
    StaffAction(Action.TAKE_OFF_SALE),
    StaffAction(Action.ARCHIVE),
]


async def act(selling: Bookings, asked: StaffAction, *revisions: str, code: str = "A-1") -> WriteResult:
    known = Precondition(match=frozenset(revisions))
    return await selling.act_on_unit(SLUG, code, asked, Caller.STAFF, STAFF, known)


async def current(database: Database) -> str:
    return revision(*await Units(database).find(SLUG, "A-1"))


@pytest.mark.parametrize("asked", ACTIONS, ids=[asked.action for asked in ACTIONS])
async def test_an_action_on_the_revision_that_stands_is_done_and_on_another_it_is_not(
    selling: Bookings, database: Database, asked: StaffAction
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
    selling: Bookings, database: Database
) -> None:
    known = await current(database)
    other = Units(InterferingDatabase(database, lambda: hold(selling)))
    with pytest.raises(PreconditionFailed):
        await act(Bookings(database, other, HoldPeriods(), HoldLimits()), StaffAction(Action.ARCHIVE), known)
    await other.close()
    assert await rows(database, "select status, archived from unit where code = 'A-1'") == [("held", False)]


async def test_a_condition_is_held_against_what_the_clock_has_made_of_the_unit(
    selling: Bookings, database: Database
) -> None:
    held = await hold(selling)
    known = await current(database)
    await make_lapse(database, held.booking)
    with pytest.raises(PreconditionFailed):
        await act(selling, StaffAction(Action.ARCHIVE), known)
    released = await current(database)
    archived = await act(selling, StaffAction(Action.ARCHIVE), released)
    assert (archived.unit.status, archived.unit.archived) == (Status.UNAVAILABLE, True)


async def test_a_condition_on_a_unit_that_does_not_exist_does_not_hide_that(selling: Bookings) -> None:
    for asked in ACTIONS:
        with pytest.raises(UnknownUnit):
            await act(selling, asked, "1a-1", code="B-1")


PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=3000)
HOLD_ENDS_EARLIER = timedelta(milliseconds=1)


@pytest.mark.parametrize("until", [PAST, FUTURE + timedelta(days=1000)])
@pytest.mark.parametrize("code", ["A-1", "B-1"], ids=["another revision", "no unit"])
async def test_an_end_that_no_unit_can_have_is_refused_before_anything_is_asked_of_the_unit(
    selling: Bookings, until: datetime, code: str
) -> None:
    with pytest.raises(InvalidInput):
        await act(selling, StaffAction(Action.EXTEND, until=until), "99a-1", code=code)


@pytest.mark.parametrize("until", [None, FUTURE])
@pytest.mark.parametrize("action", [Action.EXTEND, Action.CONFIRM_DEPOSIT, Action.CANCEL_HOLD])
async def test_what_is_done_to_a_hold_is_done_to_the_one_that_is_known(
    selling: Bookings, database: Database, action: Action, until: datetime | None
) -> None:
    held = await hold(selling)
    await selling.sign(await selling.find(held.booking.reference), BUYER, "r")
    known = await current(database)
    with pytest.raises(PreconditionFailed):
        await act(selling, StaffAction(action, until=until), known.replace("h", "a"))
    assert (await act(selling, StaffAction(action, until=until), known)).changed


async def test_a_body_that_does_not_fit_the_unit_is_blamed_only_on_who_knows_the_unit(
    selling: Bookings, database: Database
) -> None:
    nameless = StaffAction(Action.CLOSE_SALE)
    known = await current(database)
    with pytest.raises(InvalidInput):
        await act(selling, nameless, known)
    held = await hold(selling)
    assert held.booking.hold_expires_at is not None
    earlier = StaffAction(Action.EXTEND, until=held.booking.hold_expires_at - HOLD_ENDS_EARLIER)
    with pytest.raises(PreconditionFailed):
        await act(selling, earlier, known)
    with pytest.raises(InvalidInput):
        await act(selling, earlier, await current(database))
    await selling.cancel_as_buyer(await selling.find(held.booking.reference), "r")
    with pytest.raises(PreconditionFailed):
        await act(selling, nameless, known)


async def test_a_walk_in_sale_of_a_unit_that_was_reserved_meanwhile_is_a_conflict_and_no_fault_of_the_body(
    selling: Bookings, database: Database
) -> None:
    known, walk_in = await current(database), StaffAction(Action.CLOSE_SALE, BUYER)
    held = await hold(selling)
    found = await selling.find(held.booking.reference)
    await selling.sign(found, BUYER, "r")
    await selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.STAFF, STAFF)
    with pytest.raises(PreconditionFailed):
        await act(selling, walk_in, known)
    with pytest.raises(TransitionNotAllowed) as refused:
        await act(selling, walk_in, await current(database))
    assert refused.value.status is Status.RESERVED


@pytest.mark.parametrize("action", [one for one in BookingAction if one != BookingAction.REISSUE_LINK])
async def test_an_action_on_a_booking_that_has_changed_is_not_done(
    selling: Bookings, database: Database, action: BookingAction
) -> None:
    found = await selling.find((await hold(selling)).booking.reference)
    await selling.sign(found, BUYER, "request-2")
    with pytest.raises(BookingChanged, match="it is signed now"):
        await selling.act_on_booking(found, action, Caller.STAFF, STAFF, seen_status=BookingStatus.OPEN)
    assert await rows(database, "select status from booking") == [("signed",)]


async def test_a_booking_that_changes_while_it_is_cancelled_is_decided_on_anew(
    selling: Bookings, database: Database
) -> None:
    """Whoever gave up a hold has not given a deposit back."""
    found = await selling.find((await hold(selling)).booking.reference)
    await selling.sign(found, BUYER, "request-2")
    other = Units(
        InterferingDatabase(
            database,
            lambda: selling.act_on_booking(
                found, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF
            ),
        )
    )
    with pytest.raises(BookingChanged):
        await Bookings(database, other, HoldPeriods(), HoldLimits()).act_on_booking(
            found, BookingAction.CANCEL, Caller.STAFF, STAFF, seen_status=BookingStatus.SIGNED
        )
    await other.close()
    assert await rows(database, "select status from booking") == [("reserved",)]


async def test_a_booking_that_is_as_it_was_seen_is_cancelled(selling: Bookings) -> None:
    found = await selling.find((await hold(selling)).booking.reference)
    done = await selling.act_on_booking(
        found, BookingAction.CANCEL, Caller.STAFF, STAFF, seen_status=BookingStatus.OPEN
    )
    assert done.booking.status is BookingStatus.CANCELLED
