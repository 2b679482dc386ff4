"""Bookings, as staff and payment systems use them. The same actions on a unit are in units.py."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import NotSigned, TransitionNotAllowed, UnknownBooking, UnknownProject
from holdfast.domain.permissions import Permission
from holdfast.operations.bookings import FoundBooking
from holdfast.web.api import parameters
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.backoffice.units import Extension
from holdfast.web.api.models import BookingDocument, Cursor, Document, booking_document, page_document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import caller_of, check_project_access, key_guard, key_may
from holdfast.web.context import buyer_link
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR
from holdfast.web.request import Request

routes = ApiRoutes(PREFIX, "Bookings", key_guard(Permission.SELL))


class BookingListDocument(Document):
    bookings: list[BookingDocument]
    next_cursor: Cursor


class BookingWithTokenDocument(BookingDocument):
    token: Annotated[str, "The bearer token of the booking. It is shown once."]
    url: Annotated[str, "The buyer's link to their booking. It holds the token."]


@routes.post(
    "/bookings/{reference}/confirm-deposit",
    summary="Confirm the deposit",
    permission=Permission.CONFIRM_DEPOSIT,
    errors=(NotSigned,),
)
async def confirm_deposit(request: Request, reference: str) -> BookingDocument:
    """Records that the deposit has arrived and reserves the unit. For payment systems with a key of scope
    `payments`, and for staff. Repeating it changes nothing and is always 200. A second payment for the same
    booking cannot be told from a repetition: it is 200 and is not recorded, and its recipient must refund
    it.

    If the booking had already ended and the buyer had signed, the deposit is recorded: the unit is held and
    reserved again if it is available; otherwise the booking becomes `refund-due`, and the response says so.
    If the buyer had not signed, the response is 409 `not-signed`, nothing is recorded, and the payment must
    be refunded.

    `buyer` is null for a key that has the scope `payments` and no scope that can read bookings."""
    return await _act(request, reference, BookingAction.CONFIRM_DEPOSIT)


@routes.post("/bookings/{reference}/cancel", summary="Cancel a booking", errors=(TransitionNotAllowed,))
async def cancel_booking(request: Request, reference: str) -> BookingDocument:
    """Ends the booking; the unit is available again. If the deposit was confirmed, the booking becomes
    `refund-due`."""
    return await _act(request, reference, BookingAction.CANCEL)


@routes.post(
    "/bookings/{reference}/close-sale", summary="Close the sale of a booking", errors=(TransitionNotAllowed,)
)
async def close_sale_of_booking(request: Request, reference: str) -> BookingDocument:
    """Closes the sale of a reserved booking; the unit is sold."""
    return await _act(request, reference, BookingAction.CLOSE_SALE)


@routes.post(
    "/bookings/{reference}/extend", summary="Extend a hold or reservation", errors=(TransitionNotAllowed,)
)
async def extend_booking(request: Request, reference: str, body: Extension | None) -> BookingDocument:
    """Moves the end of the hold or reservation to a later time: by one period, or to `until`, which makes the
    request safe to repeat."""
    return await _act(request, reference, BookingAction.EXTEND, body.until if body else None)


@routes.post(
    "/bookings/{reference}/mark-refunded",
    summary="Mark the deposit as refunded",
    errors=(TransitionNotAllowed,),
)
async def mark_refunded(request: Request, reference: str) -> BookingDocument:
    """For a booking that is `refund-due`. Repeating it changes nothing."""
    return await _act(request, reference, BookingAction.MARK_REFUNDED)


@routes.post("/bookings/{reference}/reissue-link", summary="Give the buyer a new link")
async def reissue_link(request: Request, reference: str) -> BookingWithTokenDocument:
    """Gives the booking a new token, for a buyer who has lost the link. The old token stops working. `url` is
    the link to give to the buyer."""
    found = await _find(request, reference)
    written, token = await request.services.bookings.reissue_link(found, request.author)
    url = buyer_link(request.context.public_url, found.project_slug, found.booking.reference, token)
    booking = msgspec.structs.asdict(booking_document(written))
    return BookingWithTokenDocument(**booking, token=token, url=url)


@routes.post(
    "/bookings/{reference}/erase-buyer",
    summary="Erase the buyer's personal data",
    errors=(TransitionNotAllowed,),
)
async def erase_buyer(request: Request, reference: str) -> BookingDocument:
    """Erases the buyer's name, e-mail address and phone number from a booking that is sold or has ended.
    Terms, times and status are kept. Repeating it changes nothing. A booking that is `open`, `signed` or
    `reserved`, or whose deposit must still be refunded, is 409 `transition-not-allowed`.

    A deposit that arrives after that makes the booking `refund-due`: no unit is reserved for an unknown
    buyer."""
    return await _act(request, reference, BookingAction.ERASE_BUYER)


@routes.get("/bookings/{reference}", summary="Read a booking", permission=Permission.SEE_BOOKINGS)
async def get_booking(request: Request, reference: str) -> BookingDocument:
    """The reference may be in any case, with or without hyphens."""
    return booking_document(await _find(request, reference))


@routes.get(
    "/bookings", summary="List bookings", permission=Permission.SEE_BOOKINGS, errors=(UnknownProject,)
)
async def list_bookings(
    request: Request,
    *,
    project: parameters.ProjectFilter,
    unit_code: parameters.UnitCodeFilter,
    status: Annotated[
        BookingStatus | None, parameters.one_of(BookingStatus, "Only bookings in this status.")
    ],
    cursor: parameters.TimeAndNumberCursor,
    limit: parameters.Limit,
) -> BookingListDocument:
    """Latest first. A key that is limited to projects sees only their bookings."""
    slugs = request.key.project_slugs
    if project is not None:
        check_project_access(request, project)
        await request.services.units.project_id(project)
        slugs = (project,)
    rows = await request.services.bookings.page(cursor, slugs, unit_code, status, limit)
    return page_document(
        BookingListDocument,
        rows,
        limit,
        booking_document,
        lambda found: TIME_AND_NUMBER_CURSOR.encode((found.booking.created_at, found.booking.number)),
    )


async def _find(request: Request, reference: str) -> FoundBooking:
    found = await request.services.bookings.find(reference)
    if not request.key.may_use(found.project_slug):
        # As it was typed: the spelling that we would choose tells that there is such a booking.
        raise UnknownBooking(reference)
    return found


async def _act(
    request: Request, reference: str, action: BookingAction, until: datetime | None = None
) -> BookingDocument:
    found = await _find(request, reference)
    written = await request.services.bookings.act_on_booking(
        found, action, caller_of(request), request.author, until=until
    )
    document = booking_document(written)
    if not key_may(request.key, Permission.SEE_BOOKINGS):
        document.buyer = None
    return document
