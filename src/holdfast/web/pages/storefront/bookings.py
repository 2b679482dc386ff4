"""A buyer's own booking: its state, its next step, and its documents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response

from holdfast.domain.booking import CLAIMING, HOLDING, Agreement, Booking, BookingStatus, Buyer, new_agreement
from holdfast.domain.errors import AgreementChanged, Conflict, Fault, HoldLapsed, InvalidInput, UnknownBooking
from holdfast.domain.project import Project
from holdfast.domain.references import SYMBOLS, read_reference
from holdfast.domain.seller import Seller
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.operations.bookings import FoundBooking, OpenedBooking
from holdfast.web.api.bodies import BuyerDetails, validated
from holdfast.web.context import buyer_link
from holdfast.web.documents.content import Kind
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate, translate_error
from holdfast.web.pages.live import milliseconds
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.storefront.base import NOT_INDEXED, PREFIX, BuyerRequest, booking_path, unit_path
from holdfast.web.pages.storefront.units import UnitCard, similar_units, status_words
from holdfast.web.problems import problem_type

pages = Pages(BuyerRequest, is_public=True)

BOOKING = "/{slug}/bookings/{reference}"
PAID = "paid"
"""In the address that the payment page sends the buyer back to."""
MOST_BOOKING_COOKIES = 20
"""Each is sent with every request, and servers on the way limit the size of headers."""

_CONSENT = "consent"
_BUYER_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")
_COOKIE_PREFIX = "holdfast_booking_"
_COOKIE_NAME = re.compile(f"{_COOKIE_PREFIX}[{SYMBOLS.lower()}]{{9}}")
_UNIT_PATH = re.compile(rf"{PREFIX}/[^/]+/units/[^/]+")


@pages.get(BOOKING)
async def show_booking(request: BuyerRequest, slug: str, reference: str) -> Response:
    return await _render_booking(request, await _load_view(request, slug, reference))


@pages.post(BOOKING, reads_form=False)
async def return_from_payment(request: BuyerRequest, slug: str, reference: str) -> Response:
    """Payment pages may send buyers back by a form of their own. Cookies come only after a redirect."""
    return request.redirect(request.full_path)


@pages.get(f"{BOOKING}/state")
async def show_state(request: BuyerRequest, slug: str, reference: str) -> Response:
    """For the script of the page, on a device whose clock may be wrong."""
    found, _ = await _load_booking(request, slug, reference)
    ends_at = found.booking.ends_at
    state = {
        "status": found.booking.status,
        "endsAt": None if ends_at is None else milliseconds(ends_at),
        "now": milliseconds(found.now),
    }
    return JSONResponse(state, headers=request.page_headers)


@pages.post(f"{BOOKING}/sign", back_to=BOOKING)
async def sign_booking(request: BuyerRequest, slug: str, reference: str) -> Response:
    view = await _load_view(request, slug, reference)
    try:
        buyer, language = _parse_buyer(request), request.language.code
        agreement = view.agreement(language)
        is_open = view.booking.status is BookingStatus.OPEN
        if is_open and request.form.text("read") != agreement_digest(agreement):
            raise AgreementChanged(view.unit.status)
        await request.services.bookings.sign(
            view.found, buyer, request.request_id, language, agreement, view.token
        )
    except InvalidInput as error:
        if view.booking.status is BookingStatus.OPEN:
            return await _render_booking(request, view, error, faults=_faults_by_field(request, error))
    except Conflict as error:
        return await _render_conflict(request, slug, reference, error)
    return request.redirect(view.path)


@pages.post(f"{BOOKING}/pay", back_to=BOOKING)
async def pay_deposit(request: BuyerRequest, slug: str, reference: str) -> Response:
    """Redirect to the payment page; if there is nothing to pay, or no longer, to the booking."""
    found, _ = await _load_booking(request, slug, reference)
    path = _path(found)
    return_url = f"{request.context.public_url}{path}?{PAID}=1"
    try:
        url = await request.services.payments.address_for(found, return_url, request.language.code)
    except Conflict:
        url = None
    return request.redirect(url or path)


@pages.post(f"{BOOKING}/cancel", back_to=BOOKING)
async def cancel_booking(request: BuyerRequest, slug: str, reference: str) -> Response:
    found, _ = await _load_booking(request, slug, reference)
    try:
        await request.services.bookings.cancel_as_buyer(found, request.request_id)
    except HoldLapsed:
        # The hold is gone already.
        pass
    except Conflict as error:
        return await _render_conflict(request, slug, reference, error)
    next_path = request.form.text("then")
    return request.redirect(next_path if _UNIT_PATH.fullmatch(next_path) else _path(found))


def _declare_document(kind: Kind, *, as_pdf: bool) -> None:
    @pages.get(f"{BOOKING}/{kind}{'.pdf' if as_pdf else ''}")
    async def show_document(request: BuyerRequest, slug: str, reference: str) -> Response:
        found, _ = await _load_booking(request, slug, reference)
        response = await request.context.documents.render(
            found,
            kind,
            as_pdf=as_pdf,
            requested_language=request.query.text("lang"),
            page_language=request.language.code,
            booking_path=_path(found),
            headers=request.page_headers,
        )
        request.set_cookies(response)
        return response


for _kind in Kind:
    _declare_document(_kind, as_pdf=False)
    _declare_document(_kind, as_pdf=True)


# The last of the booking's paths: whatever else follows the reference may be a token.
@pages.get(BOOKING + "/{token}")
async def open_link(request: BuyerRequest, slug: str, reference: str, token: str) -> Response:
    """Let a buyer in by a link, on any device. The address of the booking's page alone opens nothing."""
    found = await request.services.bookings.find_with_token(reference, token)
    if found.project_slug != slug:
        raise UnknownBooking(reference)
    response = request.redirect(_path(found))
    _set_booking_cookie(request, response, found.booking.reference, token)
    return response


# Access to bookings: by the buyer's cookie, or by a cookie that was set when a link was opened.


async def _load_booking(request: BuyerRequest, slug: str, reference: str) -> tuple[FoundBooking, str]:
    """Return the booking, if it is the buyer's, and the token that opens it."""
    name = _cookie_name(reference)
    token = None if name is None else request.context.cookies.read(request, name)
    found, token = await request.services.bookings.find_own(reference, request.buyer_secret, token)
    if found.project_slug != slug:
        raise UnknownBooking(reference)
    return found, token


def _set_booking_cookie(request: BuyerRequest, response: Response, reference: str, token: str) -> None:
    """Set the cookie that opens a booking, and delete the oldest ones when there are many."""
    cookies, name = request.context.cookies, _cookie_name(reference)
    assert name is not None
    # A browser may hold others that begin alike, and not every name can be sent back to it.
    names = filter(_COOKIE_NAME.fullmatch, cookies.names(request, _COOKIE_PREFIX))
    others = [other for other in names if other != name]
    for other in others[: max(0, len(others) - MOST_BOOKING_COOKIES + 1)]:
        cookies.drop(response, other)
    cookies.keep(response, name, token)


def _cookie_name(reference: str) -> str | None:
    """Return the name of a booking's cookie, however the reference is spelled; None if it is not one."""
    read = read_reference(reference)
    return None if read is None else _COOKIE_PREFIX + read.replace("-", "").lower()


def _path(found: FoundBooking) -> str:
    return booking_path(found.project_slug, found.booking.reference)


# The page of a booking.


class BookingView(NamedTuple):
    """A booking and what its page shows besides. Each was read on its own, one soon after the other."""

    found: FoundBooking
    unit: Unit
    project: Project
    token: str
    """Opens the booking."""
    seller: Seller
    """As the profile is now."""
    current_booking: OpenedBooking | None = None
    """After the end of this one: what the visitor has on the same unit now."""
    similar: Sequence[UnitCard] = ()
    hold_again_at: datetime | None = None
    """When the visitor may hold the unit again; None if at once."""

    @property
    def booking(self) -> Booking:
        return self.found.booking

    @property
    def path(self) -> str:
        return _path(self.found)

    def agreement(self, language: str) -> Agreement:
        """Return the agreement as it was signed, or as it would be now."""
        now = new_agreement(self.unit.fields, self.project.name, language, self.seller)
        return self.booking.agreement or now


class Step(NamedTuple):
    name: str
    state: str
    """One of "done", "now" and "later"."""
    at: datetime | None


async def _load_view(request: BuyerRequest, slug: str, reference: str) -> BookingView:
    found, token = await _load_booking(request, slug, reference)
    services, booking = request.services, found.booking
    unit, project = await services.units.find(slug, found.unit_code)
    view = BookingView(found, unit, project, token, await services.sellers.effective(slug))
    if booking.status in CLAIMING:
        return view
    if unit.status is not Status.AVAILABLE:
        current = await services.bookings.own_claim(slug, found.unit_code, request.buyer_secret)
        similar = [] if current else await similar_units(request, slug, unit)
        return view._replace(current_booking=current, similar=similar)
    if booking.status is not BookingStatus.LAPSED or booking.ended_at is None:
        return view
    if booking.holder.visitor_id != await services.bookings.drafts.visitor_id(request.visitor):
        return view
    again_at = booking.ended_at + timedelta(seconds=services.bookings.limits.rehold_seconds)
    return view._replace(hold_again_at=again_at if again_at > found.now else None)


async def _render_conflict(request: BuyerRequest, slug: str, reference: str, error: Conflict) -> Response:
    """Render the booking as it is now, with a notice of what has come between."""
    view = await _load_view(request, slug, reference)
    booking = view.booking
    if isinstance(error, HoldLapsed):
        notice = request._("The time ran out before you signed. The agreement was not signed.")
    elif booking.status is BookingStatus.SIGNED and booking.buyer is not None:
        notice = request._(
            "You have already signed as %(name)s. What you entered now was not saved. "
            "To correct something, contact the seller.",
            name=booking.buyer.name,
        )
    else:
        notice = translate_error(error, request.language)
    return await _render_booking(request, view, error, notice=notice)


async def _render_booking(
    request: BuyerRequest,
    view: BookingView,
    error: Exception | None = None,
    *,
    notice: str | None = None,
    faults: dict[str, str] | None = None,
) -> Response:
    """Render the page; after an error with what was typed, so that nobody types it twice."""
    request.page_path = view.path
    status = 200 if error is None else problem_type(error).status
    form = Form(()) if error is None else request.form
    values = _page_values(request, view)
    page = await request.render(
        "booking.html", status, **values, notice=notice, faults=faults or {}, form=form
    )
    page.headers.update(NOT_INDEXED)
    return page


def _page_values(request: BuyerRequest, view: BookingView) -> dict[str, Any]:
    booking, found = view.booking, view.found
    is_waiting = booking.status is BookingStatus.SIGNED and request.query.text(PAID) == "1"
    agreement = view.agreement(request.language.code)
    public_url = request.context.public_url
    return {
        "booking": booking,
        "unit": view.unit,
        "project": view.project,
        "view": view,
        "path": view.path,
        "unit_path": unit_path(found.project_slug, found.unit_code),
        "link": buyer_link(public_url, found.project_slug, booking.reference, view.token),
        "now": found.now,
        "milliseconds": milliseconds,
        "similar": view.similar,
        "words": status_words(request.language),
        "seconds_left": None if booking.ends_at is None else (booking.ends_at - found.now).total_seconds(),
        "steps": list_steps(booking),
        "is_waiting": is_waiting,
        "is_paid_online": request.services.payments.is_open,
        "poll_seconds": poll_seconds(booking, is_waiting),
        "is_paid_late": is_paid_late(booking),
        "terms": booking.terms,
        "buyer": booking.buyer,
        "agreement": agreement,
        "agreement_digest": agreement_digest(agreement),
        "project_name": agreement.project_name,
        "unit_code": found.unit_code,
    }


def agreement_digest(agreement: Agreement) -> str:
    """Return what the form sends back, so that nobody signs for what the page did not show."""
    return hashlib.sha256(repr(tuple(agreement)).encode()).hexdigest()


def list_steps(booking: Booking) -> list[Step]:
    """Return the steps from the hold to the sale; the first that is not done is the current one."""
    times = {
        "held": booking.created_at,
        "signed": booking.signed_at,
        "deposit": booking.deposit_confirmed_at,
        "sold": booking.closed_at,
    }
    current = next((name for name, at in times.items() if at is None), None)
    return [
        Step(name, "done" if at is not None else "now" if name == current else "later", at)
        for name, at in times.items()
    ]


def is_paid_late(booking: Booking) -> bool:
    """Return whether the deposit arrived after the booking had ended."""
    paid_at, ended_at = booking.deposit_confirmed_at, booking.ended_at
    return paid_at is not None and ended_at is not None and paid_at >= ended_at


def poll_seconds(booking: Booking, is_waiting: bool) -> int:
    """Return how often the page asks for the state of the booking; 0 is never."""
    if booking.status in HOLDING:
        return 2 if is_waiting else 5
    # Once signed, a late payment is accepted while the unit is free.
    if booking.status in (BookingStatus.LAPSED, BookingStatus.CANCELLED) and booking.signed_at is not None:
        return 15
    return 30 if booking.status in (BookingStatus.RESERVED, BookingStatus.REFUND_DUE) else 0


# The form of the signature.


def _parse_buyer(request: BuyerRequest) -> Buyer:
    """Report all faults at once; an empty field is missing, not too short."""
    form = request.form
    sent = {name: form.raw(name) for name in _BUYER_FIELDS if form.text(name)}
    faults = [] if form.text(_CONSENT) else [Fault(f"/{_CONSENT}", "This field is required.")]
    details = validated(BuyerDetails, sent)
    if isinstance(details, list):
        raise InvalidInput([*faults, *details])
    if faults:
        raise InvalidInput(faults)
    return details.buyer()


def _faults_by_field(request: BuyerRequest, error: InvalidInput) -> dict[str, str]:
    """Return the faults in the order of the form, in the buyer's language."""
    missing = {
        "buyerName": request._("Enter your full name."),
        "buyerEmail": request._("Enter your e-mail address."),
        "buyerPhone": request._("Enter your phone number."),
        _CONSENT: request._("Tick the box to accept the agreement."),
    }
    faults = {fault.pointer.strip("/"): fault.message for fault in error.faults}
    return {
        name: translate(faults[name], request.language) if request.form.text(name) else text
        for name, text in missing.items()
        if name in faults
    }
