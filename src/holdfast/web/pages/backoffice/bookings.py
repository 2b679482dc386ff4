"""Bookings: the list, one booking with its steps and actions, and its documents."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import product
from typing import NamedTuple

from starlette.responses import Response

from holdfast.domain.booking import CLAIMING, HOLDING, Booking, BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import BookingChanged, Conflict, DomainError, InvalidInput, UnknownBooking
from holdfast.domain.permissions import Permission
from holdfast.domain.project import slug_fault
from holdfast.domain.unit import code_fault
from holdfast.operations.bookings import BookingFile, FoundBooking, booking_file
from holdfast.operations.write_path import Written
from holdfast.web.context import buyer_link
from holdfast.web.documents.content import Kind
from holdfast.web.pages.backoffice.base import (
    PREFIX,
    PROJECTS_OFFERED,
    Notice,
    StaffRequest,
    faults_by_field,
    list_projects,
    page_links,
    parse_cursor,
    parse_new_end,
    unit_path,
    with_query,
)
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.sessions import PAGE_HEADERS
from holdfast.web.pages.templates import QrCode, qr_code
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR, paginate
from holdfast.web.problems import problem_type

BOOKINGS = f"{PREFIX}/bookings"
BOOKINGS_A_PAGE = 50
REFUNDS_COUNTED = 1000

# What needs somebody to act stands first.
TABS = (
    BookingStatus.REFUND_DUE, BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED,
    BookingStatus.SOLD, BookingStatus.LAPSED, BookingStatus.CANCELLED, BookingStatus.REFUNDED,
)  # fmt: skip
assert set(TABS) == set(BookingStatus)

pages = Pages(StaffRequest)


class Filters(NamedTuple):
    """The filters of the query; one that makes no sense is off."""

    project: str = ""
    unit: str = ""
    status: BookingStatus | None = None

    def address(self) -> str:
        return with_query(BOOKINGS, **self._asdict())


@pages.get("/bookings", Permission.SEE_BOOKINGS)
async def list_bookings(request: StaffRequest) -> Response:
    bookings, reference = request.services.bookings, request.query.text("reference")
    if reference:
        try:
            found = await bookings.find(reference)
        except UnknownBooking:
            request.notice = Notice(
                request._("There is no booking with the reference %(reference)s.", reference=reference[:50]),
                "warning",
            )
        else:
            return request.redirect(f"{BOOKINGS}/{found.booking.reference}")
    projects = await list_projects(request)
    filters = _parse_filters(request, {project.slug for project in projects})
    rows = await bookings.page(
        parse_cursor(request, TIME_AND_NUMBER_CURSOR),
        (filters.project,) if filters.project else None,
        filters.unit or None,
        filters.status,
        BOOKINGS_A_PAGE,
    )
    page, next_cursor = paginate(
        rows,
        BOOKINGS_A_PAGE,
        lambda row: TIME_AND_NUMBER_CURSOR.encode((row.booking.created_at, row.booking.number)),
    )
    return await request.render(
        "bookings.html",
        reference=reference,
        projects=projects,
        project_names={project.slug: project.name for project in projects},
        unit_path=unit_path,
        filters=filters,
        tabs=[(status, filters._replace(status=status).address()) for status in TABS],
        everything=filters._replace(status=None).address(),
        refunds_due=await bookings.refunds_due(REFUNDS_COUNTED),
        most_refunds=REFUNDS_COUNTED,
        bookings=page,
        **page_links(request, filters.address(), next_cursor),
    )


def _parse_filters(request: StaffRequest, slugs: set[str]) -> Filters:
    project, unit, status = (request.query.text(name) for name in Filters._fields)
    is_known = slug_fault(project) is None and (project in slugs or len(slugs) >= PROJECTS_OFFERED)
    return Filters(
        project if is_known else "",
        unit if code_fault(unit) is None else "",
        BookingStatus(status) if status in set(BookingStatus) else None,
    )


@pages.get("/bookings/{reference}", Permission.SEE_BOOKINGS)
async def show_booking(request: StaffRequest, reference: str) -> Response:
    return await _render(request, await _load(request, reference))


async def reissue_link(request: StaffRequest, reference: str) -> Response:
    """Show the buyer's new link, which is stored nowhere."""
    found = (await _load(request, reference)).found
    _, token = await request.services.bookings.reissue_link(found, request.author)
    link = buyer_link(request.context.public_url, found.project_slug, found.booking.reference, token)
    issued = IssuedLink(link, token, qr_code(link))
    return await _render(request, await _load(request, reference), issued=issued)


async def act_on_booking(request: StaffRequest, reference: str, *, action: BookingAction) -> Response:
    found = (await _load(request, reference)).found
    try:
        written = await _perform(request, action, found)
    except (InvalidInput, Conflict) as error:
        return await _render_error(request, reference, action, error)
    path = f"{BOOKINGS}/{written.booking.reference}"
    return await request.redirect_with_notice(path, _success_notice(request, action, written.booking))


async def show_document(request: StaffRequest, reference: str, *, kind: Kind, as_pdf: bool) -> Response:
    found = await request.services.bookings.find(reference)
    return await request.context.documents.render(
        found,
        kind,
        as_pdf=as_pdf,
        requested_language=request.query.text("lang"),
        page_language=request.language.code,
        booking_path=f"{BOOKINGS}/{found.booking.reference}",
        headers=PAGE_HEADERS,
    )


def booking_permission(action: BookingAction) -> Permission:
    is_deposit = action is BookingAction.CONFIRM_DEPOSIT
    return Permission.CONFIRM_DEPOSIT if is_deposit else Permission.SELL


for _action in BookingAction:
    pages.post(
        f"/bookings/{{reference}}/{_action}", booking_permission(_action), back_to="/bookings/{reference}"
    )(reissue_link if _action is BookingAction.REISSUE_LINK else partial(act_on_booking, action=_action))
for _kind, _ending in product(Kind, ("", ".pdf")):
    pages.get(f"/bookings/{{reference}}/{_kind}{_ending}", Permission.SEE_BOOKINGS)(
        partial(show_document, kind=_kind, as_pdf=bool(_ending))
    )


async def _load(request: StaffRequest, reference: str) -> BookingFile:
    return await booking_file(request.services.bookings, reference, request.caller)


async def _perform(request: StaffRequest, action: BookingAction, found: FoundBooking) -> Written:
    bookings, caller, author = request.services.bookings, request.caller, request.author
    seen = request.form.text("status")
    if action is BookingAction.CONFIRM_DEPOSIT:
        return await bookings.confirm_deposit(found, caller, author, seen)
    if action is BookingAction.CLOSE_SALE:
        return await bookings.close_sale(found, caller, author, seen)
    if action is BookingAction.EXTEND:
        return await bookings.extend(found, parse_new_end(request), caller, author, seen)
    if action is BookingAction.CANCEL:
        return await bookings.cancel(found, caller, author, seen)
    if action is BookingAction.MARK_REFUNDED:
        return await bookings.mark_refunded(found, author, seen)
    assert action is BookingAction.ERASE_BUYER
    return await bookings.erase_buyer(found, author, seen)


async def _render_error(
    request: StaffRequest, reference: str, action: BookingAction, error: DomainError
) -> Response:
    """Render the booking as it is now, with the form as it was filled in."""
    file = await _load(request, reference)
    faults = faults_by_field(request, error) if isinstance(error, InvalidInput) else {}
    if not faults or action not in file.possible:
        message = translate_error(error, request.language)
        if isinstance(error, BookingChanged):
            message = request._(
                "The booking has changed since you opened this page. "
                "Nothing was done: look again, then decide."
            )
        request.notice = Notice(message, "refused")
    return await _render(request, file, problem_type(error).status, faults=faults, failed_action=action)


class IssuedLink(NamedTuple):
    """A link that opens a booking, to be shown once."""

    link: str
    token: str
    """The token of the link, for those who use the API."""
    qr: QrCode
    """For the phone of a buyer who is present."""


async def _render(
    request: StaffRequest,
    file: BookingFile,
    status: int = 200,
    faults: dict[str, str] | None = None,
    failed_action: BookingAction | None = None,
    issued: IssuedLink | None = None,
) -> Response:
    unit, project, _ = file.unit
    return await request.render(
        "booking.html",
        status,
        booking=file.booking,
        unit=unit,
        project=project,
        path=f"{BOOKINGS}/{file.booking.reference}",
        unit_path=unit_path(project.slug, unit.code),
        steps=list(booking_steps(file.booking)),
        possible={
            str(action): decision
            for action, decision in file.possible.items()
            if request.may(booking_permission(action))
        },
        typed=Form(()) if failed_action is None else request.form,
        faults=faults or {},
        failed_action=failed_action,
        issued=issued,
    )


def _success_notice(request: StaffRequest, action: BookingAction, booking: Booking) -> str:
    is_refund_due = booking.status is BookingStatus.REFUND_DUE
    if action is BookingAction.CONFIRM_DEPOSIT:
        if is_refund_due:
            return request._("The deposit is noted, and due back: the unit cannot be reserved again.")
        return request._(
            "The deposit is confirmed; the unit is reserved until %(until)s.",
            until=_format_time(request, booking.reserved_until),
        )
    if action is BookingAction.EXTEND:
        return request._("The new end is %(until)s.", until=_format_time(request, booking.ends_at))
    if action is BookingAction.CANCEL:
        if is_refund_due:
            return request._("The booking was cancelled; its deposit is due back.")
        return request._("The booking was cancelled; the unit is available.")
    notices = {
        BookingAction.CLOSE_SALE: request._("The unit is sold."),
        BookingAction.MARK_REFUNDED: request._("The deposit is marked as paid back."),
        BookingAction.ERASE_BUYER: request._("The buyer's personal data were erased."),
    }
    return notices[action]


def _format_time(request: StaffRequest, at: datetime | None) -> str:
    return "" if at is None else request.language.date_time(at)


# The steps of a booking, as its page draws them.


class StepName(StrEnum):
    OPENED = "opened"
    SIGNED = "signed"
    DEPOSIT = "deposit"
    SOLD = "sold"
    LAPSED = "lapsed"
    CANCELLED = "cancelled"
    ENDED = "ended"
    """Unsold, after its deposit was confirmed."""
    REFUND = "refund"
    ERASED = "erased"


class StepState(StrEnum):
    DONE = "done"
    NOW = "now"
    """The one that the booking waits for."""
    LATER = "later"
    LOST = "lost"


class Step(NamedTuple):
    name: StepName
    state: StepState
    at: datetime | None = None
    due_at: datetime | None = None
    """Until when the booking waits for it."""


def booking_steps(booking: Booking) -> Iterator[Step]:
    """Yield the steps that were made, the one that is waited for, and those that may still come."""
    if booking.hold_expires_at is None:
        yield Step(StepName.SOLD, StepState.DONE, booking.closed_at)
    else:
        yield Step(StepName.OPENED, StepState.DONE, booking.created_at)
        yield from _step(booking, StepName.SIGNED, booking.signed_at, BookingStatus.OPEN)
        yield from _step(booking, StepName.DEPOSIT, booking.deposit_confirmed_at, BookingStatus.SIGNED)
        yield from _step(booking, StepName.SOLD, booking.closed_at, BookingStatus.RESERVED)
    if booking.ended_at is not None:
        ends = {BookingStatus.LAPSED: StepName.LAPSED, BookingStatus.CANCELLED: StepName.CANCELLED}
        yield Step(ends.get(booking.status, StepName.ENDED), StepState.LOST, booking.ended_at)
    if booking.status is BookingStatus.REFUND_DUE:
        yield Step(StepName.REFUND, StepState.NOW)
    if booking.refunded_at is not None:
        yield Step(StepName.REFUND, StepState.DONE, booking.refunded_at)
    if booking.buyer_erased_at is not None:
        yield Step(StepName.ERASED, StepState.DONE, booking.buyer_erased_at)


def _step(booking: Booking, name: StepName, at: datetime | None, waits_in: BookingStatus) -> Iterator[Step]:
    """``waits_in``: the status in which a booking waits for this step."""
    if at is not None:
        yield Step(name, StepState.DONE, at)
    elif booking.status is waits_in:
        yield Step(name, StepState.NOW, due_at=booking.ends_at)
    elif booking.status in {*HOLDING, *CLAIMING}:
        yield Step(name, StepState.LATER)
