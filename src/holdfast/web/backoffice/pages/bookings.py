"""The list of bookings: all, or those of a project, a unit, a status."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import UnknownBooking
from holdfast.domain.project import Project, slug_fault
from holdfast.domain.unit import code_fault
from holdfast.operations.bookings import Bookings, Found
from holdfast.operations.units import Units
from holdfast.web.backoffice.pages.booking_views import status_word
from holdfast.web.backoffice.pages.unit_views import unit_path
from holdfast.web.backoffice.visits import PREFIX, Notice, Visit
from holdfast.web.cursors import moment_cursor_text, read_moment_cursor

BOOKINGS = f"{PREFIX}/bookings"
BOOKINGS_A_PAGE = 50
REFUNDS_COUNTED = 1000
PROJECTS_OFFERED = 500

# What needs somebody to act stands first.
TABS = (
    BookingStatus.REFUND_DUE, BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED,
    BookingStatus.SOLD, BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUNDED,
)  # fmt: skip
assert set(TABS) == set(BookingStatus)


class Wanted(NamedTuple):
    """What the filters say; one that says nothing that can be is off."""

    project: str = ""
    unit: str = ""
    status: BookingStatus | None = None

    def address(self, **others: str) -> str:
        said = {"project": self.project, "unit": self.unit, "status": self.status or "", **others}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"{BOOKINGS}?{query}" if query else BOOKINGS


class BookingListPages:
    def __init__(self, inventory: Units, selling: Bookings) -> None:
        self._inventory = inventory
        self._selling = selling

    async def show(self, visit: Visit) -> Response:
        reference = visit.query.text("reference")
        if reference:
            found = await self._searched(reference)
            if found is not None:
                return await visit.go(f"{BOOKINGS}/{found.booking.reference}")
            visit.notice = Notice(
                visit._("There is no booking with the reference %(reference)s.", reference=reference[:50]),
                "warning",
            )
        projects = await self._inventory.projects_page(None, "", PROJECTS_OFFERED)
        return await visit.render("bookings.html", **await self._values(visit, projects), reference=reference)

    async def _searched(self, reference: str) -> Found | None:
        try:
            return await self._selling.find(reference)
        except UnknownBooking:
            return None

    async def _values(self, visit: Visit, projects: list[Project]) -> dict[str, Any]:
        wanted = _wanted(visit, {project.slug for project in projects})
        slugs = (wanted.project,) if wanted.project else None
        page = await self._selling.page(
            _cursor(visit), slugs, wanted.unit or None, wanted.status, BOOKINGS_A_PAGE
        )
        return {
            "status_of_booking": partial(status_word, visit.language),
            "projects": projects,
            "project_names": {project.slug: project.name for project in projects},
            "unit_path": unit_path,
            "wanted": wanted,
            "tabs": [(status, wanted._replace(status=status).address()) for status in TABS],
            "everything": wanted._replace(status=None).address(),
            "refunds_due": await self._selling.refunds_due(REFUNDS_COUNTED),
            "most_refunds": REFUNDS_COUNTED,
            "bookings": page[:BOOKINGS_A_PAGE],
            "first": wanted.address() if visit.query.has("cursor") else None,
            "next": _next(wanted, page),
        }


def _wanted(visit: Visit, slugs: set[str]) -> Wanted:
    project, unit, status = (visit.query.text(name) for name in ("project", "unit", "status"))
    known = slug_fault(project) is None and (project in slugs or len(slugs) >= PROJECTS_OFFERED)
    return Wanted(
        project if known else "",
        unit if code_fault(unit) is None else "",
        BookingStatus(status) if status in set(BookingStatus) else None,
    )


def _cursor(visit: Visit) -> tuple[datetime, int] | None:
    try:
        return read_moment_cursor(visit.query.text("cursor"))
    except ValueError:
        return None


def _next(wanted: Wanted, page: list[Found]) -> str | None:
    if len(page) <= BOOKINGS_A_PAGE:
        return None
    last = page[BOOKINGS_A_PAGE - 1].booking
    return wanted.address(cursor=moment_cursor_text(last.created_at, last.number))
