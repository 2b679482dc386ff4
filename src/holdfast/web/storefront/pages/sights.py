"""A booking looked at with all that its page tells: the unit now, what else there is, what comes next."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from holdfast.domain.booking import CLAIMING, BookingStatus
from holdfast.domain.errors import UnknownBooking
from holdfast.domain.status import Status
from holdfast.operations.bookings import Found
from holdfast.web.buyer_links import buyer_link
from holdfast.web.context import WebContext
from holdfast.web.html.forms import Form
from holdfast.web.html.moments import milliseconds
from holdfast.web.problems import problem_type
from holdfast.web.storefront.pages.addressed import project_in_path
from holdfast.web.storefront.pages.alike import cards_alike
from holdfast.web.storefront.pages.booking_keys import own_booking
from holdfast.web.storefront.pages.booking_views import (
    Sight,
    again_at,
    as_read,
    came_late,
    poll_seconds,
    steps_of,
)
from holdfast.web.storefront.pages.shop_cells import status_words
from holdfast.web.storefront.pages.visits import Visit, booking_path, unit_path

PAID = "paid"
"""In the address that the payment page sends the buyer back to."""

_NOTHING_TYPED = Form(())
_NOT_FOUND_BY_SEARCH = {"X-Robots-Tag": "noindex, nofollow"}


class Sights:
    def __init__(self, context: WebContext) -> None:
        self._context = context

    async def own(self, visit: Visit) -> tuple[Found, str]:
        return await own_booking(visit, self._context.services.buying)

    async def of(self, visit: Visit, found: Found, token: str) -> Sight:
        unit, project = await self._context.services.inventory.find(found.project_slug, found.unit_code)
        sight = Sight(found, unit, project, token)
        return sight if found.booking.status in CLAIMING else await self._after_the_end(visit, sight)

    async def _after_the_end(self, visit: Visit, sight: Sight) -> Sight:
        """What the buyer can do now: hold it again, go on with a newer booking, or look at others."""
        buying, selling, found = self._context.services.buying, self._context.services.selling, sight.found
        if sight.unit.status is not Status.AVAILABLE:
            own = await buying.own_claim(found.project_slug, found.unit_code, visit.secret)
            similar = [] if own else await cards_alike(self._context, found.project_slug, sight.unit)
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
            "is_paid_online": self._context.services.paying.is_open,
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
