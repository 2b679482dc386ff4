"""Holding a unit: the buyer's booking begins, or a page says why not and what else there is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from holdfast.domain.errors import (
    HeldTooRecently,
    NotAvailable,
    TooManyHolds,
    TooManyHoldsAtAddress,
    UnknownUnit,
)
from holdfast.domain.status import Status
from holdfast.web.http_errors import MethodNotAllowed
from holdfast.web.pages.live import milliseconds
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.storefront.base import BuyerRequest, booking_path, unit_path
from holdfast.web.pages.storefront.units import similar_units, status_words

pages = Pages(BuyerRequest, is_public=True)


@pages.get("/{slug}/units/{code}/hold")
async def show_hold_button(request: BuyerRequest, slug: str, code: str) -> Response:
    """A link, a preview or a reader of history must not take a unit from others."""
    request.page_path = unit_path(slug, code)
    error = MethodNotAllowed(request.method, ("POST",))
    return await request.render_for(error, "hold_by_button.html", code=code, unit_path=request.page_path)


@pages.post("/{slug}/units/{code}/hold")
async def hold_unit(request: BuyerRequest, slug: str, code: str) -> Response:
    # Browsers mark what they fetch before anybody has clicked. None sends a form so.
    if "prefetch" in request.header(b"sec-purpose").lower():
        return await show_hold_button(request, slug, code)
    request.page_path = unit_path(slug, code)
    bookings, address = request.services.buyer_bookings, request.client_address.counted_as
    try:
        opened = await bookings.open(
            slug, code, address, request.visitor, request.buyer_secret, request.request_id
        )
    except (NotAvailable, TooManyHolds) as error:
        return await _render_failure(request, slug, code, error)
    return request.redirect(booking_path(slug, opened.reference))


async def _render_failure(
    request: BuyerRequest, slug: str, code: str, error: NotAvailable | TooManyHolds
) -> Response:
    unit, project = await request.services.units.find(slug, code)
    if unit.status is Status.UNAVAILABLE:
        raise UnknownUnit(slug, code)
    values: dict[str, Any] = {"unit": unit, "project": project, "unit_path": request.page_path}
    if isinstance(error, NotAvailable):
        values |= {
            "similar": await similar_units(request, slug, unit),
            "words": status_words(request.language),
        }
        return await request.render_for(error, "hold_taken.html", **values)
    bookings = request.services.buyer_bookings
    now = await bookings.now()
    retry_at = now + timedelta(seconds=error.retry_after_seconds)
    values |= {"now": now, "retry_at": retry_at, "milliseconds": milliseconds}
    if isinstance(error, HeldTooRecently):
        return await request.render_for(error, "hold_too_soon.html", **values)
    if isinstance(error, TooManyHoldsAtAddress):
        return await request.render_for(error, "hold_too_many_here.html", **values)
    values["holds"] = await bookings.all_live_holds(request.visitor, request.buyer_secret)
    return await request.render_for(error, "hold_too_many.html", **values)
