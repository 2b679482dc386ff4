"""What buyers look for, and what a price is made of."""

from decimal import Decimal
from uuid import UUID

import pytest

from holdfast.domain.board import BoardUnit
from holdfast.domain.booking import Terms
from holdfast.domain.listing import Listing, ListingCursor, ListingOrder, UnitFilter, cursor_after, vat_amount
from holdfast.domain.status import Status


def offer(status: Status = Status.AVAILABLE, *, included: bool | None = False) -> Listing:
    price = Decimal(1_000_000)
    unit = BoardUnit(UUID(int=1), "A-101", "Flat", Decimal("80.5"), price, 2, status, False, None, 1)
    return Listing(unit, Terms(price, included, Decimal(15), Decimal(10)), 1, None)


@pytest.mark.parametrize(
    ("wish", "is_met"),
    [
        (UnitFilter(), True),
        (UnitFilter(type="Flat", bedrooms=2), True),
        (UnitFilter(type="Villa"), False),
        (UnitFilter(bedrooms=0), False),
        (UnitFilter(price_from=Decimal(1_150_000), price_to=Decimal(1_150_000)), True),
        (UnitFilter(price_to=Decimal("1149999.99")), False),
        (UnitFilter(area_from=Decimal("80.5"), area_to=Decimal("80.5")), True),
        (UnitFilter(area_to=Decimal(80)), False),
    ],
)
def test_a_wish_goes_by_what_a_buyer_pays(wish: UnitFilter, is_met: bool) -> None:
    assert wish.match(offer()) is is_met


@pytest.mark.parametrize("status", list(Status))
def test_only_what_is_available_is_free(status: Status) -> None:
    assert UnitFilter(free_only=True).match(offer(status)) is (status is Status.AVAILABLE)


@pytest.mark.parametrize(
    ("terms", "vat"),
    [
        (Terms(Decimal(1000), False, Decimal(15), None), Decimal("150.00")),
        (Terms(Decimal("0.33"), False, Decimal(15), None), Decimal("0.05")),
        (Terms(Decimal(1150), True, Decimal(15), None), Decimal("150.00")),
        (Terms(Decimal(1150), None, Decimal(15), None), Decimal("150.00")),
        (Terms(Decimal(1150), False, None, None), None),
        (Terms(Decimal(1150), True, Decimal(0), None), None),
    ],
)
def test_vat_and_the_rest_are_the_total(terms: Terms, vat: Decimal | None) -> None:
    assert vat_amount(terms) == vat


def test_a_page_ends_where_its_order_says() -> None:
    assert cursor_after(offer(), ListingOrder.PRICE_DOWN) == ListingCursor(Decimal("1150000.00"), "A-101")
    assert cursor_after(offer(), ListingOrder.AREA) == ListingCursor(Decimal("80.5"), "A-101")
    assert cursor_after(offer(), ListingOrder.FLOOR) == ListingCursor(None, "A-101")
