"""A unit is held for a buyer, or they are told why not and what else there is."""

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
from holdfast.web.context import WebContext
from holdfast.web.http_errors import MethodNotAllowed
from holdfast.web.pages.live import milliseconds
from holdfast.web.pages.storefront.base import Visit, booking_path, unit_in_path, unit_path
from holdfast.web.pages.storefront.units import similar_units, status_words
from holdfast.web.problems import add_problem_headers, problem_type

_HOLDS_BY = ("POST",)


class HoldPages:
    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._buying = context.services.buyer_bookings

    async def hold(self, visit: Visit) -> Response:
        slug, code = unit_in_path(visit)
        visit.stands_at = unit_path(slug, code)
        if _is_ahead_of_time(visit):
            return await self.show_way(visit)
        address, request_id = visit.network_address, visit.request.request_id
        try:
            entered = await self._buying.open(slug, code, address, visit.visitor, visit.secret, request_id)
        except (NotAvailable, TooManyHolds) as refusal:
            return await self._refused(visit, slug, code, refusal)
        return visit.go(booking_path(slug, entered.reference))

    async def show_way(self, visit: Visit) -> Response:
        """A link, a preview or a reader of history must not take a unit from others."""
        slug, code = unit_in_path(visit)
        visit.stands_at = unit_path(slug, code)
        failure = MethodNotAllowed(visit.request.method, _HOLDS_BY)
        return _page(visit, failure, "hold_by_button.html", code=code, unit_path=visit.stands_at)

    async def _refused(
        self, visit: Visit, slug: str, code: str, refusal: NotAvailable | TooManyHolds
    ) -> Response:
        unit, project = await self._context.services.units.find(slug, code)
        if unit.status is Status.UNAVAILABLE:
            raise UnknownUnit(slug, code)
        values: dict[str, Any] = {"unit": unit, "project": project, "unit_path": visit.stands_at}
        if isinstance(refusal, NotAvailable):
            values |= {"similar": await similar_units(self._context, slug, unit)}
            words = status_words(visit.language)
            return _page(visit, refusal, "hold_taken.html", **values, words=words)
        return await self._asked_to_wait(visit, refusal, values)

    async def _asked_to_wait(self, visit: Visit, refusal: TooManyHolds, values: dict[str, Any]) -> Response:
        now = await self._buying.now()
        again_at = now + timedelta(seconds=refusal.retry_after_seconds)
        values |= {"now": now, "again_at": again_at, "milliseconds": milliseconds}
        if isinstance(refusal, HeldTooRecently):
            return _page(visit, refusal, "hold_too_soon.html", **values)
        if isinstance(refusal, TooManyHoldsAtAddress):
            return _page(visit, refusal, "hold_too_many_here.html", **values)
        holds = await self._buying.all_live_holds(visit.visitor, visit.secret)
        return _page(visit, refusal, "hold_too_many.html", **values, holds=holds)


def _is_ahead_of_time(visit: Visit) -> bool:
    """Browsers mark what they fetch before anybody has clicked. None sends a form so; if one did, it would be
    nobody's wish."""
    purpose = visit.request.header_values.get(b"sec-purpose", b"")
    return b"prefetch" in purpose.lower()


def _page(visit: Visit, failure: Exception, template: str, **values: object) -> Response:
    page = visit.render(template, problem_type(failure).status, **values)
    add_problem_headers(page, failure)
    return page
