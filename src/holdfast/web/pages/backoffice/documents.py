"""The agreement and the receipt of a booking, as its buyer has them."""

from __future__ import annotations

from itertools import product

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import Fault
from holdfast.domain.permissions import Permission
from holdfast.operations.bookings import Bookings
from holdfast.web.api.bodies import refuse_faults
from holdfast.web.api.parameters import reference_of
from holdfast.web.documents.content import Kind
from holdfast.web.documents.rendering import DocumentRequest, Documents
from holdfast.web.pages.backoffice.base import Desk, Show, Visit
from holdfast.web.pages.backoffice.bookings import BOOKINGS
from holdfast.web.pages.sessions import PAGE_HEADERS


def paper_routes(desk: Desk, selling: Bookings, papers: Documents) -> list[Route]:
    booking = BOOKINGS + "/{reference}"
    return [
        desk.page(
            f"{booking}/{kind}{ending}",
            Permission.SEE_BOOKINGS,
            GET=_showing(selling, papers, kind, as_file=bool(ending)),
        )
        for kind, ending in product(Kind, ("", ".pdf"))
    ]


def _showing(selling: Bookings, papers: Documents, kind: Kind, *, as_file: bool) -> Show:
    async def show(visit: Visit) -> Response:
        faults: list[Fault] = []
        reference = reference_of(visit.request, faults)
        refuse_faults(faults)
        found = await selling.find(reference)
        home = f"{BOOKINGS}/{found.booking.reference}"
        wanted = visit.query.text("lang")
        asked = DocumentRequest(kind, as_file, wanted, visit.language.code, home, PAGE_HEADERS)
        return await papers.given(found, asked)

    return show
