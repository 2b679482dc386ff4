"""Bookings as the web uses them: repeated holds, and tokens that open one booking."""

import asyncio
import gc
from contextlib import suppress

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import (
    HeldTooRecently,
    NotAvailable,
    TooManyHolds,
    UnknownBooking,
    UnknownProject,
    UnknownUnit,
)
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.bookings import Bookings, StaffAction
from holdfast.operations.write_path import LARGEST_BATCH, Batch
from holdfast.storage.database import Database
from tests.operations.buyers import NORA, OMAR, STAFF, hold
from tests.support.inventory import SLUG
from tests.support.sales import BUYER, make_lapse


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
        with pytest.raises(UnknownBooking):
            await selling.find_with_token(reference, token)


async def test_nobody_is_blocked_by_their_own_hold(selling: Bookings) -> None:
    first = await hold(selling)
    again = await hold(selling, OMAR, token=first.token)
    assert (again.booking, again.token, again.is_new) == (first.booking, first.token, False)
    with pytest.raises(NotAvailable):
        await hold(selling, NORA)
    with pytest.raises(NotAvailable):
        await hold(selling, NORA, token="hft_another")


async def test_the_token_of_an_old_hold_does_no_harm(selling: Bookings) -> None:
    first = await hold(selling)
    await selling.cancel_as_buyer(await selling.find(first.booking.reference), "request-2")
    second = await hold(selling, OMAR, token=first.token)
    assert second.is_new
    assert second.token != first.token


async def test_visitors_and_addresses_have_limits_of_their_own(selling: Bookings) -> None:
    for code in ("A-1", "A-2"):
        await hold(selling, NORA, code)
    with pytest.raises(TooManyHolds, match="This visitor holds 2"):
        await hold(selling, NORA, "A-3")
    await hold(selling, NORA._replace(visitor=None), "A-3")
    with pytest.raises(TooManyHolds, match="Your network address holds 3"):
        await hold(selling, NORA._replace(visitor="another-cookie"), "A-4")
    await hold(selling, OMAR, "A-4")


async def test_a_limit_is_not_passed_by_asking_many_times_at_once(selling: Bookings) -> None:
    codes = [f"A-{number}" for number in range(1, 6)]
    outcomes = await asyncio.gather(*(hold(selling, NORA, code) for code in codes), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Held"] * 2 + ["TooManyHolds"] * 3


async def test_a_place_is_free_again_when_its_hold_is_over(selling: Bookings, database: Database) -> None:
    held = [await hold(selling, NORA, code) for code in ("A-1", "A-2")]
    await selling.cancel_as_buyer(await selling.find(held[0].booking.reference), "request-2")
    third = await hold(selling, NORA, "A-3")
    await make_lapse(database, third.booking)
    assert (await hold(selling, NORA, "A-4")).booking.status is BookingStatus.OPEN


async def test_after_a_lapse_the_same_visitor_waits_and_others_do_not(
    selling: Bookings, database: Database
) -> None:
    held = await hold(selling)
    await make_lapse(database, held.booking)
    with pytest.raises(HeldTooRecently):
        await hold(selling)
    with pytest.raises(HeldTooRecently):
        await hold(selling, OMAR, token=held.token)
    assert (await hold(selling, NORA._replace(visitor=None))).is_new


async def test_a_reference_that_became_no_booking_is_used_for_the_next(
    selling: Bookings, database: Database
) -> None:
    first = await hold(selling)
    for _ in range(3):
        with pytest.raises(NotAvailable):
            await hold(selling, OMAR)
    made = [await hold(selling, requester, code) for requester, code in ((OMAR, "A-2"), (OMAR, "A-3"))]
    references = {first.booking.reference, *(one.booking.reference for one in made)}
    assert len(references) == 3
    async with database.reading() as connection:
        assert await connection.fetchval("select count(distinct reference) from booking") == 3


async def test_refused_holds_leave_nothing_for_the_garbage_collector(selling: Bookings) -> None:
    """Each batch holds all its commands and snapshots: a flood of refusals must not wait for a collection."""

    async def ask_in_vain() -> None:
        with suppress(NotAvailable):
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
    return {id(one) for one in gc.get_objects() if isinstance(one, Batch | NotAvailable)}


async def test_a_booking_is_put_down_to_its_buyer_by_reference(selling: Bookings, database: Database) -> None:
    held = await hold(selling)
    await selling.sign(await selling.find(held.booking.reference), BUYER, "request-2")
    async with database.reading() as connection:
        rows = await connection.fetch(
            "select action, actor_id, request_id from audit_entry where actor_kind = 'buyer' order by id"
        )
    reference = held.booking.reference
    assert [tuple(row) for row in rows] == [
        ("open", reference, "request-1"),
        ("sign", reference, "request-2"),
    ]


async def test_staff_sell_to_a_buyer_who_walked_in_and_hand_out_the_link(selling: Bookings) -> None:
    sold = await selling.act_on_unit(SLUG, "A-1", StaffAction(Action.CLOSE_SALE, BUYER), Caller.STAFF, STAFF)
    _, token = await selling.reissue_link(await selling.find(sold.booking.reference), STAFF)
    found = await selling.find_with_token(sold.booking.reference, token)
    assert (found.booking.buyer, found.booking.status) == (BUYER, BookingStatus.SOLD)


async def test_what_is_not_there_cannot_be_held(selling: Bookings) -> None:
    with pytest.raises(UnknownUnit):
        await hold(selling, code="B-1")
    with pytest.raises(UnknownProject):
        await selling.hold("elsewhere", "A-1", NORA, None, "request-1")
    with pytest.raises(UnknownBooking):
        await selling.find("222-222-222")
