"""The buyer's journey: which path shows what, from the hold on."""

from __future__ import annotations

from starlette.routing import Route

from holdfast.web.context import WebContext
from holdfast.web.storefront.pages.bookings import BookingPages, known_ones
from holdfast.web.storefront.pages.door import Door
from holdfast.web.storefront.pages.holding import HoldPages
from holdfast.web.storefront.pages.visits import PREFIX

UNIT = PREFIX + "/{slug}/units/{code}"
BOOKING = PREFIX + "/{slug}/bookings/{reference}"


def hold_routes(door: Door, context: WebContext) -> list[Route]:
    holds = HoldPages(context)
    return [door.page(UNIT + "/hold", POST=holds.hold, GET=holds.show_way)]


def booking_routes(door: Door, context: WebContext) -> list[Route]:
    """The last of the bookings' pages: what stands after the reference may be a token."""
    pages = BookingPages(context)
    back = pages.back
    return [
        door.page(BOOKING, is_returned_to=True, GET=known_ones(pages.show)),
        door.page(BOOKING + "/state", GET=known_ones(pages.state)),
        door.page(BOOKING + "/sign", GET=back, POST=known_ones(pages.sign)),
        door.page(BOOKING + "/pay", GET=back, POST=known_ones(pages.pay)),
        door.page(BOOKING + "/cancel", GET=back, POST=known_ones(pages.cancel)),
        door.page(BOOKING + "/{token}", GET=known_ones(pages.enter)),
    ]
