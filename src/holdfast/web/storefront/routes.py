"""The storefront API: public; which path does what."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Selling
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.routing import Guard, Place, resource
from holdfast.web.storefront.bookings import BookingRoutes
from holdfast.web.storefront.units import OfferRoutes

PREFIX = "/v1/storefront"


def storefront_places(
    inventory: Inventory,
    selling: Selling,
    addresses: ClientAddresses,
    guard: Guard,
    cors_origins: Sequence[str] = (),
) -> list[Place]:
    offers = OfferRoutes(inventory, selling, addresses, cors_origins)
    bookings = BookingRoutes(selling)
    project, booking = PREFIX + "/projects/{slug}", PREFIX + "/bookings/{reference}"

    async def with_token(call: Call) -> None:
        await guard(call)
        await bookings.guard(call)

    return [
        resource(project + "/units/{code}/hold", guard, POST=offers.hold),
        resource(project + "/units/{code}", guard, GET=offers.get),
        resource(project + "/units", guard, GET=offers.list),
        resource(booking + "/sign", with_token, POST=bookings.sign),
        resource(booking, with_token, GET=bookings.get, DELETE=bookings.cancel),
    ]
