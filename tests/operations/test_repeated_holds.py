"""The same request for a hold again, by its Idempotency-Key."""

import asyncio

import pytest

from holdfast.domain.errors import HoldLapsed, NotAvailable, TransitionNotAllowed, UnknownBooking
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.status import Status
from holdfast.operations.bookings import Bookings, Held
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from tests.operations.buyers import KEYED, NORA, STAFF, cancel, hold
from tests.operations.interference import Hook, InterferingDatabase
from tests.support.sales import make_lapse


async def test_the_same_request_again_gets_the_same_answer(selling: Bookings) -> None:
    first, again = await hold(selling, KEYED), await hold(selling, KEYED)
    assert (again.booking, again.token, again.is_new) == (first.booking, first.token, True)
    with pytest.raises(NotAvailable):
        await hold(selling, KEYED._replace(address="192.0.2.9"))
    other_unit = await hold(selling, KEYED, "A-2")
    assert other_unit.token != first.token


async def test_the_same_request_many_times_at_once_is_one_hold(selling: Bookings) -> None:
    held = await asyncio.gather(*(hold(selling, KEYED) for _ in range(12)))
    assert len({one.booking.reference for one in held}) == len({one.token for one in held}) == 1
    await selling.find_with_token(held[0].booking.reference, held[0].token)


async def test_the_same_request_after_the_end_of_its_hold_makes_no_other(
    selling: Bookings, database: Database
) -> None:
    lapsed, cancelled = await hold(selling, KEYED), await hold(selling, KEYED, "A-2")
    await make_lapse(database, lapsed.booking)
    with pytest.raises(HoldLapsed):
        await hold(selling, KEYED)
    await selling.cancel_as_buyer(await selling.find(cancelled.booking.reference), "request-2")
    with pytest.raises(TransitionNotAllowed):
        await hold(selling, KEYED, "A-2")


async def test_a_new_link_ends_the_old_one_for_repeated_requests_too(selling: Bookings) -> None:
    first = await hold(selling, KEYED)
    _, token = await selling.reissue_link(await selling.find(first.booking.reference), STAFF)
    with pytest.raises(UnknownBooking):
        await selling.find_with_token(first.booking.reference, first.token)
    with pytest.raises(TransitionNotAllowed):
        await hold(selling, KEYED)
    again = await hold(selling, NORA, token=token)
    assert (again.booking.number, again.is_new) == (first.booking.number, False)


async def test_who_has_the_new_link_needs_no_other_key(selling: Bookings) -> None:
    first = await hold(selling, KEYED)
    _, token = await selling.reissue_link(await selling.find(first.booking.reference), STAFF)
    again = await hold(selling, KEYED, token=token)
    assert (again.booking.number, again.token, again.is_new) == (first.booking.number, token, False)


async def test_a_key_that_is_used_up_does_not_take_the_hold_of_a_token_away(selling: Bookings) -> None:
    await cancel(selling, await hold(selling, KEYED))
    second = await hold(selling, NORA)
    again = await hold(selling, KEYED, token=second.token)
    assert (again.booking, again.token, again.is_new) == (second.booking, second.token, False)


async def test_a_key_that_is_used_up_makes_no_other_hold_beside_a_token_that_is_none(
    selling: Bookings,
) -> None:
    first = await hold(selling, KEYED)
    await cancel(selling, first)
    with pytest.raises(TransitionNotAllowed):
        await hold(selling, KEYED, token=first.token)


async def overtaken(database: Database, meanwhile: Hook) -> Held:
    """The same request on another process, which has looked at the unit before something happens to it."""
    other = Units(InterferingDatabase(database, meanwhile))
    try:
        return await Bookings(database, other, HoldPeriods(), HoldLimits()).hold(
            "palm-court", "A-1", KEYED, None, "request-3"
        )
    finally:
        await other.close()


async def test_a_hold_that_was_cancelled_meanwhile_is_told_as_cancelled(
    selling: Bookings, database: Database
) -> None:
    first = await hold(selling, KEYED)
    with pytest.raises(TransitionNotAllowed) as refused:
        await overtaken(database, lambda: cancel(selling, first))
    assert refused.value.status is Status.AVAILABLE


async def test_a_hold_that_lapsed_meanwhile_is_told_as_lapsed(selling: Bookings, database: Database) -> None:
    first = await hold(selling, KEYED)

    async def let_it_lapse() -> None:
        await make_lapse(database, first.booking)
        assert await expire_due_holds(database, 10) == 1

    with pytest.raises(HoldLapsed) as refused:
        await overtaken(database, let_it_lapse)
    assert refused.value.status is Status.AVAILABLE


async def test_a_hold_that_was_made_and_cancelled_meanwhile_is_told_as_cancelled(
    selling: Bookings, database: Database
) -> None:
    async def hold_and_cancel() -> None:
        await cancel(selling, await hold(selling, KEYED))

    with pytest.raises(TransitionNotAllowed) as refused:
        await overtaken(database, hold_and_cancel)
    assert refused.value.status is Status.AVAILABLE


async def test_a_hold_that_the_same_request_has_made_meanwhile_is_given_with_the_unit_that_it_holds(
    selling: Bookings, database: Database
) -> None:
    made: list[Held] = []

    async def hold_it() -> None:
        made.append(await hold(selling, KEYED))

    again = await overtaken(database, hold_it)
    (first,) = made
    assert (again.booking, again.token) == (first.booking, first.token)
    assert again.unit == first.unit
