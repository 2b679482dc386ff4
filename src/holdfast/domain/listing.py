"""Listings: units on sale as buyers filter and sort them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.board import BoardUnit, is_between
from holdfast.domain.booking import Terms, rounded
from holdfast.domain.layout import Placement
from holdfast.domain.status import Status
from holdfast.domain.unit import Media


class Listing(NamedTuple):
    unit: BoardUnit
    terms: Terms
    bathrooms: int | None
    image: Media | None
    """The first one; None also where it was not loaded."""

    @property
    def is_free(self) -> bool:
        return self.unit.status is Status.AVAILABLE


class PlacedListing(NamedTuple):
    listing: Listing
    placement: Placement


class ListingOrder(StrEnum):
    """The order of a list; equal units are in the order of codes."""

    PRICE = "price"
    PRICE_DOWN = "price-down"
    AREA = "area"
    AREA_DOWN = "area-down"
    FLOOR = "floor"
    FLOOR_DOWN = "floor-down"

    @property
    def is_downward(self) -> bool:
        return self.value.endswith("-down")


BY_FLOOR = frozenset({ListingOrder.FLOOR, ListingOrder.FLOOR_DOWN})
BY_AREA = frozenset({ListingOrder.AREA, ListingOrder.AREA_DOWN})


class UnitFilter(NamedTuple):
    """None stands for any. Prices include VAT."""

    free_only: bool = False
    type: str | None = None
    bedrooms: int | None = None
    price_from: Decimal | None = None
    price_to: Decimal | None = None
    area_from: Decimal | None = None
    area_to: Decimal | None = None

    def match(self, listing: Listing) -> bool:
        unit = listing.unit
        return (
            (listing.is_free or not self.free_only)
            and self.type in (None, unit.type)
            and self.bedrooms in (None, unit.bedrooms)
            and is_between(listing.terms.total_sar, self.price_from, self.price_to)
            and is_between(unit.area_sqm, self.area_from, self.area_to)
        )


NO_FILTER = UnitFilter()


class ListingCursor(NamedTuple):
    value: Decimal | None
    """The price or the area; None in lists by floor."""
    code: str


class ListingFacts(NamedTuple):
    free_from_sar: Decimal | None
    """The lowest price of a free unit; None where none is free."""
    areas: tuple[Decimal, Decimal] | None
    bedrooms: Sequence[int]
    types: Sequence[str]
    years: tuple[int, int] | None


def cursor_after(listing: Listing, order: ListingOrder) -> ListingCursor:
    if order in BY_FLOOR:
        return ListingCursor(None, listing.unit.code)
    value = listing.unit.area_sqm if order in BY_AREA else listing.terms.total_sar
    return ListingCursor(value, listing.unit.code)


def vat_amount(terms: Terms) -> Decimal | None:
    """Return how much of the total is VAT; None where the rate is not known."""
    if not terms.vat_rate:
        return None
    net = terms.total_sar * 100 / (100 + terms.vat_rate)
    base = net if terms.vat_included is not False else terms.price_sar
    return rounded(terms.total_sar - base)
