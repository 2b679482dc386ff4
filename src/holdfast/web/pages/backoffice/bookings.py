"""The list of bookings: all, or those of a project, a unit, a status."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import (
    BookingChanged,
    Conflict,
    DomainError,
    InvalidInput,
    UnknownBooking,
)
from holdfast.domain.project import Project, slug_fault
from holdfast.domain.unit import code_fault
from holdfast.operations.bookings import BookingFile, Bookings, FoundBooking, booking_file
from holdfast.operations.units import Units
from holdfast.operations.write_path import Written
from holdfast.web.api.parameters import reference_in_path
from holdfast.web.context import buyer_link
from holdfast.web.pages.backoffice.base import PREFIX, Notice, Show, Visit, chosen_end, faults_by_field
from holdfast.web.pages.backoffice.sale_views import booking_permission, status_word, steps_of, unit_path
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pages.templates import QrCode, qr_code
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR
from holdfast.web.problems import problem_type

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

    async def _searched(self, reference: str) -> FoundBooking | None:
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
        return TIME_AND_NUMBER_CURSOR.decode(visit.query.text("cursor"))
    except ValueError:
        return None


def _next(wanted: Wanted, page: list[FoundBooking]) -> str | None:
    if len(page) <= BOOKINGS_A_PAGE:
        return None
    last = page[BOOKINGS_A_PAGE - 1].booking
    return wanted.address(cursor=TIME_AND_NUMBER_CURSOR.encode((last.created_at, last.number)))


# One booking: its way from hold to sale, its buyer, and what can be done to it.

_NOTHING_TYPED = Form(())


class Issued(NamedTuple):
    """What opens a booking, to be shown once."""

    link: str
    token: str
    """The same without the address, for those who use the API."""
    qr: QrCode
    """Of the link, for the phone of a buyer who is there."""


class BookingPages:
    def __init__(self, selling: Bookings, public_url: str) -> None:
        self._selling = selling
        self._public_url = public_url

    async def show(self, visit: Visit) -> Response:
        return await self._shown(visit, await self._file(visit))

    async def back(self, visit: Visit) -> Response:
        """Whoever reloads the answer to an action wants to see the booking."""
        return await visit.go(f"{BOOKINGS}/{_reference(visit)}")

    def acting(self, action: BookingAction) -> Show:
        async def act(visit: Visit) -> Response:
            return await self._act(visit, action)

        return act

    async def reissue_link(self, visit: Visit) -> Response:
        """The link is in this answer and nowhere else."""
        found = (await self._file(visit)).found
        _, token = await self._selling.reissue_link(found, visit.author)
        link = buyer_link(self._public_url, found.project_slug, found.booking.reference, token)
        return await self._shown(visit, await self._file(visit), issued=Issued(link, token, qr_code(link)))

    async def _act(self, visit: Visit, action: BookingAction) -> Response:
        found = (await self._file(visit)).found
        try:
            written = await self._do(visit, action, found)
        except (InvalidInput, Conflict) as refusal:
            return await self._refused(visit, refusal, action)
        return await visit.go(f"{BOOKINGS}/{written.booking.reference}", _done(visit, action, written))

    async def _do(self, visit: Visit, action: BookingAction, found: FoundBooking) -> Written:
        selling, caller, author = self._selling, visit.caller, visit.author
        seen = visit.form.text("status")
        if action is BookingAction.CONFIRM_DEPOSIT:
            return await selling.confirm_deposit(found, caller, author, seen)
        if action is BookingAction.CLOSE_SALE:
            return await selling.close_sale(found, caller, author, seen)
        if action is BookingAction.EXTEND:
            return await selling.extend(found, chosen_end(visit), caller, author, seen)
        if action is BookingAction.CANCEL:
            return await selling.cancel(found, caller, author, seen)
        if action is BookingAction.MARK_REFUNDED:
            return await selling.mark_refunded(found, author, seen)
        assert action is BookingAction.ERASE_BUYER
        return await selling.erase_buyer(found, author, seen)

    async def _refused(self, visit: Visit, refusal: DomainError, action: BookingAction) -> Response:
        status, file = problem_type(refusal).status, await self._file(visit)
        faults = faults_by_field(visit, refusal) if isinstance(refusal, InvalidInput) else {}
        if not faults or action not in file.possible:
            visit.notice = Notice(_why(visit, refusal), "refused")
        return await self._shown(visit, file, status, typed=visit.form, faults=faults, asked=action)

    async def _file(self, visit: Visit) -> BookingFile:
        return await booking_file(self._selling, _reference(visit), visit.caller)

    async def _shown(
        self,
        visit: Visit,
        file: BookingFile,
        status: int = 200,
        typed: Form = _NOTHING_TYPED,
        faults: dict[str, str] | None = None,
        asked: BookingAction | None = None,
        issued: Issued | None = None,
    ) -> Response:
        return await visit.render(
            "booking.html",
            status,
            **self._values(visit, file),
            typed=typed,
            faults=faults or {},
            asked=asked,
            issued=issued,
        )

    def _values(self, visit: Visit, file: BookingFile) -> dict[str, Any]:
        unit, project, _ = file.unit
        return {
            "status_of_booking": partial(status_word, visit.language),
            "booking": file.booking,
            "unit": unit,
            "project": project,
            "path": f"{BOOKINGS}/{file.booking.reference}",
            "unit_path": unit_path(project.slug, unit.code),
            "steps": steps_of(file.booking),
            "possible": {
                str(action): decision
                for action, decision in file.possible.items()
                if visit.may(booking_permission(action))
            },
        }


def _reference(visit: Visit) -> str:
    return reference_in_path(visit.request)


def _why(visit: Visit, refusal: DomainError) -> str:
    if isinstance(refusal, BookingChanged):
        return visit._(
            "The booking has changed since you opened this page. Nothing was done: look again, then decide."
        )
    return translate_error(refusal, visit.language)


def _done(visit: Visit, action: BookingAction, written: Written) -> str:
    if action is BookingAction.CONFIRM_DEPOSIT:
        return _after_deposit(visit, written)
    booking = written.booking
    end = booking.ends_at
    words = {
        BookingAction.CLOSE_SALE: visit._("The unit is sold."),
        BookingAction.EXTEND: visit._(
            "The new end is %(until)s.", until="" if end is None else visit.language.date_time(end)
        ),
        BookingAction.CANCEL: _after_cancelling(visit, booking.status),
        BookingAction.MARK_REFUNDED: visit._("The deposit is marked as paid back."),
        BookingAction.ERASE_BUYER: visit._("The buyer's personal data were erased."),
    }
    return words[action]


def _after_deposit(visit: Visit, written: Written) -> str:
    booking = written.booking
    if booking.status is BookingStatus.REFUND_DUE:
        return visit._("The deposit is noted, and due back: the unit cannot be reserved again.")
    until = "" if booking.reserved_until is None else visit.language.date_time(booking.reserved_until)
    return visit._("The deposit is confirmed; the unit is reserved until %(until)s.", until=until)


def _after_cancelling(visit: Visit, status: BookingStatus) -> str:
    if status is BookingStatus.REFUND_DUE:
        return visit._("The booking was cancelled; its deposit is due back.")
    return visit._("The booking was cancelled; the unit is available.")
