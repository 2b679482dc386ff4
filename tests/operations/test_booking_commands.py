"""Drafts of bookings, which are made before their transaction, and actions on a state that is known."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from holdfast.domain import errors
from holdfast.domain.api_key import token_hash
from holdfast.domain.booking import NOBODY, BookingStatus, Holder
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.decision import Precondition
from holdfast.domain.references import encode_reference
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import revision
from holdfast.operations import booking_commands
from holdfast.operations.booking_commands import BookingDrafts, DraftedBooking, Requester
from holdfast.operations.bookings import Bookings, FoundBooking, StaffAction
from holdfast.operations.units import Units
from holdfast.operations.write_path import WriteResult
from holdfast.storage.bookings import installation_secret
from holdfast.storage.database import Database
from tests.operations.interference import CountingDatabase
from tests.operations.scene import STAFF, cancel, hold, interrupted
from tests.support.inventory import SLUG
from tests.support.sales import BUYER, make_lapse
from tests.support.sql import execute, rows

PROJECT_ID, CODE = uuid4(), "A-1"
SIGNED = BookingStatus.SIGNED
ASKED = Requester("192.0.2.1", "visitor-cookie", "key-1")


def ids(drafted: DraftedBooking) -> list[object]:
    return [*drafted.draft.holder[:2], drafted.draft.idempotency_id]


async def test_numbers_are_drawn_by_a_writer(database: Database) -> None:
    """It is a write, which waits for a synchronous standby, and readers must not wait with it."""
    counting = CountingDatabase(database)
    await BookingDrafts(counting).draft()
    assert counting.transactions == 1


async def test_nobody_waits_for_numbers_longer_than_for_the_queue(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking_commands, "WAIT_SECONDS", 0.2)
    counting = CountingDatabase(database)
    book = BookingDrafts(counting)
    async with database.writing() as connection:
        await connection.execute("lock table booking")
        drafts = await asyncio.gather(*(book.draft() for _ in range(20)), return_exceptions=True)
    assert {type(failure) for failure in drafts} == {errors.DatabaseUnavailable}
    assert counting.transactions < 20, "they have waited one after the other"


async def test_no_number_is_given_twice(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booking_commands, "NUMBERS_AT_ONCE", 7)
    books = [BookingDrafts(database) for _ in range(4)]
    made = await asyncio.gather(*(book.draft() for book in books for _ in range(10)))
    numbers = {drafted.draft.number for drafted in made}
    assert len(numbers) == len({drafted.draft.reference for drafted in made}) == 40
    secret = await database.read(installation_secret)
    assert all(encode_reference(one.draft.number, secret) == one.draft.reference for one in made)
    # Staff make bookings for nobody that is known yet.
    assert {(drafted.draft.holder, drafted.draft.idempotency_id) for drafted in made} == {(NOBODY, None)}
    assert len({drafted.token for drafted in made}) == 40


async def test_a_returned_number_is_used_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booking_commands, "NUMBERS_AT_ONCE", 2)
    book = BookingDrafts(database)
    first = await book.draft()
    book.give_back(first.draft)
    numbers = [(await book.draft()).draft.number for _ in range(6)]
    assert numbers.count(first.draft.number) == 1
    assert len(set(numbers)) == 6


async def test_the_same_request_gets_the_same_token_from_every_process(database: Database) -> None:
    book = BookingDrafts(database)
    first = await book.draft_for(ASKED, PROJECT_ID, CODE)
    again = await BookingDrafts(database).draft_for(ASKED, PROJECT_ID, CODE)
    assert (first.token, first.draft.idempotency_id) == (again.token, again.draft.idempotency_id)
    assert first.draft.idempotency_id is not None
    assert first.draft.token_hash == token_hash(first.token)
    assert first.draft.number != again.draft.number
    # A database that is gone, and another in its place.
    await execute(database, "select setval('booking_number', 5000)")
    await execute(database, "update installation set secret = sha256(secret)")
    book.forget()
    other = await book.draft_for(ASKED, PROJECT_ID, CODE)
    assert (other.draft.number, other.token != first.token) == (5001, True)
    assert set(ids(first)).isdisjoint(ids(other))


async def test_another_unit_or_key_gets_another_token(database: Database) -> None:
    book = BookingDrafts(database)
    made = [
        await book.draft_for(requester, project_id, code)
        for requester, project_id, code in (
            (ASKED, PROJECT_ID, CODE),
            (ASKED, uuid4(), CODE),
            (ASKED, PROJECT_ID, "A-2"),
            (ASKED._replace(idempotency_key="key-2"), PROJECT_ID, CODE),
        )
    ]
    assert len({one.token for one in made}) == len({ids(one)[2] for one in made}) == len(made)
    # Who may have the token is decided when the request is repeated.
    elsewhere = await book.draft_for(ASKED._replace(address="192.0.2.2", visitor=None), PROJECT_ID, CODE)
    assert (elsewhere.token, ids(elsewhere)[2]) == (made[0].token, ids(made[0])[2])
    keyless = ASKED._replace(idempotency_key=None)
    first, second = [await book.draft_for(keyless, PROJECT_ID, CODE) for _ in range(2)]
    assert first.token != second.token
    assert (first.draft.idempotency_id, first.draft.holder) == (None, second.draft.holder)
    # Address, cookie and key are kept apart, though they read the same.
    alike = await book.draft_for(Requester(*["192.0.2.1"] * 3), PROJECT_ID, CODE)
    assert len(set(ids(alike))) == 3
    no_cookie = await book.draft_for(Requester("192.0.2.1"), PROJECT_ID, CODE)
    assert no_cookie.draft.holder == alike.draft.holder._replace(visitor_id=None)


async def test_a_buyer_is_known_by_all_networks_of_the_address(database: Database) -> None:
    book = BookingDrafts(database)

    async def holder(address: str, project_id: UUID = PROJECT_ID) -> Holder:
        return (await book.draft_for(Requester(address), project_id, CODE)).draft.holder

    def alike(one: Holder, other: Holder) -> list[bool]:
        return [mine == theirs for mine, theirs in zip(one, other, strict=True) if mine or theirs]

    first = await holder("192.0.2.1")
    assert (first.prefix_56_id, first.prefix_48_id) == (None, None)
    assert alike(first, await holder("192.0.2.2")) == [False, True]
    assert alike(first, await holder("192.0.3.1")) == [False, False]
    assert alike(first, await holder("192.0.2.1", uuid4())) == [True, False]
    first = await holder("2001:db8:1:2::1")
    assert alike(first, await holder("2001:db8:1:2::2")) == [True] * 4
    assert alike(first, await holder("2001:db8:1:3::1")) == [False, True, True, True]
    assert alike(first, await holder("2001:db8:1:103::1")) == [False, False, True, True]
    assert alike(first, await holder("2001:db8:2:2::1")) == [False] * 4


# Actions of staff that are conditional on the state that they know

FUTURE = datetime.now(UTC) + timedelta(days=3000)
ON_SALE = [*map(StaffAction, (Action.OPEN, Action.TAKE_OFF_SALE, Action.ARCHIVE))]
HELD = [*map(StaffAction, (Action.EXTEND, Action.CONFIRM_DEPOSIT, Action.CANCEL_HOLD))]


async def act(selling: Bookings, asked: StaffAction, *revisions: str, code: str = "A-1") -> WriteResult:
    known = Precondition(match=frozenset(revisions))
    return await selling.act_on_unit(SLUG, code, asked, Caller.STAFF, STAFF, known)


async def current(database: Database) -> str:
    return revision(*await Units(database).find(SLUG, "A-1"))


async def signed(selling: Bookings) -> FoundBooking:
    found = await selling.find((await hold(selling)).booking.reference)
    await selling.sign(found, BUYER, "r")
    return found


@pytest.mark.parametrize("asked", [*ON_SALE, StaffAction(Action.CLOSE_SALE, BUYER)])
async def test_actions_need_the_revision(selling: Bookings, database: Database, asked: StaffAction) -> None:
    known = await current(database)
    with pytest.raises(errors.PreconditionFailed) as refused:
        await act(selling, asked, "99a-1", known.replace("a", "h"))
    assert refused.value.current == known
    with pytest.raises(errors.UnknownUnit):
        await act(selling, asked, known, code="B-1")
    assert await rows(database, "select version, turn from unit where code = 'A-1'") == [(1, 1)]
    assert await rows(database, "select count(*) from booking") == [(0,)]
    assert (await act(selling, asked, "99a-1", known)).changed
    with pytest.raises(errors.PreconditionFailed):
        await act(selling, asked, known)


@pytest.mark.parametrize("asked", [*HELD, StaffAction(Action.EXTEND, until=FUTURE)])
async def test_a_hold_needs_the_revision(selling: Bookings, database: Database, asked: StaffAction) -> None:
    await signed(selling)
    known = await current(database)
    with pytest.raises(errors.PreconditionFailed):
        await act(selling, asked, known.replace("h", "a"))
    assert (await act(selling, asked, known)).changed


async def test_a_revision_is_checked_when_it_is_stored(selling: Bookings, database: Database) -> None:
    known = await current(database)
    with pytest.raises(errors.PreconditionFailed):
        await act(interrupted(database, lambda: hold(selling)), StaffAction(Action.ARCHIVE), known)
    assert await rows(database, "select status, archived from unit where code = 'A-1'") == [("held", False)]


async def test_a_revision_changes_when_a_hold_lapses(selling: Bookings, database: Database) -> None:
    held = await hold(selling)
    known = await current(database)
    await make_lapse(database, held.booking)
    with pytest.raises(errors.PreconditionFailed):
        await act(selling, StaffAction(Action.ARCHIVE), known)
    archived = await act(selling, StaffAction(Action.ARCHIVE), await current(database))
    assert (archived.unit.status, archived.unit.archived) == (Status.UNAVAILABLE, True)


async def test_an_end_that_no_unit_can_have_is_refused_first(selling: Bookings) -> None:
    for until in (datetime(2020, 1, 1, tzinfo=UTC), FUTURE + timedelta(days=1000)):
        # Another revision, and no unit at all.
        for code in ("A-1", "B-1"):
            with pytest.raises(errors.InvalidInput):
                await act(selling, StaffAction(Action.EXTEND, until=until), "99a-1", code=code)


async def test_a_body_is_checked_after_the_revision(selling: Bookings, database: Database) -> None:
    nameless = StaffAction(Action.CLOSE_SALE)
    known = await current(database)
    with pytest.raises(errors.InvalidInput):
        await act(selling, nameless, known)
    held = await hold(selling)
    assert held.booking.hold_expires_at is not None
    earlier = StaffAction(Action.EXTEND, until=held.booking.hold_expires_at - timedelta(milliseconds=1))
    with pytest.raises(errors.PreconditionFailed):
        await act(selling, earlier, known)
    with pytest.raises(errors.InvalidInput):
        await act(selling, earlier, await current(database))
    await cancel(selling, held.booking.reference)
    with pytest.raises(errors.PreconditionFailed):
        await act(selling, nameless, known)


async def test_an_action_on_a_booking_needs_its_status(selling: Bookings, database: Database) -> None:
    found = await signed(selling)
    for action in set(BookingAction) - {BookingAction.REISSUE_LINK}:
        with pytest.raises(errors.BookingChanged, match="Nothing was done"):
            await selling.act_on_booking(found, action, Caller.STAFF, STAFF, seen_status=BookingStatus.OPEN)
    assert await rows(database, "select status from booking") == [("signed",)]
    done = await selling.act_on_booking(found, BookingAction.CANCEL, Caller.STAFF, STAFF, seen_status=SIGNED)
    assert done.booking.status is BookingStatus.CANCELLED


async def test_a_booking_that_has_changed_is_not_cancelled(selling: Bookings, database: Database) -> None:
    """Whoever gave up a hold has not given a deposit back."""
    found = await signed(selling)
    other = interrupted(
        database,
        lambda: selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF),
    )
    with pytest.raises(errors.BookingChanged):
        await other.act_on_booking(found, BookingAction.CANCEL, Caller.STAFF, STAFF, seen_status=SIGNED)
    assert await rows(database, "select status from booking") == [("reserved",)]
