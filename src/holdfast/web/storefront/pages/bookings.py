"""A buyer's own booking: where it stands, and the next step."""

from __future__ import annotations

import re

from starlette.responses import JSONResponse, Response

from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import AgreementChanged, Conflict, HoldLapsed, InvalidInput, UnknownBooking
from holdfast.operations.bookings import Found
from holdfast.web.context import WebContext
from holdfast.web.html.moments import milliseconds
from holdfast.web.html.translation import translate_refusal
from holdfast.web.storefront.pages.addressed import token_in_path
from holdfast.web.storefront.pages.booking_keys import entered_by_link, keep_key
from holdfast.web.storefront.pages.booking_views import Sight, as_read
from holdfast.web.storefront.pages.buyer_forms import faults_by_field, signing_buyer
from holdfast.web.storefront.pages.door import Show
from holdfast.web.storefront.pages.sights import PAID, Sights, no_entry
from holdfast.web.storefront.pages.visits import PREFIX, Visit, booking_path

_IS_UNIT = re.compile(rf"{PREFIX}/[^/]+/units/[^/]+").fullmatch


class BookingPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._selling = context.services.selling
        self._sights = Sights(context)

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
            address = await self._context.services.paying.address_for(found, return_url, visit.language.code)
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
    return translate_refusal(refusal, visit.language)


def _path(found: Found) -> str:
    return booking_path(found.project_slug, found.booking.reference)
