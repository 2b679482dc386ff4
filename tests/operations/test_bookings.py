"""Bookings as the web uses them: holds, their tokens and limits, and the same request again."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from holdfast.background import jobs
from holdfast.domain import errors
from holdfast.domain.booking import Booking, BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.references import encode_reference
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.bookings import Bookings, Held, OpenedBooking, Requester, StaffAction
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import Units
from holdfast.operations.write_path import LARGEST_BATCH, Batch
from holdfast.storage import audit, bookings
from holdfast.storage.database import Database
from tests.operations.interference import Hook, InterferingDatabase
from tests.operations.scene import KEYED, NORA, OMAR, STAFF, cancel, hold, interrupted, new_keys
from tests.support import sales
from tests.support.inventory import SLUG
from tests.support.sales import BUYER, done, make_lapse
from tests.support.sql import execute, rows

AGE = """
    update booking set created_at = created_at - interval '31 days', ended_at = ended_at - interval '31 days'
"""
WALK_IN = StaffAction(Action.CLOSE_SALE, BUYER)


async def test_a_hold_is_opened_by_its_token_and_by_no_other(selling: Bookings) -> None:
    first, second = await hold(selling), await hold(selling, OMAR, "A-2")
    assert first.is_new
    found = await selling.find_with_token(first.booking.reference, first.token)
    assert (found.booking, found.unit_code, found.project_slug) == (first.booking, "A-1", SLUG)
    lower = first.booking.reference.lower()
    assert (await selling.find_with_token(lower, first.token)).booking == first.booking
    for reference, token in (
        (first.booking.reference, second.token),
        (first.booking.reference, ""),
        ("222-222-222", first.token),
        ("nonsense", first.token),
    ):
        with pytest.raises(errors.UnknownBooking):
            await selling.find_with_token(reference, token)
    with pytest.raises(errors.UnknownUnit):
        await hold(selling, code="B-1")
    with pytest.raises(errors.UnknownProject):
        await selling.hold("elsewhere", "A-1", NORA, None, "request-1")


async def test_nobody_is_blocked_by_their_own_hold_and_an_old_token_does_no_harm(selling: Bookings) -> None:
    first = await hold(selling)
    again = await hold(selling, OMAR, token=first.token)
    assert (again.booking, again.token, again.is_new) == (first.booking, first.token, False)
    for token in (None, "hft_another"):
        with pytest.raises(errors.NotAvailable):
            await hold(selling, NORA, token=token)
    await cancel(selling, first.booking.reference)
    second = await hold(selling, OMAR, token=first.token)
    assert (second.is_new, second.token != first.token) == (True, True)


async def test_refused_holds_leave_nothing_for_the_garbage_collector(selling: Bookings) -> None:
    """Each batch holds all its commands and snapshots: a flood of refusals must not wait for a collection."""

    async def ask_in_vain() -> None:
        with suppress(errors.NotAvailable):
            await hold(selling, OMAR)

    await hold(selling)
    await ask_in_vain()
    gc.collect()
    # A failure that an earlier test has looked at may be about still.
    earlier = _alive()
    gc.disable()
    try:
        await asyncio.gather(*(ask_in_vain() for _ in range(LARGEST_BATCH)))
        await asyncio.sleep(0)
        left = _alive() - earlier
    finally:
        gc.enable()
    assert left == set()


def _alive() -> set[int]:
    return {id(one) for one in gc.get_objects() if isinstance(one, Batch | errors.NotAvailable)}


async def test_a_booking_is_put_down_to_its_buyer_by_reference(selling: Bookings, database: Database) -> None:
    booked = (await hold(selling)).booking.reference
    await selling.sign(await selling.find(booked), BUYER, "request-2")
    statement = "select action, actor_id, request_id from audit_entry where actor_kind = 'buyer' order by id"
    assert await rows(database, statement) == [("open", booked, "request-1"), ("sign", booked, "request-2")]


async def test_staff_sell_to_a_buyer_who_walked_in_and_hand_out_the_link(selling: Bookings) -> None:
    sold = await selling.act_on_unit(SLUG, "A-1", WALK_IN, Caller.STAFF, STAFF)
    _, token = await selling.reissue_link(await selling.find(sold.booking.reference), STAFF)
    found = await selling.find_with_token(sold.booking.reference, token)
    assert (found.booking.buyer, found.booking.status) == (BUYER, BookingStatus.SOLD)


async def test_the_details_of_a_booking_tell_what_can_be_done_to_it_now(selling: Bookings) -> None:
    reference = (await hold(selling)).booking.reference
    await selling.sign(await selling.find(reference), BUYER, "request-2")
    details = await selling.load_details(reference, Caller.STAFF)
    assert details.unit.booking == details.found.booking
    assert {BookingAction.CANCEL, BookingAction.CONFIRM_DEPOSIT} <= set(details.possible)
    await cancel(selling, reference)
    await hold(selling, OMAR)
    details = await selling.load_details(reference, Caller.STAFF)
    assert details.unit.booking not in (None, details.found.booking)
    assert BookingAction.CANCEL not in details.possible


# The same request again, by its Idempotency-Key


async def test_the_same_request_again_gets_the_same_answer(selling: Bookings) -> None:
    held = await asyncio.gather(*(hold(selling, KEYED) for _ in range(12)))
    assert len({one.booking.reference for one in held}) == len({one.token for one in held}) == 1
    first, again = held[0], await hold(selling, KEYED)
    assert (again.booking, again.token, again.is_new) == (first.booking, first.token, True)
    await selling.find_with_token(first.booking.reference, first.token)
    # By the cookie from another address, and at the same address without it.
    for same in (KEYED._replace(address="192.0.2.9"), KEYED._replace(visitor=None)):
        assert (await hold(selling, same)).token == first.token
    with pytest.raises(errors.IdempotencyKeyUsed):
        await hold(selling, OMAR._replace(idempotency_key=KEYED.idempotency_key))
    assert (await hold(selling, KEYED, "A-2")).token != first.token


async def test_a_request_is_repeated_to_its_address_for_a_minute_and_until_the_signature(
    selling: Bookings, database: Database
) -> None:
    first = await hold(selling, KEYED)
    await execute(database, "update booking set created_at = created_at - interval '61 s'")
    assert (await hold(selling, KEYED)).token == first.token
    with pytest.raises(errors.IdempotencyKeyUsed):
        await hold(selling, KEYED._replace(visitor="another cookie"))
    await selling.sign(await selling.find(first.booking.reference), BUYER, "request-3")
    with pytest.raises(errors.IdempotencyKeyUsed) as used:
        await hold(selling, KEYED)
    assert used.value.status is Status.HELD


async def test_a_request_whose_hold_has_ended_makes_no_other(selling: Bookings, database: Database) -> None:
    lapsed, cancelled = await hold(selling, KEYED), await hold(selling, KEYED, "A-2")
    await make_lapse(database, lapsed.booking)
    with pytest.raises(errors.HoldLapsed):
        await hold(selling, KEYED)
    await cancel(selling, cancelled.booking.reference)
    for token in (None, cancelled.token):
        with pytest.raises(errors.IdempotencyKeyUsed):
            await hold(selling, KEYED, "A-2", token)
    second = await hold(selling, NORA, "A-2")
    again = await hold(selling, KEYED, "A-2", second.token)
    assert (again.booking, again.token, again.is_new) == (second.booking, second.token, False)


async def test_a_new_link_ends_the_old_one_for_repeated_requests_too(selling: Bookings) -> None:
    first = await hold(selling, KEYED)
    _, token = await selling.reissue_link(await selling.find(first.booking.reference), STAFF)
    with pytest.raises(errors.UnknownBooking):
        await selling.find_with_token(first.booking.reference, first.token)
    with pytest.raises(errors.IdempotencyKeyUsed):
        await hold(selling, KEYED)
    for requester in (NORA, KEYED):
        again = await hold(selling, requester, token=token)
        assert (again.booking.number, again.token, again.is_new) == (first.booking.number, token, False)


async def repeated(database: Database, meanwhile: Hook) -> Held:
    return await hold(interrupted(database, meanwhile), KEYED)


async def test_a_hold_that_lapsed_meanwhile_is_told_as_lapsed(selling: Bookings, database: Database) -> None:
    first = await hold(selling, KEYED)

    async def let_it_lapse() -> None:
        await make_lapse(database, first.booking)
        assert await expire_due_holds(database, 10) == 1

    with pytest.raises(errors.HoldLapsed) as lapsed:
        await repeated(database, let_it_lapse)
    assert lapsed.value.status is Status.AVAILABLE


@pytest.mark.parametrize("is_made_meanwhile", [False, True])
async def test_a_hold_that_was_cancelled_meanwhile_is_not_repeated(
    selling: Bookings, database: Database, is_made_meanwhile: bool
) -> None:
    if not is_made_meanwhile:
        await hold(selling, KEYED)

    async def cancel_it() -> None:
        await cancel(selling, (await hold(selling, KEYED)).booking.reference)

    with pytest.raises(errors.IdempotencyKeyUsed) as refused:
        await repeated(database, cancel_it)
    assert refused.value.status is Status.AVAILABLE


async def test_a_hold_that_was_made_meanwhile_is_given_whole(selling: Bookings, database: Database) -> None:
    made: list[Held] = []

    async def hold_it() -> None:
        made.append(await hold(selling, KEYED))

    again = await repeated(database, hold_it)
    (first,) = made
    assert (again.booking, again.token, again.unit) == (first.booking, first.token, first.unit)


# Another database under a running process, such as a restored backup, issues numbers again.

EVERYTHING = """
    select (select json_agg(booking order by number)::text from booking),
        (select json_agg(unit order by code)::text from unit),
        (select count(*) from event), (select count(*) from audit_entry)
"""


async def test_a_number_that_is_taken_stores_nothing(selling: Bookings, database: Database) -> None:
    office, shop = [Bookings(database, Units(database), HoldPeriods(), selling.limits) for _ in range(2)]
    for process in (office, shop, selling):
        await execute(database, "select setval('booking_number', 5000)")
        await process.drafts.draft()
    for code, requester in (("A-1", OMAR), ("A-2", OMAR), ("A-3", OMAR._replace(visitor=None))):
        await hold(selling, requester, code)
    before = await rows(database, EVERYTHING)
    with pytest.raises(errors.TransitionNotAllowed):
        await office.act_on_unit(SLUG, "A-1", WALK_IN, Caller.STAFF, STAFF)
    with pytest.raises(errors.DatabaseUnavailable):
        await office.act_on_unit(SLUG, "A-4", WALK_IN, Caller.STAFF, STAFF)
    with pytest.raises(errors.DatabaseUnavailable):
        await hold(shop, code="A-4")
    assert await rows(database, EVERYTHING) == before
    # The other numbers of the block are not tried one by one, nor those that are drawn again.
    await execute(database, "select setval('booking_number', 5001)")
    held = await hold(shop, code="A-4")
    assert held.booking.number == 5005
    assert (await selling.find_with_token(held.booking.reference, held.token)).booking == held.booking


async def open_unit(selling: Bookings, code: str) -> Booking:
    return (await selling.act_on_unit(SLUG, code, StaffAction(Action.OPEN), Caller.STAFF, STAFF)).booking


async def sell_unit(selling: Bookings, code: str) -> Booking:
    return (await selling.act_on_unit(SLUG, code, WALK_IN, Caller.STAFF, STAFF)).booking


async def hold_unit(selling: Bookings, code: str) -> Booking:
    return (await hold(selling, NORA._replace(visitor=code), code)).booking


@pytest.mark.parametrize("make", [hold_unit, open_unit, sell_unit])
async def test_a_reference_that_an_earlier_release_has_given_out_goes_to_no_other_booking(
    selling: Bookings, database: Database, make: Callable[[Bookings, str], Awaitable[Booking]]
) -> None:
    """Its references were made in another way, and one may be what a new number would get."""
    secret = await database.read(bookings.installation_secret)
    await execute(database, "select setval('booking_number', 5000)")
    await make(selling, "A-1")
    await execute(database, f"update booking set number = 1, reference = '{encode_reference(5002, secret)}'")
    # The process has drawn the number before the reference was given out.
    with pytest.raises(errors.InvalidInput, match="unique_reference"):
        await make(selling, "A-2")
    assert (await make(selling, "A-2")).number == 5003
    # It draws the number now: a collision takes the next one.
    await execute(database, "select setval('booking_number', 5001)")
    selling.drafts.forget()
    made = await make(selling, "A-3")
    assert (made.number, made.reference) == (5004, encode_reference(5004, secret))
    for number, code in ((5002, "A-1"), (5003, "A-2"), (5004, "A-3")):
        assert (await selling.find(encode_reference(number, secret))).unit_code == code


async def test_a_refusal_is_no_reason_to_forget_the_other_numbers(selling: Bookings) -> None:
    first = await hold(selling, OMAR)
    with pytest.raises(errors.NotAvailable):
        await hold(selling, code="A-1")
    second = await hold(selling, code="A-2")
    assert second.booking.number == first.booking.number + 2


# Buyers' pages: a visitor holds a unit once, and comes back to it.

NORAS, OMARS = "noras-secret-cookie", "omars-secret-cookie"


def counted(secret: str) -> str:
    """The other cookie of the same browser."""
    return f"visitor-with-{secret}"


def buyer(secret: str) -> Requester:
    return Requester("192.0.2.1", counted(secret), secret=secret)


async def opened(selling: Bookings, secret: str = NORAS, code: str = "A-1") -> OpenedBooking:
    return await selling.open(SLUG, code, buyer(secret), "request-1")


# Old bookings that ended without a deposit are deleted.


async def trim(database: Database, at_most: int = 100) -> int:
    return await jobs.trim(database, bookings.TRIM, 30, at_most)


async def age(database: Database) -> None:
    """Everything that is over ended a month earlier."""
    await execute(database, AGE)


async def test_of_old_bookings_those_that_ended_without_a_deposit_are_deleted_and_no_others(
    database: Database,
) -> None:
    keys = await new_keys(database, *"ABCDEFGHIJK")
    selling = Bookings(database, Units(database), HoldPeriods(), HoldLimits())
    lapsed = [await sales.hold(database, keys[0]), await sales.sign(database, keys[1])]
    await make_lapse(database, *lapsed)
    assert await expire_due_holds(database, 10) == 2
    cancelled = [await sales.hold(database, keys[2]), await sales.sign(database, keys[3])]
    for key, booking in zip(keys[2:4], cancelled, strict=True):
        await done(database, sales.cancellation(key, booking))
    kept = [
        await sales.hold(database, keys[4], 90 * 86_400),
        await sales.sign(database, keys[5], 90 * 86_400),
        await sales.reserve(database, keys[6], 90 * 86_400),
        await sales.sell(database, keys[7]),
        due := await sales.refund_due(database, keys[8]),
        await sales.refund_due(database, keys[9]),
    ]
    await done(database, sales.refund(keys[8], due))
    walk_in = await selling.act_on_unit(SLUG, "K", WALK_IN, Caller.STAFF, STAFF)
    await selling.act_on_unit(SLUG, "K", StaffAction(Action.REVOKE_SALE), Caller.ADMIN, STAFF)
    await age(database)
    late = await sales.hold(database, keys[0])
    await done(database, sales.cancellation(keys[0], late))
    kept += [walk_in.booking, late]
    assert [await trim(database, 3) for _ in range(3)] == [3, 1, 0]
    for booking in kept:
        assert (await selling.find(booking.reference)).booking.number == booking.number
    for booking in lapsed + cancelled:
        with pytest.raises(errors.UnknownBooking):
            await selling.find(booking.reference)
    # The history of the unit names it, and its reference is not given out again.
    history = await database.read(audit.history, lapsed[0].unit_id, 2**62, 10)
    assert {entry.booking_reference for entry in history} == {None, lapsed[0].reference, late.reference}
    assert late.number > max(booking.number for booking in lapsed)


async def test_a_deposit_finds_no_booking_that_is_deleted_while_it_is_decided(database: Database) -> None:
    key = await sales.new_unit(database)
    booking = await sales.sign(database, key)
    await make_lapse(database, booking)
    assert await expire_due_holds(database, 10) == 1
    await age(database)
    meanwhile = InterferingDatabase(database, before_store=lambda: trim(database))
    selling = Bookings(meanwhile, Units(meanwhile), HoldPeriods(), HoldLimits())
    found = await selling.find(booking.reference)
    with pytest.raises(errors.UnknownBooking, match=booking.reference):
        await selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF)
    assert await rows(database, "select status, version from unit") == [("available", 3)]


async def test_a_booking_whose_unit_is_being_written_is_not_deleted(database: Database) -> None:
    key = await sales.new_unit(database)
    await done(database, sales.cancellation(key, await sales.hold(database, key)))
    await age(database)
    async with database.writing() as writer:
        await writer.execute("select from unit for no key update")
        assert await asyncio.wait_for(trim(database), 60) == 0
    assert await trim(database) == 1


async def test_of_many_clicks_at_once_one_makes_the_hold_and_all_lead_to_it(selling: Bookings) -> None:
    entered = await asyncio.gather(*(opened(selling) for _ in range(20)))
    assert len(set(entered)) == 1
    assert await opened(selling) == entered[0]
    found = await selling.find_with_token(*entered[0])
    assert (found.booking.status, found.unit_code) == (BookingStatus.OPEN, "A-1")
    two = [opened(selling, secret, "A-4") for secret in "ab"]
    outcomes = await asyncio.gather(*two, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NotAvailable", "OpenedBooking"]
    twice = await asyncio.gather(*(opened(selling, code="A-2") for _ in range(5)))
    assert len(set(twice)) == 1
    with pytest.raises(errors.TooManyHolds):
        await opened(selling, code="A-3")
    with pytest.raises(errors.UnknownProject):
        await selling.open("no-such-project", "A-1", buyer(NORAS), "request-1")


async def test_a_unit_stays_the_visitors_own_until_they_give_it_up(selling: Bookings) -> None:
    entered = await opened(selling)
    found = await selling.find(entered.reference)
    await selling.sign(found, BUYER, "request-2")
    assert await opened(selling) == entered
    await selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF)
    assert await selling.own_claim(SLUG, "A-1", NORAS) == entered
    with pytest.raises(errors.NotAvailable):
        await opened(selling, OMARS)
    assert await selling.own_claim(SLUG, "A-1", OMARS) is None
    await selling.act_on_booking(found, BookingAction.CANCEL, Caller.STAFF, STAFF)
    assert await selling.own_claim(SLUG, "A-1", NORAS) is None
    second = await opened(selling)
    assert (second.reference != entered.reference, second.token != entered.token) == (True, True)


async def test_a_visitor_finds_their_booking_and_nobody_elses(selling: Bookings) -> None:
    """The cookie by which holds are counted opens nothing: any host beside ours can plant it."""
    entered = await opened(selling)
    found, own = await selling.find_own(entered.reference.lower(), NORAS)
    assert (found.booking.reference, own) == entered
    for secret, token in ((OMARS, None), ("", "hft_another"), (NORAS[:-1], ""), (counted(NORAS), None)):
        with pytest.raises(errors.UnknownBooking):
            await selling.find_own(entered.reference, secret, token)
    with pytest.raises(errors.UnknownBooking):
        await selling.find_own("nonsense", NORAS)
    assert await selling.own_claim(SLUG, "A-1", counted(NORAS)) is None
    found, token = await selling.find_own(entered.reference, OMARS, entered.token)
    assert (found.booking.reference, token) == entered
    # The same cookie makes another token for each booking.
    second = await opened(selling, code="A-3")
    with pytest.raises(errors.UnknownBooking):
        await selling.find_with_token(second.reference, entered.token)
    # Nor does it open a hold of the API, where anybody may have chosen the cookie.
    held = await hold(selling, code="A-2")
    with pytest.raises(errors.UnknownBooking):
        await selling.find_own(held.booking.reference, "noras-cookie")


async def test_a_new_link_shuts_out_the_visitors_cookie(selling: Bookings) -> None:
    entered = await opened(selling)
    _, token = await selling.reissue_link(await selling.find(entered.reference), STAFF)
    with pytest.raises(errors.UnknownBooking):
        await selling.find_own(entered.reference, NORAS, entered.token)
    assert await selling.own_claim(SLUG, "A-1", NORAS) is None
    with pytest.raises(errors.NotAvailable):
        await opened(selling)
    assert (await selling.find_own(entered.reference, NORAS, token))[1] == token


async def test_live_holds_are_those_of_the_visitor(selling: Bookings, database: Database) -> None:
    async def live(visitor: str = NORAS, secret: str = NORAS, slug: str = SLUG) -> list[tuple[str, str]]:
        found = await selling.live_holds(counted(visitor), secret, slug)
        return [(one.booking.reference, one.unit_code) for one in found]

    first, second = await opened(selling), await opened(selling, code="A-2")
    await opened(selling, OMARS, "A-3")
    assert await live() == [(first.reference, "A-1"), (second.reference, "A-2")]
    assert await live(slug="another-project") == []
    assert await live(secret=OMARS) == []
    await make_lapse(database, (await selling.find(first.reference)).booking)
    signed = await selling.find(second.reference)
    await selling.sign(signed, BUYER, "request-2")
    assert await live() == [(second.reference, "A-2")]
    await selling.act_on_booking(signed, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF)
    assert await live() == []
