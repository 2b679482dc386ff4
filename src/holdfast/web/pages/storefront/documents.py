"""A buyer's agreement and receipt."""

from __future__ import annotations

from itertools import product

from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.context import WebContext
from holdfast.web.documents.content import Kind
from holdfast.web.pages.storefront.base import Door, Show, Visit, booking_path
from holdfast.web.pages.storefront.bookings import BOOKING, known_ones, own_booking


def paper_routes(door: Door, context: WebContext) -> list[Route]:
    """To be asked before the pages that take a token where these have a name."""
    return [
        door.page(f"{BOOKING}/{kind}{ending}", GET=known_ones(_showing(context, kind, as_pdf=bool(ending))))
        for kind, ending in product(Kind, ("", ".pdf"))
    ]


def _showing(context: WebContext, kind: Kind, *, as_pdf: bool) -> Show:
    async def show(visit: Visit) -> Response:
        found, _ = await own_booking(visit, context.services.buyer_bookings)
        response = await context.documents.render(
            found,
            kind,
            as_pdf=as_pdf,
            requested_language=visit.query.text("lang"),
            page_language=visit.language.code,
            booking_path=booking_path(found.project_slug, found.booking.reference),
            headers=visit.door.headers,
        )
        visit.door.remember(visit, response)
        return response

    return show
