"""How a browser gets at a booking: by the buyer's cookie, or by one that came of a link."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.domain.booking import CLAIMING, HOLDING, Agreement, Booking, BookingStatus, Buyer, new_agreement
from holdfast.domain.errors import AgreementChanged, Conflict, Fault, HoldLapsed, InvalidInput, UnknownBooking
from holdfast.domain.project import Project
from holdfast.domain.references import SYMBOLS, decode_reference, encode_reference
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.operations.bookings import Bookings, BuyerBookings, FoundBooking, OpenedBooking
from holdfast.web.api.bodies import BuyerDetails, validated
from holdfast.web.context import WebContext, buyer_link
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate, translate_error
from holdfast.web.pages.live import milliseconds
from holdfast.web.pages.storefront.base import (
    PREFIX,
    Door,
    Show,
    Visit,
    booking_in_path,
    booking_path,
    project_in_path,
    token_in_path,
    unit_path,
)
from holdfast.web.pages.storefront.holds import HoldPages
from holdfast.web.pages.storefront.units import Card, similar_units, status_words
from holdfast.web.problems import problem_type

_COOKIE_PREFIX = "holdfast_booking_"
MOST_KEPT = 20
"""Each is sent with every request, and servers on the way take only so much."""
_NAME = re.compile(f"{_COOKIE_PREFIX}[{SYMBOLS.lower()}]{{9}}")


async def own_booking(visit: Visit, buying: BuyerBookings) -> tuple[FoundBooking, str]:
    """The booking of the address, if it is the buyer's, and the token that opens it."""
    slug, reference = booking_in_path(visit)
    name = _cookie_name(reference)
    kept = None if name is None else visit.door.cookies.read(visit.request, name)
    found, token = await buying.find(reference, visit.secret, [kept] if kept else [])
    if found.project_slug != slug:
        raise UnknownBooking(reference)
    return found, token


async def entered_by_link(visit: Visit, selling: Bookings) -> FoundBooking:
    slug, reference = booking_in_path(visit)
    found = await selling.find_with_token(reference, token_in_path(visit))
    if found.project_slug != slug:
        raise UnknownBooking(reference)
    return found


def keep_key(visit: Visit, response: Response, reference: str, token: str) -> None:
    """The oldest ones go when there are many."""
    cookies = visit.door.cookies
    name = _cookie_name(reference)
    assert name is not None
    # A browser may hold others that begin alike, and not every name can be sent back to it.
    kept = filter(_NAME.fullmatch, cookies.names(visit.request, _COOKIE_PREFIX))
    others = [other for other in kept if other != name]
    for other in others[: max(0, len(others) - MOST_KEPT + 1)]:
        cookies.drop(response, other)
    cookies.keep(response, name, token)


def _cookie_name(reference: str) -> str | None:
    """However the reference is spelled; None if it can be none."""
    number = decode_reference(reference)
    return None if number is None else _COOKIE_PREFIX + encode_reference(number).replace("-", "").lower()


# What the page of a booking shows besides the booking itself.

_MAY_STILL_BE_PAID = frozenset({BookingStatus.LAPSED, BookingStatus.CANCELLED})
"""Once signed: what arrives late is taken while the unit is free."""


class StepState(StrEnum):
    DONE = "done"
    NOW = "now"
    LATER = "later"


class Step(NamedTuple):
    name: str
    state: StepState
    at: datetime | None = None


class Sight(NamedTuple):
    """A booking with what is known around it. Each was read on its own, one soon after the other."""

    found: FoundBooking
    unit: Unit
    project: Project
    token: str
    """That opens it."""
    own: OpenedBooking | None = None
    """Of one that has ended: what the visitor has on the same unit now."""
    similar: Sequence[Card] = ()
    again_at: datetime | None = None
    """When the visitor may hold the unit again, after a lapse."""

    @property
    def booking(self) -> Booking:
        return self.found.booking

    def agreement(self, language: str) -> Agreement:
        """As it was signed, or as it would be now."""
        return self.booking.agreement or new_agreement(self.unit.fields, self.project.name, language)


def as_read(agreement: Agreement) -> str:
    """What a form sends back, so that nobody signs for what the page did not show."""
    return hashlib.sha256(repr(tuple(agreement)).encode()).hexdigest()


def steps_of(booking: Booking) -> list[Step]:
    """From the hold to the sale, of a booking that goes on; one that has ended has no next step."""
    made = {
        "held": booking.created_at,
        "signed": booking.signed_at,
        "deposit": booking.deposit_confirmed_at,
        "sold": booking.closed_at,
    }
    waits_for = next((name for name, at in made.items() if at is None), None)
    return [Step(name, _state(at, name == waits_for), at) for name, at in made.items()]


def _state(at: datetime | None, is_next: bool) -> StepState:
    if at is not None:
        return StepState.DONE
    return StepState.NOW if is_next else StepState.LATER


def again_at(booking: Booking, rehold_seconds: float, now: datetime) -> datetime | None:
    """None: the wait is over, or there is none."""
    if booking.status is not BookingStatus.LAPSED or booking.ended_at is None:
        return None
    end = booking.ended_at + timedelta(seconds=rehold_seconds)
    return end if end > now else None


def came_late(booking: Booking) -> bool:
    """Whether the deposit arrived when the booking had ended already."""
    paid_at, ended_at = booking.deposit_confirmed_at, booking.ended_at
    return paid_at is not None and ended_at is not None and paid_at >= ended_at


def poll_seconds(booking: Booking, is_waiting: bool) -> int:
    """How often the page asks where it stands; 0 is not at all."""
    if booking.status in HOLDING:
        return 2 if is_waiting else 5
    if booking.status in _MAY_STILL_BE_PAID and booking.signed_at is not None:
        return 15
    return 30 if booking.status in (BookingStatus.RESERVED, BookingStatus.REFUND_DUE) else 0


# What a buyer fills in when they sign.

CONSENT = "consent"
_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")


def signing_buyer(visit: Visit) -> Buyer:
    """All that is wrong is told at once; what was left empty is missing, not too short."""
    sent = {name: visit.form.raw(name) for name in _FIELDS if visit.form.text(name)}
    faults = [] if visit.form.text(CONSENT) else [Fault(f"/{CONSENT}", "This field is required.")]
    details = validated(BuyerDetails, sent)
    if isinstance(details, list) or faults:
        raise InvalidInput([*faults, *(details if isinstance(details, list) else [])])
    return details.buyer()


def faults_by_field(visit: Visit, refusal: InvalidInput) -> dict[str, str]:
    """In the order of the form, each in the buyer's own terms."""
    told = {fault.pointer.strip("/"): fault for fault in refusal.faults}
    return {
        name: _missing(visit, name)
        if not visit.form.text(name)
        else translate(told[name].message, visit.language)
        for name in (*_FIELDS, CONSENT)
        if name in told
    }


def _missing(visit: Visit, name: str) -> str:
    words = {
        "buyerName": visit._("Enter your full name."),
        "buyerEmail": visit._("Enter your e-mail address."),
        "buyerPhone": visit._("Enter your phone number."),
        CONSENT: visit._("Tick the box: without your consent there is no agreement."),
    }
    return words[name]


# A booking looked at with all that its page tells: the unit now, what else there is, what comes next.

PAID = "paid"
"""In the address that the payment page sends the buyer back to."""

_NOTHING_TYPED = Form(())
_NOT_FOUND_BY_SEARCH = {"X-Robots-Tag": "noindex, nofollow"}


class BookingPageData:
    def __init__(self, context: WebContext) -> None:
        self._context = context

    async def own(self, visit: Visit) -> tuple[FoundBooking, str]:
        return await own_booking(visit, self._context.services.buyer_bookings)

    async def of(self, visit: Visit, found: FoundBooking, token: str) -> Sight:
        unit, project = await self._context.services.units.find(found.project_slug, found.unit_code)
        sight = Sight(found, unit, project, token)
        return sight if found.booking.status in CLAIMING else await self._after_the_end(visit, sight)

    async def _after_the_end(self, visit: Visit, sight: Sight) -> Sight:
        """What the buyer can do now: hold it again, go on with a newer booking, or look at others."""
        buying, selling, found = (
            self._context.services.buyer_bookings,
            self._context.services.bookings,
            sight.found,
        )
        if sight.unit.status is not Status.AVAILABLE:
            own = await buying.own_claim(found.project_slug, found.unit_code, visit.secret)
            similar = [] if own else await similar_units(self._context, found.project_slug, sight.unit)
            return sight._replace(own=own, similar=similar)
        is_holder = found.booking.holder.visitor_id == await selling.visitor_id(visit.visitor)
        seconds = selling.limits.rehold_seconds if is_holder else 0.0
        return sight._replace(again_at=again_at(found.booking, seconds, found.now))

    def page(
        self,
        visit: Visit,
        sight: Sight,
        refusal: Exception | None = None,
        *,
        notice: str | None = None,
        faults: dict[str, str] | None = None,
    ) -> Response:
        """After a refusal with what was typed, so that nobody types it twice."""
        visit.stands_at = booking_path(sight.found.project_slug, sight.booking.reference)
        status = 200 if refusal is None else problem_type(refusal).status
        typed = _NOTHING_TYPED if refusal is None else visit.form
        values = self._values(visit, sight)
        page = visit.render("booking.html", status, **values, notice=notice, faults=faults or {}, typed=typed)
        page.headers.update(_NOT_FOUND_BY_SEARCH)
        return page

    def _values(self, visit: Visit, sight: Sight) -> dict[str, Any]:
        booking, now, path = sight.booking, sight.found.now, visit.stands_at
        is_waiting = booking.status is BookingStatus.SIGNED and visit.query.text(PAID) == "1"
        agreement = sight.agreement(visit.language.code)
        return {
            "booking": booking,
            "unit": sight.unit,
            "project": sight.project,
            "sight": sight,
            "path": path,
            "unit_path": unit_path(sight.found.project_slug, sight.found.unit_code),
            "link": buyer_link(
                self._context.public_url, sight.found.project_slug, booking.reference, sight.token
            ),
            "now": now,
            "milliseconds": milliseconds,
            "similar": sight.similar,
            "words": status_words(visit.language),
            "seconds_left": None if booking.ends_at is None else (booking.ends_at - now).total_seconds(),
            "steps": steps_of(booking),
            "is_waiting": is_waiting,
            "is_paid_online": self._context.services.payments.is_open,
            "poll_seconds": poll_seconds(booking, is_waiting),
            "came_late": came_late(booking),
            "terms": booking.terms,
            "buyer": booking.buyer,
            "agreement": agreement,
            "as_read": as_read(agreement),
            "project_name": agreement.project_name,
            "unit_code": sight.found.unit_code,
        }


def no_entry(visit: Visit) -> Response:
    """For whoever has no key to a booking: how to get one. Whether there is such a booking is not told."""
    slug = project_in_path(visit)
    page = visit.render("booking_no_entry.html", problem_type(UnknownBooking("")).status, slug=slug)
    page.headers.update(_NOT_FOUND_BY_SEARCH)
    return page


# A buyer's own booking: where it stands, and the next step.

_IS_UNIT = re.compile(rf"{PREFIX}/[^/]+/units/[^/]+").fullmatch


class BookingPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._selling = context.services.bookings
        self._sights = BookingPageData(context)

    async def show(self, visit: Visit) -> Response:
        return self._sights.page(visit, await self._sight(visit))

    async def state(self, visit: Visit) -> Response:
        """For the script of the page, whose device may have any clock."""
        found, _ = await self._sights.own(visit)
        ends_at = found.booking.ends_at
        document = {
            "status": found.booking.status,
            "endsAt": None if ends_at is None else milliseconds(ends_at),
            "now": milliseconds(found.now),
        }
        return JSONResponse(document, headers=visit.door.headers)

    async def enter(self, visit: Visit) -> Response:
        """By link, from another device; the address of the page itself opens nothing."""
        found = await entered_by_link(visit, self._selling)
        response = visit.go(_path(found))
        keep_key(visit, response, found.booking.reference, token_in_path(visit))
        return response

    async def back(self, visit: Visit) -> Response:
        """Whoever reloads the answer to a form wants to see the booking."""
        return visit.go(visit.request.path.rpartition("/")[0])

    async def sign(self, visit: Visit) -> Response:
        sight = await self._sight(visit)
        try:
            await self._sign(visit, sight)
        except InvalidInput as refusal:
            if sight.booking.status is not BookingStatus.OPEN:
                return visit.go(_path(sight.found))
            return self._sights.page(visit, sight, refusal, faults=faults_by_field(visit, refusal))
        except Conflict as refusal:
            return await self._refused(visit, refusal)
        return visit.go(_path(sight.found))

    async def cancel(self, visit: Visit) -> Response:
        found, _ = await self._sights.own(visit)
        try:
            await self._selling.cancel_as_buyer(found, visit.request.request_id)
        except HoldLapsed:
            # It is gone, as was wished.
            pass
        except Conflict as refusal:
            return await self._refused(visit, refusal)
        wanted = visit.form.text("then")
        return visit.go(wanted if _IS_UNIT(wanted) else _path(found))

    async def pay(self, visit: Visit) -> Response:
        """On to the payment page; with nothing to pay, or no longer, back to where the booking stands."""
        found, _ = await self._sights.own(visit)
        return_url = f"{self._context.public_url}{_path(found)}?{PAID}=1"
        try:
            address = await self._context.services.payments.address_for(
                found, return_url, visit.language.code
            )
        except Conflict:
            address = None
        return visit.go(address or _path(found))

    async def _sight(self, visit: Visit) -> Sight:
        return await self._sights.of(visit, *await self._sights.own(visit))

    async def _sign(self, visit: Visit, sight: Sight) -> None:
        buyer, language = signing_buyer(visit), visit.language.code
        agreement = sight.agreement(language)
        if sight.booking.status is BookingStatus.OPEN and visit.form.text("read") != as_read(agreement):
            raise AgreementChanged(sight.unit.status)
        await self._selling.sign(sight.found, buyer, visit.request.request_id, language, agreement)

    async def _refused(self, visit: Visit, refusal: Conflict) -> Response:
        """What has come between is on the page, as it is now."""
        sight = await self._sight(visit)
        return self._sights.page(visit, sight, refusal, notice=_why(visit, sight, refusal))


def known_ones(show: Show) -> Show:
    """Whoever has no key to the booking is told how to get one."""

    async def shown(visit: Visit) -> Response:
        try:
            return await show(visit)
        except UnknownBooking:
            return no_entry(visit)

    return shown


def _why(visit: Visit, sight: Sight, refusal: Conflict) -> str:
    booking = sight.booking
    if isinstance(refusal, HoldLapsed):
        return visit._("The time ran out before you signed. Nothing was signed.")
    if booking.status is BookingStatus.SIGNED and booking.buyer is not None:
        return visit._(
            "You have signed already, as %(name)s. What you entered now was not taken: "
            "the seller can help if something is to be put right.",
            name=booking.buyer.name,
        )
    return translate_error(refusal, visit.language)


def _path(found: FoundBooking) -> str:
    return booking_path(found.project_slug, found.booking.reference)


# The buyer's journey: which path shows what, from the hold on.

UNIT = PREFIX + "/{slug}/units/{code}"
BOOKING = PREFIX + "/{slug}/bookings/{reference}"


def hold_routes(door: Door, context: WebContext) -> list[Route]:
    holds = HoldPages(context)
    return [door.page(UNIT + "/hold", POST=holds.hold, GET=holds.show_way)]


def booking_routes(door: Door, context: WebContext) -> list[Route]:
    """The last of the bookings' pages: what stands after the reference may be a token."""
    pages = BookingPages(context)
    back = pages.back
    return [
        door.page(BOOKING, is_returned_to=True, GET=known_ones(pages.show)),
        door.page(BOOKING + "/state", GET=known_ones(pages.state)),
        door.page(BOOKING + "/sign", GET=back, POST=known_ones(pages.sign)),
        door.page(BOOKING + "/pay", GET=back, POST=known_ones(pages.pay)),
        door.page(BOOKING + "/cancel", GET=back, POST=known_ones(pages.cancel)),
        door.page(BOOKING + "/{token}", GET=known_ones(pages.enter)),
    ]
