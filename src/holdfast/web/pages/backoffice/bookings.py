"""Bookings: the list, one booking with its steps and actions, and its documents."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import product
from typing import NamedTuple

from starlette.responses import Response

from holdfast.domain.booking import CLAIMING, HOLDING, Booking, BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import Conflict, DomainError, InvalidInput, UnknownBooking
from holdfast.domain.permissions import Permission
from holdfast.domain.transitions import Action
from holdfast.domain.unit import code_fault
from holdfast.operations.bookings import BookingDetails
from holdfast.web.context import buyer_link
from holdfast.web.documents.content import Kind
from holdfast.web.pages.backoffice.base import PREFIX, Notice, StaffRequest, pages, unit_path, with_query
from holdfast.web.pages.base import PAGE_HEADERS
from holdfast.web.pages.templates import qr_code
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
    projects = await request.list_projects()
    unit, status = request.query.text("unit"), request.query.text("status")
    filters = Filters(
        request.parse_project(projects),
        unit if code_fault(unit) is None else "",
        BookingStatus(status) if status in set(BookingStatus) else None,
    )
    rows = await bookings.page(
        request.parse_cursor(TIME_AND_NUMBER_CURSOR),
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
        sends_email=bookings.sends_email,
        **request.page_links(filters.address(), next_cursor),
    )


@pages.get("/bookings/{reference}", Permission.SEE_BOOKINGS)
async def show_booking(request: StaffRequest, reference: str) -> Response:
    return await _render(request, await request.services.bookings.load_details(reference, request.caller))


async def reissue_link(request: StaffRequest, reference: str) -> Response:
    """Show the buyer's new link, which is stored nowhere, and its token for those who use the API."""
    bookings = request.services.bookings
    found = await bookings.find(reference)
    _, token = await bookings.reissue_link(found, request.author, request.form.text("link"))
    link = buyer_link(request.context.public_url, found.project_slug, found.booking.reference, token)
    details = await bookings.load_details(reference, request.caller)
    return await _render(request, details, link=link, link_token=token)


async def act_on_booking(request: StaffRequest, reference: str, *, action: BookingAction) -> Response:
    found = (await request.services.bookings.load_details(reference, request.caller)).found
    seen_status = request.form.text("status")
    try:
        until = request.parse_new_end() if action is BookingAction.EXTEND else None
        written = await request.services.bookings.act_on_booking(
            found, action, request.caller, request.author, seen_status=seen_status, until=until
        )
    except (InvalidInput, Conflict) as error:
        return await _render_error(request, reference, action, error)
    booking = written.booking
    is_refund_due = booking.status is BookingStatus.REFUND_DUE
    notice = success_notice(request, action, booking.ends_at, is_refund_due=is_refund_due)
    return await request.redirect_with_notice(f"{BOOKINGS}/{booking.reference}", notice)


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


def action_permission(action: Action | BookingAction) -> Permission:
    """Return the permission that is named after the action, if there is one."""
    own = {str(Permission.CONFIRM_DEPOSIT), str(Permission.REVOKE_SALE)}
    return Permission(action) if action in own else Permission.SELL


for _action in BookingAction:
    pages.post(
        f"/bookings/{{reference}}/{_action}", action_permission(_action), back_to="/bookings/{reference}"
    )(reissue_link if _action is BookingAction.REISSUE_LINK else partial(act_on_booking, action=_action))
for _kind, _ending in product(Kind, ("", ".pdf")):
    pages.get(f"/bookings/{{reference}}/{_kind}{_ending}", Permission.SEE_BOOKINGS)(
        partial(show_document, kind=_kind, as_pdf=bool(_ending))
    )


async def _render_error(
    request: StaffRequest, reference: str, action: BookingAction, error: DomainError
) -> Response:
    """Render the booking as it is now, with the form as it was filled in."""
    details = await request.services.bookings.load_details(reference, request.caller)
    faults = request.faults(error)
    if not faults or action not in details.possible:
        request.notice = Notice(request.error_text(error), "refused")
    return await _render(request, details, problem_type(error).status, faults=faults, failed_action=action)


async def _render(
    request: StaffRequest,
    details: BookingDetails,
    status: int = 200,
    faults: dict[str, str] | None = None,
    failed_action: BookingAction | None = None,
    link: str | None = None,
    link_token: str | None = None,
) -> Response:
    (unit, project, _), booking = details.unit, details.found.booking
    return await request.render(
        "booking.html",
        status,
        booking=booking,
        unit=unit,
        project=project,
        path=f"{BOOKINGS}/{booking.reference}",
        unit_path=unit_path(project.slug, unit.code),
        steps=list(booking_steps(booking)),
        possible={
            str(action): decision
            for action, decision in details.possible.items()
            if request.may(action_permission(action))
        },
        typed=request.form,
        faults=faults or {},
        failed_action=failed_action,
        link=link,
        link_token=link_token,
        qr_code=qr_code,
    )


def success_notice(
    request: StaffRequest,
    action: Action | BookingAction,
    ends_at: datetime | None,
    *,
    is_refund_due: bool = False,
) -> str:
    """Say what was done to a unit or a booking."""
    until = "" if ends_at is None else request.language.date_time(ends_at)
    if is_refund_due and action is BookingAction.CONFIRM_DEPOSIT:
        return request._("The deposit was recorded and must be refunded: the unit cannot be reserved again.")
    if is_refund_due or action is Action.CANCEL_RESERVATION:
        return request._("The booking was cancelled. The deposit must be refunded.")
    notices = {
        Action.OPEN: request._(
            "The unit is held until %(until)s. You can create the buyer's link on the booking page.",
            until=until,
        ),
        Action.EXTEND: request._("The new end is %(until)s.", until=until),
        Action.CANCEL_HOLD: request._("The hold was cancelled; the unit is available."),
        Action.CONFIRM_DEPOSIT: request._(
            "The deposit is confirmed; the unit is reserved until %(until)s.", until=until
        ),
        Action.CLOSE_SALE: request._("The unit is sold."),
        Action.PUT_ON_SALE: request._("The unit is on sale."),
        Action.TAKE_OFF_SALE: request._("The unit is off sale."),
        Action.ARCHIVE: request._("The unit is archived."),
        Action.REVOKE_SALE: request._("The sale was revoked; the unit is off sale."),
        BookingAction.CANCEL: request._("The hold was cancelled; the unit is available."),
        BookingAction.MARK_REFUNDED: request._("The refund of the deposit was recorded."),
        BookingAction.ERASE_BUYER: request._("The buyer's personal data was erased."),
    }
    return notices[action]


# The steps of a booking, as its page draws them.


class Step(NamedTuple):
    name: str
    """``opened``, ``signed``, ``deposit``, ``sold``, ``lapsed``, ``cancelled``, ``refund``, ``erased``; or
    ``ended``: unsold, after its deposit was confirmed."""
    state: str
    """``done``, ``now`` for the one that the booking waits for, ``later`` or ``lost``."""
    at: datetime | None = None
    due_at: datetime | None = None
    """Until when the booking waits for it."""


def booking_steps(booking: Booking) -> Iterator[Step]:
    """Yield the steps that were made, the one that is waited for, and those that may still come."""
    if booking.hold_expires_at is None:
        yield Step("sold", "done", booking.closed_at)
    else:
        yield Step("opened", "done", booking.created_at)
        # The last is the status in which a booking waits for the step.
        steps = (
            ("signed", booking.signed_at, BookingStatus.OPEN),
            ("deposit", booking.deposit_confirmed_at, BookingStatus.SIGNED),
            ("sold", booking.closed_at, BookingStatus.RESERVED),
        )
        for name, at, waits_in in steps:
            if at is not None:
                yield Step(name, "done", at)
            elif booking.status is waits_in:
                yield Step(name, "now", due_at=booking.ends_at)
            elif booking.status in {*HOLDING, *CLAIMING}:
                yield Step(name, "later")
    if booking.ended_at is not None:
        is_known = booking.status in (BookingStatus.LAPSED, BookingStatus.CANCELLED)
        yield Step(booking.status.value if is_known else "ended", "lost", booking.ended_at)
    if booking.status is BookingStatus.REFUND_DUE:
        yield Step("refund", "now")
    if booking.refunded_at is not None:
        yield Step("refund", "done", booking.refunded_at)
    if booking.buyer_erased_at is not None:
        yield Step("erased", "done", booking.buyer_erased_at)
