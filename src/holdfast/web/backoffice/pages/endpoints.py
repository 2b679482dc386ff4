"""Settings, API, webhooks: endpoints listed, registered, looked at, changed, tried, removed."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.delivery import Delivery
from holdfast.domain.endpoint import Endpoint, IssuedSecret, Wishes
from holdfast.domain.errors import InvalidInput, UnknownEndpoint, UnknownProject
from holdfast.domain.event import EventName
from holdfast.domain.permissions import Permission
from holdfast.operations.deliveries import Deliveries, DeliverySearch
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.units import Units
from holdfast.web.api.parameters import read_id
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages import snippets
from holdfast.web.backoffice.pages.endpoint_forms import Typed, chosen, told, typed_in, typed_of
from holdfast.web.backoffice.pages.sparkline import sparkline
from holdfast.web.backoffice.pages.webhook_visits import DELIVERIES, WEBHOOKS, id_in_path, words_of
from holdfast.web.backoffice.visits import Visit
from holdfast.web.cursors import created_cursor_text, read_moment_and_id_cursor

ENDPOINTS_A_PAGE = 50
PROJECTS_OFFERED = 500
LATEST = 8
RECONCILED_EVENTS = 5000


class EndpointPages:
    def __init__(
        self,
        subscribing: Endpoints,
        deliveries: Deliveries,
        search: DeliverySearch,
        inventory: Units,
    ) -> None:
        self._subscribing = subscribing
        self._deliveries = deliveries
        self._search = search
        self._inventory = inventory

    async def list(self, visit: Visit) -> Response:
        page = await self._subscribing.page(_cursor(visit), None, ENDPOINTS_A_PAGE)
        endpoints = page[:ENDPOINTS_A_PAGE]
        standings = await self._search.standings([one.id for one in endpoints])
        lines = {one.id: sparkline(standings[one.id].hours, one.read_at) for one in endpoints}
        return await visit.render(
            "endpoints.html",
            endpoints=endpoints,
            standings=standings,
            sparklines=lines,
            every_event=len(EventName),
            **words_of(visit),
            first=WEBHOOKS if visit.query.has("cursor") else None,
            next=_next(page),
        )

    async def new(self, visit: Visit) -> Response:
        return await self._form(visit, Typed(), {})

    async def add(self, visit: Visit) -> Response:
        typed = typed_in(visit.form)
        try:
            wishes = Wishes(**await chosen(typed, self._subscribing))
            issued = await self._subscribing.add(wishes, visit.author)
        except InvalidInput as refusal:
            return await self._form(visit, typed, told(visit, refusal, typed))
        except UnknownProject:
            return await self._form(visit, typed, _no_such_project(visit))
        return await _with_secret(visit, issued, 201)

    async def show(self, visit: Visit) -> Response:
        endpoint_id = id_in_path(visit)
        try:
            endpoint = await self._subscribing.find(endpoint_id)
        except UnknownEndpoint:
            # One that was removed is still known by what was sent to it.
            label = await self._search.label(endpoint_id)
            notice = visit._("%(endpoint)s was removed. This is what was sent to it.", endpoint=label.name)
            return await visit.go(f"{DELIVERIES}?endpoint={endpoint_id}", notice, "warning")
        return await visit.render("endpoint.html", **await self._told(endpoint, visit))

    async def edit(self, visit: Visit) -> Response:
        endpoint = await self._subscribing.find(id_in_path(visit))
        return await self._form(visit, typed_of(endpoint), {}, endpoint)

    async def change(self, visit: Visit) -> Response:
        endpoint = await self._subscribing.find(id_in_path(visit))
        typed = typed_in(visit.form)
        try:
            changes = await chosen(typed, self._subscribing)
            await self._subscribing.change(endpoint.id, changes, visit.author)
        except InvalidInput as refusal:
            return await self._form(visit, typed, told(visit, refusal, typed), endpoint)
        except UnknownProject:
            return await self._form(visit, typed, _no_such_project(visit), endpoint)
        return await visit.go(address_of(endpoint.id), visit._("The endpoint is changed."))

    async def pause(self, visit: Visit) -> Response:
        return await self._set_paused(
            visit, True, visit._("Paused. Events are kept for it, and nothing is sent.")
        )

    async def resume(self, visit: Visit) -> Response:
        return await self._set_paused(visit, False, visit._("Resumed. What was kept for it goes out now."))

    async def rotate(self, visit: Visit) -> Response:
        issued = await self._subscribing.rotate(id_in_path(visit), visit.author)
        return await _with_secret(visit, issued, 200)

    async def ping(self, visit: Visit) -> Response:
        """On to the endpoint's page, which shows what becomes of it."""
        endpoint_id = id_in_path(visit)
        made = await self._subscribing.ping(endpoint_id, visit.author)
        return await visit.go(f"{address_of(endpoint_id)}?ping={made.id}#ping")

    async def remove(self, visit: Visit) -> Response:
        endpoint_id = id_in_path(visit)
        label = await self._search.label(endpoint_id)
        await self._subscribing.remove(endpoint_id, visit.author)
        return await visit.go(
            WEBHOOKS, visit._("%(endpoint)s is removed: nothing is sent to it any more.", endpoint=label.name)
        )

    async def reconcile(self, visit: Visit) -> Response:
        """The feed held against the log, of late: for a look, not for an audit."""
        endpoint = await self._subscribing.find(id_in_path(visit))
        found = await self._deliveries.reconcile_lately(endpoint.id, RECONCILED_EVENTS)
        template = "endpoint_reconciled.html" if visit.is_fragment else "endpoint_reconciliation.html"
        return await visit.render(
            template, endpoint=endpoint, tally=found.tally, looked_at=found.upto - found.after
        )

    async def back(self, visit: Visit) -> Response:
        """For whoever reloads what was a button."""
        return await visit.go(address_of(id_in_path(visit)))

    async def _told(self, endpoint: Endpoint, visit: Visit) -> dict[str, Any]:
        standing = (await self._search.standings([endpoint.id]))[endpoint.id]
        latest = await self._search.latest(endpoint.id, LATEST)
        return {
            "endpoint": endpoint,
            "standing": standing,
            "line": sparkline(standing.hours, endpoint.read_at),
            "latest": latest,
            "ping": await self._ping(endpoint, read_id(visit.query.text("ping"))),
            "every_event": len(EventName),
            "snippets": snippets,
            **words_of(visit),
        }

    async def _ping(self, endpoint: Endpoint, delivery_id: UUID | None) -> Delivery | None:
        found = None if delivery_id is None else await self._search.find(delivery_id)
        return found if found is not None and found.endpoint_id == endpoint.id else None

    async def _set_paused(self, visit: Visit, paused: bool, notice: str) -> Response:
        endpoint_id = id_in_path(visit)
        await self._subscribing.change(endpoint_id, {"paused": paused}, visit.author)
        return await visit.go(address_of(endpoint_id), notice)

    async def _form(
        self, visit: Visit, typed: Typed, faults: dict[str, str], endpoint: Endpoint | None = None
    ) -> Response:
        projects = await self._inventory.projects_page(None, "", PROJECTS_OFFERED)
        return await visit.render(
            "endpoint_form.html",
            422 if faults else 200,
            typed=typed,
            faults=faults,
            endpoint=endpoint,
            projects=projects,
            events=list(EventName),
        )


def endpoint_page_routes(
    desk: Desk,
    subscribing: Endpoints,
    deliveries: Deliveries,
    search: DeliverySearch,
    inventory: Units,
) -> list[Route]:
    pages = EndpointPages(subscribing, deliveries, search, inventory)
    see, manage = Permission.SEE_WEBHOOKS, Permission.MANAGE_WEBHOOKS
    own = f"{WEBHOOKS}/{{id}}"
    buttons = {
        "pause": pages.pause,
        "resume": pages.resume,
        "rotate": pages.rotate,
        "ping": pages.ping,
        "remove": pages.remove,
    }
    return [
        desk.page(WEBHOOKS, see, GET=pages.list),
        desk.page(f"{WEBHOOKS}/new", manage, GET=pages.new, POST=pages.add),
        desk.page(own, see, GET=pages.show),
        desk.page(f"{own}/edit", manage, GET=pages.edit, POST=pages.change),
        desk.page(f"{own}/reconciliation", see, GET=pages.reconcile),
        *(
            desk.page(f"{own}/{name}", see, GET=pages.back, POST=(manage, press))
            for name, press in buttons.items()
        ),
    ]


def address_of(endpoint_id: UUID) -> str:
    return f"{WEBHOOKS}/{endpoint_id}"


async def _with_secret(visit: Visit, issued: IssuedSecret, status: int) -> Response:
    return await visit.render(
        "endpoint_secret.html",
        status,
        issued=issued,
        endpoint=issued.endpoint,
        is_new=status == 201,
        snippets=snippets,
    )


def _no_such_project(visit: Visit) -> dict[str, str]:
    return {"projects": visit._("One of these projects is not there.")}


def _cursor(visit: Visit) -> tuple[datetime, UUID] | None:
    try:
        return read_moment_and_id_cursor(visit.query.text("cursor"))
    except ValueError:
        return None


def _next(page: list[Endpoint]) -> str | None:
    if len(page) <= ENDPOINTS_A_PAGE:
        return None
    last = page[ENDPOINTS_A_PAGE - 1]
    return f"{WEBHOOKS}?cursor={created_cursor_text(last)}"
