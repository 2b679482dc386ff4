"""What buyers do on our pages: a visitor opens a unit once, comes back to it, and finds others like it."""

import asyncio
from decimal import Decimal

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import NotAvailable, TooManyHolds, UnknownBooking, UnknownProject
from holdfast.domain.status import Action, Caller, Status
from holdfast.domain.unit import UnitFields
from holdfast.operations.bookings import BookingRules, Bookings, BuyerBookings, OpenedBooking, StaffAction
from holdfast.operations.units import ReplaceUnit, Units
from holdfast.storage.database import Database
from tests.operations.buyers import STAFF, hold
from tests.support.sales import BUYER, make_lapse
from tests.support.stock import SLUG, claim, new_project, store

NORA, OMAR = "noras-secret-cookie", "omars-secret-cookie"


@pytest.fixture
def buying(database: Database, selling: Bookings) -> BuyerBookings:
    return BuyerBookings(database, selling._units, selling)


def counted(secret: str) -> str:
    """The other cookie of the same browser."""
    return f"visitor-with-{secret}"


async def opened(buying: BuyerBookings, secret: str = NORA, code: str = "A-1") -> OpenedBooking:
    return await buying.open(SLUG, code, "192.0.2.1", counted(secret), secret, "request-1")


async def test_a_visitor_gets_a_hold_and_its_token(buying: BuyerBookings, selling: Bookings) -> None:
    entered = await opened(buying)
    found = await selling.find_with_token(entered.reference, entered.token)
    assert (found.booking.status, found.unit_code) == (BookingStatus.OPEN, "A-1")


async def test_a_second_click_leads_to_the_same_hold(buying: BuyerBookings) -> None:
    first, second = await opened(buying), await opened(buying)
    assert second == first


async def test_of_many_clicks_at_once_one_makes_the_hold_and_all_lead_to_it(buying: BuyerBookings) -> None:
    entered = await asyncio.gather(*(opened(buying) for _ in range(20)))
    assert len({(one.reference, one.token) for one in entered}) == 1


async def test_a_second_click_is_no_second_hold_where_a_visitor_may_have_no_more(
    buying: BuyerBookings,
) -> None:
    await opened(buying, code="A-1")
    twice = await asyncio.gather(*(opened(buying, code="A-2") for _ in range(5)))
    assert len({one.reference for one in twice}) == 1
    with pytest.raises(TooManyHolds):
        await opened(buying, code="A-3")


async def test_of_two_visitors_at_once_one_is_refused(buying: BuyerBookings) -> None:
    outcomes = await asyncio.gather(opened(buying, NORA), opened(buying, OMAR), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NotAvailable", "OpenedBooking"]


async def test_another_visitor_is_refused_however_often_they_ask(buying: BuyerBookings) -> None:
    await opened(buying)
    for _ in range(2):
        with pytest.raises(NotAvailable):
            await opened(buying, OMAR)
    assert await buying.own_claim(SLUG, "A-1", OMAR) is None


async def test_a_unit_stays_the_visitors_own_after_the_signature_and_the_deposit(
    buying: BuyerBookings, selling: Bookings
) -> None:
    entered = await opened(buying)
    found = await selling.find(entered.reference)
    await selling.sign(found, BUYER, "request-2")
    assert await opened(buying) == entered
    await selling.confirm_deposit(found, Caller.PAYMENT_SYSTEM, STAFF, payment_id="pay_1")
    assert await buying.own_claim(SLUG, "A-1", NORA) == entered
    with pytest.raises(NotAvailable):
        await opened(buying, OMAR)


async def test_what_was_given_up_can_be_opened_anew(buying: BuyerBookings, selling: Bookings) -> None:
    first = await opened(buying)
    await selling.cancel_as_buyer(await selling.find(first.reference), "request-2")
    assert await buying.own_claim(SLUG, "A-1", NORA) is None
    second = await opened(buying)
    assert (second.reference != first.reference, second.token != first.token) == (True, True)


async def test_a_visitor_finds_their_booking_and_nobody_elses(buying: BuyerBookings) -> None:
    entered = await opened(buying)
    found, token = await buying.find(entered.reference.lower(), NORA, ())
    assert (found.booking.reference, token) == (entered.reference, entered.token)
    for secret, tokens in ((OMAR, ()), ("", ("hft_another",)), (NORA[:-1], ("",))):
        with pytest.raises(UnknownBooking):
            await buying.find(entered.reference, secret, tokens)
    with pytest.raises(UnknownBooking):
        await buying.find("nonsense", NORA, ())


async def test_the_token_of_a_link_opens_a_booking_for_any_visitor(buying: BuyerBookings) -> None:
    entered = await opened(buying)
    found, token = await buying.find(entered.reference, OMAR, ("hft_another", entered.token))
    assert (found.booking.reference, token) == (entered.reference, entered.token)


async def test_the_cookie_by_which_holds_are_counted_opens_nothing(buying: BuyerBookings) -> None:
    """Any host beside ours can plant it."""
    entered = await opened(buying)
    with pytest.raises(UnknownBooking):
        await buying.find(entered.reference, counted(NORA), ())
    assert await buying.own_claim(SLUG, "A-1", counted(NORA)) is None
    assert await buying.live_holds(SLUG, counted(NORA), OMAR) == []


async def test_a_new_link_shuts_out_the_visitors_cookie(buying: BuyerBookings, selling: Bookings) -> None:
    entered = await opened(buying)
    _, token = await selling.reissue_link(await selling.find(entered.reference), STAFF)
    with pytest.raises(UnknownBooking):
        await buying.find(entered.reference, NORA, (entered.token,))
    assert await buying.own_claim(SLUG, "A-1", NORA) is None
    with pytest.raises(NotAvailable):
        await opened(buying)
    assert (await buying.find(entered.reference, NORA, (token,)))[1] == token


async def test_the_same_cookie_makes_another_token_for_each_booking(selling: Bookings) -> None:
    tokens = [await selling.token_of_buyer(NORA, reference) for reference in ("222-222-222", "333-333-333")]
    tokens.append(await selling.token_of_buyer(OMAR, "222-222-222"))
    assert len(set(tokens)) == 3
    assert tokens[0] == await selling.token_of_buyer(NORA, "222-222-222")


async def test_the_visitors_cookie_opens_no_hold_of_the_api(buying: BuyerBookings, selling: Bookings) -> None:
    """There anybody may have chosen the cookie, and somebody else may know it."""
    held = await hold(selling)
    with pytest.raises(UnknownBooking):
        await buying.find(held.booking.reference, "noras-cookie", ())


async def test_live_holds_are_those_of_the_visitor_in_the_project(
    buying: BuyerBookings, selling: Bookings
) -> None:
    first, second = await opened(buying), await opened(buying, code="A-2")
    await opened(buying, OMAR, "A-3")
    found = await buying.live_holds(SLUG, counted(NORA), NORA)
    assert [(one.booking.reference, one.unit_code) for one in found] == [
        (first.reference, "A-1"),
        (second.reference, "A-2"),
    ]
    assert await buying.live_holds("another-project", counted(NORA), NORA) == []
    await selling.cancel_as_buyer(found[0], "request-2")
    assert [one.unit_code for one in await buying.live_holds(SLUG, counted(NORA), NORA)] == ["A-2"]


async def test_a_hold_that_is_over_or_paid_is_none_to_go_back_to(
    buying: BuyerBookings, selling: Bookings, database: Database
) -> None:
    lapsed, paid = await opened(buying), await opened(buying, code="A-2")
    await make_lapse(database, (await selling.find(lapsed.reference)).booking)
    signed = await selling.find(paid.reference)
    await selling.sign(signed, BUYER, "request-2")
    assert [one.unit_code for one in await buying.live_holds(SLUG, counted(NORA), NORA)] == ["A-2"]
    await selling.confirm_deposit(signed, Caller.PAYMENT_SYSTEM, STAFF)
    assert await buying.live_holds(SLUG, counted(NORA), NORA) == []


async def test_an_unknown_project_is_told(buying: BuyerBookings) -> None:
    with pytest.raises(UnknownProject):
        await buying.open("no-such-project", "A-1", "192.0.2.1", counted(NORA), NORA, "request-1")


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


async def looked_at(database: Database, code: str) -> list[str]:
    inventory = Units(database)
    unit, _ = await inventory.find("palm-court-b", code)
    selling = Bookings(database, inventory, BookingRules())
    found = await BuyerBookings(database, inventory, selling).similar(unit)
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


async def test_what_staff_took_off_sale_is_like_nothing(buying: BuyerBookings, selling: Bookings) -> None:
    for code, action in (("A-2", Action.ARCHIVE), ("A-3", Action.TAKE_OFF_SALE)):
        await selling.act(SLUG, code, StaffAction(action), Caller.STAFF, STAFF)
    unit, _ = await selling._units.find(SLUG, "A-1")
    assert [one.code for one in await buying.similar(unit)] == ["A-4", "A-5"]
