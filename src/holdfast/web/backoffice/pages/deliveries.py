"""Deliveries: every one, and all that is known of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.delivery import Delivery, DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS, Endpoint
from holdfast.domain.errors import EndpointRemoved, UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.operations.deliveries import Attempt, Deliveries, DeliverySearch, Found
from holdfast.operations.endpoints import Endpoints
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages import wire_texts
from holdfast.web.backoffice.pages.delivery_filters import CODES, AskedFor, asked_for
from holdfast.web.backoffice.pages.timeline import timeline
from holdfast.web.backoffice.pages.timing_bar import timing_bar
from holdfast.web.backoffice.pages.webhook_visits import DELIVERIES, id_in_path, unchanged, words_of
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.cursors import created_cursor_text, moment_and_id_cursor_text
from holdfast.web.html.translation import translate_refusal

DELIVERIES_A_PAGE = 50
ATTEMPTS_SHOWN = 50
"""With all that was sent and answered; one of them may take a hundred kilobytes."""
_FIRST_ID = UUID(int=0)


class DeliveryPages:
    def __init__(self, subscribing: Endpoints, deliveries: Deliveries, search: DeliverySearch) -> None:
        self._subscribing = subscribing
        self._deliveries = deliveries
        self._search = search

    async def list(self, visit: Visit) -> Response:
        """A script asks for the rows alone, and gets none while they are the ones that it has."""
        asked = asked_for(visit)
        found = await self._found(asked)
        mark = _mark(found.deliveries)
        if visit.is_fragment and visit.query.text("seen") == mark:
            return unchanged()
        values = {**_listed(found, asked), "live": asked.is_newest, "mark": mark, **words_of(visit)}
        if visit.is_fragment:
            return await visit.render("delivery_rows.html", **values)
        labels = await self._search.labels()
        values |= {"asked": asked, "choices": labels, "events": SENT_EVENTS, "codes": CODES}
        return await visit.render("deliveries.html", **values)

    async def show(self, visit: Visit) -> Response:
        """A script asks for what changes, while it may."""
        delivery, attempts = await self._deliveries.find(
            id_in_path(visit), attempts_at_most=ATTEMPTS_SHOWN + 1
        )
        mark = _mark([delivery])
        if visit.is_fragment and visit.query.text("seen") == mark:
            return unchanged()
        label = await self._search.label(delivery.endpoint_id)
        endpoint = None if label.is_removed else await self._endpoint(delivery.endpoint_id)
        values = {**_told(delivery, attempts, endpoint), "label": label, "mark": mark, **words_of(visit)}
        return await visit.render("delivery_part.html" if visit.is_fragment else "delivery.html", **values)

    async def result(self, visit: Visit) -> Response:
        """What became of a ping, in a line; whoever has no script is shown the whole delivery."""
        delivery_id = id_in_path(visit)
        if not visit.is_fragment:
            return await visit.go(f"{DELIVERIES}/{delivery_id}")
        delivery, _ = await self._deliveries.find(delivery_id, attempts_at_most=0)
        if visit.query.text("seen") == _mark([delivery]):
            return unchanged()
        values = {"ping": delivery, "mark": _mark([delivery]), **words_of(visit)}
        return await visit.render("delivery_result.html", **values)

    async def resend(self, visit: Visit) -> Response:
        delivery_id = id_in_path(visit)
        path = f"{DELIVERIES}/{delivery_id}"
        try:
            await self._deliveries.resend(delivery_id, visit.author)
        except EndpointRemoved as refusal:
            return await visit.go(path, translate_refusal(refusal, visit.language), "refused")
        return await visit.go(path, visit._("It is being sent again, with the same id and the same bytes."))

    async def back(self, visit: Visit) -> Response:
        return await visit.go(f"{DELIVERIES}/{id_in_path(visit)}")

    async def _found(self, asked: AskedFor) -> Found:
        try:
            return await self._search.page(asked.endpoint_id, asked.before, asked.filters, DELIVERIES_A_PAGE)
        except UnknownEndpoint:
            return Found([], {}, None)

    async def _endpoint(self, endpoint_id: UUID) -> Endpoint | None:
        """None: it was removed a moment ago."""
        try:
            return await self._subscribing.find(endpoint_id)
        except UnknownEndpoint:
            return None


def delivery_page_routes(
    desk: Desk, subscribing: Endpoints, deliveries: Deliveries, search: DeliverySearch
) -> list[Route]:
    pages = DeliveryPages(subscribing, deliveries, search)
    see, manage = Permission.SEE_WEBHOOKS, Permission.MANAGE_WEBHOOKS
    own = f"{DELIVERIES}/{{id}}"
    return [
        desk.page(DELIVERIES, see, GET=pages.list),
        desk.page(own, see, GET=pages.show),
        desk.page(f"{own}/result", see, GET=pages.result),
        desk.page(f"{own}/resend", see, GET=pages.back, POST=(manage, pages.resend)),
    ]


def _listed(found: Found, asked: AskedFor) -> dict[str, Any]:
    shown = found.deliveries[:DELIVERIES_A_PAGE]
    return {
        "deliveries": shown,
        "labels": found.labels,
        "units": {one.id: unit_address(one) for one in shown},
        "here": asked.address(DELIVERIES),
        "first": None if asked.is_newest else asked.address(DELIVERIES),
        "next": _next(found, asked),
        "searched_back_to": found.searched_back_to,
    }


def _next(found: Found, asked: AskedFor) -> str | None:
    """Behind the last that is shown, or where the search was given up."""
    if len(found.deliveries) > DELIVERIES_A_PAGE:
        last = found.deliveries[DELIVERIES_A_PAGE - 1]
        return asked.address(DELIVERIES, cursor=created_cursor_text(last))
    if found.searched_back_to is None:
        return None
    return asked.address(DELIVERIES, cursor=moment_and_id_cursor_text(found.searched_back_to, _FIRST_ID))


def _told(delivery: Delivery, found: Sequence[Attempt], endpoint: Endpoint | None) -> dict[str, Any]:
    attempts = found[-ATTEMPTS_SHOWN:]
    is_paused = endpoint is not None and endpoint.wishes.paused
    read_at = delivery.created_at if endpoint is None else endpoint.read_at
    return {
        "delivery": delivery,
        "attempts": attempts,
        "are_more": len(found) > len(attempts),
        "endpoint": endpoint,
        "unit_address": unit_address(delivery),
        "steps": timeline(delivery, attempts, read_at, is_paused=is_paused),
        "timing_bar": timing_bar,
        "wire": wire_texts,
        "is_live": delivery.status is DeliveryStatus.PENDING,
    }


def unit_address(delivery: Delivery) -> str | None:
    """The page of its unit. The body says which project it is of."""
    unit = msgspec.json.decode(delivery.body)["data"]["unit"]
    if unit is None:
        return None
    return f"{PREFIX}/projects/{quote(unit['projectSlug'], safe='')}/units/{quote(unit['code'], safe='')}"


def _mark(deliveries: Iterable[Delivery]) -> str:
    """Another one as soon as something is to be seen that was not before."""
    told = [(one.id, one.status, one.attempts, one.next_attempt_at, one.ended_at) for one in deliveries]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]
