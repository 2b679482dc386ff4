"""The agreement and the receipt of a booking, as its buyer has them."""

from __future__ import annotations

from itertools import product

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.permissions import Permission
from holdfast.operations.bookings import Bookings
from holdfast.web.api.parameters import reference_in_path
from holdfast.web.documents.content import Kind
from holdfast.web.documents.rendering import Documents
from holdfast.web.pages.backoffice.base import Desk, Show, Visit
from holdfast.web.pages.backoffice.bookings import BOOKINGS
from holdfast.web.pages.sessions import PAGE_HEADERS


def paper_routes(desk: Desk, selling: Bookings, documents: Documents) -> list[Route]:
    booking = BOOKINGS + "/{reference}"
    return [
        desk.page(
            f"{booking}/{kind}{ending}",
            Permission.SEE_BOOKINGS,
            GET=_showing(selling, documents, kind, as_pdf=bool(ending)),
        )
        for kind, ending in product(Kind, ("", ".pdf"))
    ]


def _showing(selling: Bookings, documents: Documents, kind: Kind, *, as_pdf: bool) -> Show:
    async def show(visit: Visit) -> Response:
        reference = reference_in_path(visit.request)
        found = await selling.find(reference)
        path = f"{BOOKINGS}/{found.booking.reference}"
        return await documents.render(
            found,
            kind,
            as_pdf=as_pdf,
            requested_language=visit.query.text("lang"),
            page_language=visit.language.code,
            booking_path=path,
            headers=PAGE_HEADERS,
        )

    return show
