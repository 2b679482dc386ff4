"""A buyer's agreement and receipt."""

from __future__ import annotations

from itertools import product

from starlette.responses import Response

from holdfast.web.papers.making import Asked
from holdfast.web.papers.sheets import Kind
from holdfast.web.parts import Parts
from holdfast.web.routing import Place
from holdfast.web.storefront.pages.booking_keys import own_booking
from holdfast.web.storefront.pages.bookings import known_ones
from holdfast.web.storefront.pages.door import Door, Show
from holdfast.web.storefront.pages.journey import BOOKING
from holdfast.web.storefront.pages.visits import Visit, booking_path


def paper_places(door: Door, parts: Parts) -> list[Place]:
    """To be asked before the pages that take a token where these have a name."""
    return [
        door.page(f"{BOOKING}/{kind}{ending}", GET=known_ones(_showing(parts, kind, as_file=bool(ending))))
        for kind, ending in product(Kind, ("", ".pdf"))
    ]


def _showing(parts: Parts, kind: Kind, *, as_file: bool) -> Show:
    async def show(visit: Visit) -> Response:
        found, _ = await own_booking(visit, parts.buying)
        home = booking_path(found.project_slug, found.booking.reference)
        wanted = visit.query.text("lang")
        asked = Asked(kind, as_file, wanted, visit.language.code, home, visit.door.headers)
        response = await parts.papers.given(found, asked)
        visit.door.remember(visit, response)
        return response

    return show
