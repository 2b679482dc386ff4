"""Bookings, as staff and payment systems use them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import NotSigned, TransitionNotAllowed, UnknownBooking, UnknownProject
from holdfast.domain.permissions import Permission
from holdfast.operations.bookings import FoundBooking
from holdfast.operations.write_path import Written
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.backoffice.units import Extension
from holdfast.web.api.bodies import ModelBody
from holdfast.web.api.models import (
    BookingDocument,
    Cursor,
    Document,
    found_booking_document,
    page_response,
    written_booking_document,
)
from holdfast.web.api.parameters import BOOKING_STATUS, LIMIT, PROJECT, TIME_AND_NUMBER, UNIT_CODE
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import caller_of, check_project_access
from holdfast.web.context import buyer_link
from holdfast.web.json import NO_STORE, JsonResponse
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR
from holdfast.web.request import Request

_ERRORS = (UnknownBooking, TransitionNotAllowed)

routes = ApiRoutes(PREFIX, "Bookings")


class BookingListDocument(Document):
    bookings: list[BookingDocument]
    next_cursor: Cursor


class BookingWithTokenDocument(BookingDocument):
    token: Annotated[str, Meta(description="The bearer token of the booking. It is shown once.")]
    url: Annotated[str, Meta(description="The buyer's link to their booking. It holds the token.")]


@routes.post(
    "/bookings/{reference}/confirm-deposit",
    summary="Confirm the deposit",
    permission=Permission.CONFIRM_DEPOSIT,
    responses={200: BookingDocument},
    errors=(UnknownBooking, NotSigned),
)
async def confirm_deposit(request: Request, reference: str) -> Response:
    """The deposit has arrived: the unit is reserved. For a payment system with a key of scope `payments`,
    and for staff. Repeating it changes nothing and is 200 whatever has become of the booking since. A
    second payment for the same booking looks the same: it is 200, is not recorded, and is to be paid
    back by whoever received it.

    If the booking had ended before the deposit arrived, late money is recorded if the buyer had signed:
    the unit is held and reserved again where it is free; where it is not, the booking becomes
    `refund-due`, and the response says so. If the buyer had not signed, it is 409 `not-signed`, nothing
    is recorded, and the money is to be paid back."""
    found = await _find(request, reference)
    selling = request.services.bookings
    return _response(await selling.confirm_deposit(found, caller_of(request), request.author))


@routes.post(
    "/bookings/{reference}/cancel",
    summary="Cancel a booking",
    permission=Permission.SELL,
    responses={200: BookingDocument},
    errors=_ERRORS,
)
async def cancel_booking(request: Request, reference: str) -> Response:
    """Ends the booking; the unit is available again. Where the deposit was confirmed, the booking becomes
    `refund-due`."""
    found = await _find(request, reference)
    return _response(await request.services.bookings.cancel(found, caller_of(request), request.author))


@routes.post(
    "/bookings/{reference}/close-sale",
    summary="Close the sale of a booking",
    permission=Permission.SELL,
    responses={200: BookingDocument},
    errors=_ERRORS,
)
async def close_sale_of_booking(request: Request, reference: str) -> Response:
    """Closes the sale of a reserved booking; the unit is sold."""
    found = await _find(request, reference)
    return _response(await request.services.bookings.close_sale(found, caller_of(request), request.author))


@routes.post(
    "/bookings/{reference}/extend",
    summary="Extend a hold or reservation",
    permission=Permission.SELL,
    body=ModelBody(Extension, optional=True),
    responses={200: BookingDocument},
    errors=_ERRORS,
)
async def extend_booking(request: Request, reference: str, body: Extension | None) -> Response:
    """Moves the end of the hold or reservation later: by one period, or to `until`, which can be repeated.
    It is never moved closer."""
    found = await _find(request, reference)
    selling = request.services.bookings
    until = body.until if body else None
    return _response(await selling.extend(found, until, caller_of(request), request.author))


@routes.post(
    "/bookings/{reference}/mark-refunded",
    summary="Mark the deposit as paid back",
    permission=Permission.SELL,
    responses={200: BookingDocument},
    errors=_ERRORS,
)
async def mark_refunded(request: Request, reference: str) -> Response:
    """Of a booking that is `refund-due`. Repeating it changes nothing."""
    found = await _find(request, reference)
    return _response(await request.services.bookings.mark_refunded(found, request.author))


@routes.post(
    "/bookings/{reference}/reissue-link",
    summary="Give the buyer a new link",
    permission=Permission.SELL,
    responses={200: Annotated[BookingWithTokenDocument, NO_STORE]},
    errors=(UnknownBooking,),
)
async def reissue_link(request: Request, reference: str) -> Response:
    """Gives the booking a new token, for a buyer who has lost the link; the old one opens nothing from then
    on. `url` is the link to give to the buyer."""
    found = await _find(request, reference)
    written, token = await request.services.bookings.reissue_link(found, request.author)
    url = buyer_link(request.context.public_url, found.project_slug, found.booking.reference, token)
    booking = msgspec.structs.asdict(written_booking_document(written))
    return JsonResponse(BookingWithTokenDocument(**booking, token=token, url=url), 200, (NO_STORE,))


@routes.post(
    "/bookings/{reference}/erase-buyer",
    summary="Erase the buyer's personal data",
    permission=Permission.SELL,
    responses={200: BookingDocument},
    errors=_ERRORS,
)
async def erase_buyer(request: Request, reference: str) -> Response:
    """Erases the buyer's name, e-mail address and phone number from a booking that is sold or has ended;
    terms, times and status stay. Repeating it changes nothing. A booking that is `open`, `signed` or
    `reserved`, or whose deposit is still due back, is 409 `transition-not-allowed`.

    Late money for an erased booking makes it `refund-due`: no unit is reserved for a buyer who is not
    known."""
    found = await _find(request, reference)
    return _response(await request.services.bookings.erase_buyer(found, request.author))


@routes.get(
    "/bookings/{reference}",
    summary="Read a booking",
    permission=Permission.SEE_BOOKINGS,
    responses={200: BookingDocument},
    errors=(UnknownBooking,),
)
async def get_booking(request: Request, reference: str) -> Response:
    """Case and hyphens in the reference do not matter."""
    return JsonResponse(found_booking_document(await _find(request, reference)))


@routes.get(
    "/bookings",
    summary="List bookings",
    permission=Permission.SEE_BOOKINGS,
    query=(PROJECT, UNIT_CODE, BOOKING_STATUS, TIME_AND_NUMBER, LIMIT),
    responses={200: BookingListDocument},
    errors=(UnknownProject,),
)
async def list_bookings(
    request: Request,
    *,
    project: str | None,
    unit_code: str | None,
    status: BookingStatus | None,
    cursor: tuple[datetime, int] | None,
    limit: int,
) -> Response:
    """The latest first. A key that is limited to projects sees only theirs."""
    slugs = await _slugs(request, project)
    rows = await request.services.bookings.page(cursor, slugs, unit_code, status, limit)
    return page_response(BookingListDocument, rows, limit, found_booking_document, _cursor_after)


async def _find(request: Request, reference: str) -> FoundBooking:
    found = await request.services.bookings.find(reference)
    if not request.key.may_use(found.project_slug):
        # As it was typed: the spelling that we would choose tells that there is such a booking.
        raise UnknownBooking(reference)
    return found


async def _slugs(request: Request, slug: str | None) -> tuple[str, ...] | None:
    """Return the projects whose bookings are listed; None: every project."""
    if slug is None:
        return request.key.project_slugs
    check_project_access(request, slug)
    await request.services.units.project_id(slug)
    return (slug,)


def _cursor_after(found: FoundBooking) -> str:
    return TIME_AND_NUMBER_CURSOR.encode((found.booking.created_at, found.booking.number))


def _response(written: Written) -> Response:
    return JsonResponse(written_booking_document(written))
