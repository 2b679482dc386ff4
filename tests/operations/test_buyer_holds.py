"""Buyers' pages: a visitor holds a unit once, comes back to it, and finds similar units."""

import asyncio
from decimal import Decimal

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import NotAvailable, TooManyHolds, UnknownBooking, UnknownProject
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import UnitFields
from holdfast.operations.bookings import Bookings, OpenedBooking, StaffAction
from holdfast.operations.layouts import LayoutCache
from holdfast.operations.listings import Listings
from holdfast.operations.units import ReplaceUnit, Units
from holdfast.storage.database import Database
from tests.operations.buyers import STAFF, hold
from tests.support.inventory import SLUG, claim, new_project, store
from tests.support.sales import BUYER, make_lapse

NORA, OMAR = "noras-secret-cookie", "omars-secret-cookie"


def counted(secret: str) -> str:
    """The other cookie of the same browser."""
    return f"visitor-with-{secret}"


async def opened(selling: Bookings, secret: str = NORA, code: str = "A-1") -> OpenedBooking:
    return await selling.open(SLUG, code, "192.0.2.1", counted(secret), secret, "request-1")


async def test_a_visitor_gets_a_hold_and_its_token(selling: Bookings) -> None:
    entered = await opened(selling)
    found = await selling.find_with_token(entered.reference, entered.token)
    assert (found.booking.status, found.unit_code) == (BookingStatus.OPEN, "A-1")


async def test_a_second_click_leads_to_the_same_hold(selling: Bookings) -> None:
    first, second = await opened(selling), await opened(selling)
    assert second == first


async def test_of_many_clicks_at_once_one_makes_the_hold_and_all_lead_to_it(selling: Bookings) -> None:
    entered = await asyncio.gather(*(opened(selling) for _ in range(20)))
    assert len({(one.reference, one.token) for one in entered}) == 1


async def test_a_second_click_is_no_second_hold_where_a_visitor_may_have_no_more(
    selling: Bookings,
) -> None:
    await opened(selling, code="A-1")
    twice = await asyncio.gather(*(opened(selling, code="A-2") for _ in range(5)))
    assert len({one.reference for one in twice}) == 1
    with pytest.raises(TooManyHolds):
        await opened(selling, code="A-3")


async def test_of_two_visitors_at_once_one_is_refused(selling: Bookings) -> None:
    outcomes = await asyncio.gather(opened(selling, NORA), opened(selling, OMAR), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NotAvailable", "OpenedBooking"]


async def test_another_visitor_is_refused_however_often_they_ask(selling: Bookings) -> None:
    await opened(selling)
    for _ in range(2):
        with pytest.raises(NotAvailable):
            await opened(selling, OMAR)
    assert await selling.own_claim(SLUG, "A-1", OMAR) is None


async def test_a_unit_stays_the_visitors_own_after_the_signature_and_the_deposit(selling: Bookings) -> None:
    entered = await opened(selling)
    found = await selling.find(entered.reference)
    await selling.sign(found, BUYER, "request-2")
    assert await opened(selling) == entered
    await selling.act_on_booking(
        found, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF, payment_id="pay_1"
    )
    assert await selling.own_claim(SLUG, "A-1", NORA) == entered
    with pytest.raises(NotAvailable):
        await opened(selling, OMAR)


async def test_what_was_given_up_can_be_opened_anew(selling: Bookings) -> None:
    first = await opened(selling)
    await selling.cancel_as_buyer(await selling.find(first.reference), "request-2")
    assert await selling.own_claim(SLUG, "A-1", NORA) is None
    second = await opened(selling)
    assert (second.reference != first.reference, second.token != first.token) == (True, True)


async def test_a_visitor_finds_their_booking_and_nobody_elses(selling: Bookings) -> None:
    entered = await opened(selling)
    found, own = await selling.find_own(entered.reference.lower(), NORA)
    assert (found.booking.reference, own) == (entered.reference, entered.token)
    for secret, token in ((OMAR, None), ("", "hft_another"), (NORA[:-1], "")):
        with pytest.raises(UnknownBooking):
            await selling.find_own(entered.reference, secret, token)
    with pytest.raises(UnknownBooking):
        await selling.find_own("nonsense", NORA)


async def test_the_token_of_a_link_opens_a_booking_for_any_visitor(selling: Bookings) -> None:
    entered = await opened(selling)
    found, token = await selling.find_own(entered.reference, OMAR, entered.token)
    assert (found.booking.reference, token) == (entered.reference, entered.token)


async def test_the_cookie_by_which_holds_are_counted_opens_nothing(selling: Bookings) -> None:
    """Any host beside ours can plant it."""
    entered = await opened(selling)
    with pytest.raises(UnknownBooking):
        await selling.find_own(entered.reference, counted(NORA))
    assert await selling.own_claim(SLUG, "A-1", counted(NORA)) is None
    assert await selling.live_holds(counted(NORA), OMAR, SLUG) == []


async def test_a_new_link_shuts_out_the_visitors_cookie(selling: Bookings) -> None:
    entered = await opened(selling)
    _, token = await selling.reissue_link(await selling.find(entered.reference), STAFF)
    with pytest.raises(UnknownBooking):
        await selling.find_own(entered.reference, NORA, entered.token)
    assert await selling.own_claim(SLUG, "A-1", NORA) is None
    with pytest.raises(NotAvailable):
        await opened(selling)
    assert (await selling.find_own(entered.reference, NORA, token))[1] == token


async def test_the_same_cookie_makes_another_token_for_each_booking(selling: Bookings) -> None:
    tokens = [
        await selling.drafts.token_of_buyer(NORA, reference) for reference in ("222-222-222", "333-333-333")
    ]
    tokens.append(await selling.drafts.token_of_buyer(OMAR, "222-222-222"))
    assert len(set(tokens)) == 3
    assert tokens[0] == await selling.drafts.token_of_buyer(NORA, "222-222-222")


async def test_the_visitors_cookie_opens_no_hold_of_the_api(selling: Bookings) -> None:
    """There anybody may have chosen the cookie, and somebody else may know it."""
    held = await hold(selling)
    with pytest.raises(UnknownBooking):
        await selling.find_own(held.booking.reference, "noras-cookie")


async def test_live_holds_are_those_of_the_visitor_in_the_project(selling: Bookings) -> None:
    first, second = await opened(selling), await opened(selling, code="A-2")
    await opened(selling, OMAR, "A-3")
    found = await selling.live_holds(counted(NORA), NORA, SLUG)
    assert [(one.booking.reference, one.unit_code) for one in found] == [
        (first.reference, "A-1"),
        (second.reference, "A-2"),
    ]
    assert await selling.live_holds(counted(NORA), NORA, "another-project") == []
    await selling.cancel_as_buyer(found[0], "request-2")
    assert [one.unit_code for one in await selling.live_holds(counted(NORA), NORA, SLUG)] == ["A-2"]


async def test_a_hold_that_is_over_or_paid_is_none_to_go_back_to(
    selling: Bookings, database: Database
) -> None:
    lapsed, paid = await opened(selling), await opened(selling, code="A-2")
    await make_lapse(database, (await selling.find(lapsed.reference)).booking)
    signed = await selling.find(paid.reference)
    await selling.sign(signed, BUYER, "request-2")
    assert [one.unit_code for one in await selling.live_holds(counted(NORA), NORA, SLUG)] == ["A-2"]
    await selling.act_on_booking(signed, BookingAction.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, STAFF)
    assert await selling.live_holds(counted(NORA), NORA, SLUG) == []


async def test_an_unknown_project_is_told(selling: Bookings) -> None:
    with pytest.raises(UnknownProject):
        await selling.open("no-such-project", "A-1", "192.0.2.1", counted(NORA), NORA, "request-1")


# Others like it

ALIKE = {
    "B-1": ("apartment", 3, 1_000_000),
    "B-2": ("villa", 3, 1_000_000),
    "B-3": ("apartment", 3, 1_100_000),
    "B-4": ("apartment", 3, 950_000),
    "B-5": ("apartment", 2, 1_000_000),
    "B-6": ("apartment", None, 1_000_000),
}


async def stocked(database: Database, slug: str = "palm-court-b") -> None:
    project_id = await new_project(database, slug)
    units = [
        ReplaceUnit(
            (project_id, code), UnitFields(kind, Decimal(100), Decimal(price), bedrooms=bedrooms), None
        )
        for code, (kind, bedrooms, price) in ALIKE.items()
    ]
    await store(database, *units)


async def looked_at(database: Database, code: str, slug: str = "palm-court-b") -> list[str]:
    inventory = Units(database)
    unit, _ = await inventory.find(slug, code)
    found = await Listings(database, inventory, LayoutCache()).similar(unit)
    await inventory.close()
    return [one.code for one in found]


async def test_the_most_alike_have_as_many_bedrooms_then_the_type_then_the_price(database: Database) -> None:
    await stocked(database)
    assert await looked_at(database, "B-1") == ["B-4", "B-3", "B-2"]
    assert await looked_at(database, "B-2") == ["B-1", "B-4", "B-3"]
    assert await looked_at(database, "B-6") == ["B-1", "B-5", "B-4"]


async def test_only_free_units_of_the_same_project_are_shown_and_a_lapsed_hold_is_free(
    database: Database,
) -> None:
    await stocked(database)
    await stocked(database, "palm-court-c")
    await claim(database, "B-4", Status.HELD, ends_in_seconds=300)
    await claim(database, "B-3", Status.HELD, ends_in_seconds=-1)
    assert await looked_at(database, "B-1") == ["B-3", "B-2", "B-5"]


async def test_what_staff_took_off_sale_is_like_nothing(selling: Bookings, database: Database) -> None:
    for code, action in (("A-2", Action.ARCHIVE), ("A-3", Action.TAKE_OFF_SALE)):
        await selling.act_on_unit(SLUG, code, StaffAction(action), Caller.STAFF, STAFF)
    assert await looked_at(database, "A-1", SLUG) == ["A-4", "A-5"]
