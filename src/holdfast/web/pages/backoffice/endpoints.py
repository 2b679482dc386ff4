"""The form of an endpoint: as it is filled in, and what it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.delivery import Delivery
from holdfast.domain.endpoint import DEFAULT_IN_FLIGHT, Endpoint, EndpointConfig, IssuedSecret
from holdfast.domain.errors import Fault, InvalidInput, UnknownEndpoint, UnknownProject
from holdfast.domain.event import EventName
from holdfast.domain.permissions import Permission
from holdfast.operations.deliveries import HOURS, Deliveries, DeliverySearch, HourlyDeliveries
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.units import Units
from holdfast.web.api.backoffice.endpoints import NewEndpoint
from holdfast.web.api.bodies import validated
from holdfast.web.api.parameters import id_in_path, parse_id
from holdfast.web.pages.backoffice import snippets
from holdfast.web.pages.backoffice.base import Desk, Visit
from holdfast.web.pages.backoffice.webhook_pages import DELIVERIES, WEBHOOKS, words_of
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import translate
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

LONGEST_NUMBER = 9


class Typed(NamedTuple):
    url: str = ""
    description: str = ""
    events: Sequence[str] = tuple(EventName)
    is_limited: bool = False
    projects: Sequence[str] = ()
    is_ordered: bool = False
    max_in_flight: str = str(DEFAULT_IN_FLIGHT)


def typed_in(form: Form) -> Typed:
    return Typed(
        form.text("url"),
        form.text("description"),
        form.all("event"),
        form.text("reach") == "some",
        form.all("project"),
        form.has("ordered"),
        form.text("maxInFlight"),
    )


def typed_of(endpoint: Endpoint) -> Typed:
    config = endpoint.config
    return Typed(
        config.url,
        config.description,
        [*config.events],
        config.project_slugs is not None,
        [*(config.project_slugs or ())],
        config.ordered,
        str(config.max_in_flight),
    )


async def chosen(typed: Typed, subscribing: Endpoints) -> dict[str, Any]:
    """Return the choices by their names in the domain, or raise every fault at once."""
    body = validated(NewEndpoint, _body(typed))
    if not isinstance(body, list):
        choices = body.sent()
        choices["project_slugs"] = choices.pop("projects")
        return choices
    if not any(fault.pointer == "/url" for fault in body):
        message = await subscribing.find_url_error(typed.url)
        body += [] if message is None else [Fault("/url", message)]
    raise InvalidInput(body)


def told(visit: Visit, refusal: InvalidInput, typed: Typed) -> dict[str, str]:
    """What is wrong, by the field that it stands beside."""
    faults = {_field(fault): translate(fault.message, visit.language) for fault in reversed(refusal.faults)}
    if not typed.events:
        faults["events"] = visit._("Choose at least one event.")
    if typed.is_limited and not typed.projects:
        faults["projects"] = visit._("Choose at least one project.")
    if not typed.url:
        faults["url"] = visit._("An endpoint needs a URL.")
    return faults


def _body(typed: Typed) -> dict[str, Any]:
    number = typed.max_in_flight
    is_number = number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER
    return {
        "url": typed.url,
        "description": typed.description,
        "events": [*typed.events],
        "projects": [*typed.projects] if typed.is_limited else None,
        "ordered": typed.is_ordered,
        "maxInFlight": Decimal(number) if is_number else number,
    }


def _field(fault: Fault) -> str:
    return fault.pointer.split("/")[1]


# A day of deliveries in so little room that it fits beside a name: a bar for each hour.

WIDTH, HEIGHT = 120, 28
_STEP = WIDTH / HOURS
_BAR = _STEP - 1.25
_LEAST = 2.0
"""What there is at all can be seen."""


class Bar(NamedTuple):
    x: float
    begins_at: datetime
    delivered: int
    failed: int
    delivered_height: float
    failed_height: float

    @property
    def width(self) -> float:
        return _BAR


class Sparkline(NamedTuple):
    bars: list[Bar]
    delivered: int
    failed: int

    @property
    def ended(self) -> int:
        return self.delivered + self.failed

    @property
    def success_percent(self) -> float | None:
        """Never 100 while one failed."""
        if not self.ended:
            return None
        exact = 100 * self.delivered / self.ended
        return min(round(exact, 1), 99.9) if self.failed else 100


def sparkline(hours: Sequence[HourlyDeliveries], now: datetime) -> Sparkline:
    """The present hour is the last bar."""
    by_start = {hour.begins_at: hour for hour in hours}
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    highest = max((hour.delivered + hour.failed for hour in hours), default=0)
    bars = [
        _bar(place, start, by_start.get(start), highest)
        for place in range(HOURS)
        for start in [first + timedelta(hours=place)]
    ]
    return Sparkline(bars, sum(bar.delivered for bar in bars), sum(bar.failed for bar in bars))


def _bar(place: int, start: datetime, hour: HourlyDeliveries | None, highest: int) -> Bar:
    delivered, failed = (hour.delivered, hour.failed) if hour else (0, 0)
    failed_height = _height(failed, highest, HEIGHT)
    # What little failed is never drawn over the edge.
    delivered_height = _height(delivered, highest, HEIGHT - failed_height)
    return Bar(round(place * _STEP, 2), start, delivered, failed, delivered_height, failed_height)


def _height(count: int, highest: int, most: float) -> float:
    return round(min(max(HEIGHT * count / highest, _LEAST), most), 2) if count else 0


# Settings, API, webhooks: endpoints listed, registered, looked at, changed, tried, removed.

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
            config = EndpointConfig(**await chosen(typed, self._subscribing))
            issued = await self._subscribing.add(config, visit.author)
        except InvalidInput as refusal:
            return await self._form(visit, typed, told(visit, refusal, typed))
        except UnknownProject:
            return await self._form(visit, typed, _no_such_project(visit))
        return await _with_secret(visit, issued, 201)

    async def show(self, visit: Visit) -> Response:
        endpoint_id = id_in_path(visit.request)
        try:
            endpoint = await self._subscribing.find(endpoint_id)
        except UnknownEndpoint:
            # One that was removed is still known by what was sent to it.
            label = await self._search.label(endpoint_id)
            notice = visit._("%(endpoint)s was removed. This is what was sent to it.", endpoint=label.name)
            return await visit.go(f"{DELIVERIES}?endpoint={endpoint_id}", notice, "warning")
        return await visit.render("endpoint.html", **await self._told(endpoint, visit))

    async def edit(self, visit: Visit) -> Response:
        endpoint = await self._subscribing.find(id_in_path(visit.request))
        return await self._form(visit, typed_of(endpoint), {}, endpoint)

    async def change(self, visit: Visit) -> Response:
        endpoint = await self._subscribing.find(id_in_path(visit.request))
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
        issued = await self._subscribing.rotate(id_in_path(visit.request), visit.author)
        return await _with_secret(visit, issued, 200)

    async def ping(self, visit: Visit) -> Response:
        """On to the endpoint's page, which shows what becomes of it."""
        endpoint_id = id_in_path(visit.request)
        made = await self._subscribing.ping(endpoint_id, visit.author)
        return await visit.go(f"{address_of(endpoint_id)}?ping={made.id}#ping")

    async def remove(self, visit: Visit) -> Response:
        endpoint_id = id_in_path(visit.request)
        label = await self._search.label(endpoint_id)
        await self._subscribing.remove(endpoint_id, visit.author)
        return await visit.go(
            WEBHOOKS, visit._("%(endpoint)s is removed: nothing is sent to it any more.", endpoint=label.name)
        )

    async def reconcile(self, visit: Visit) -> Response:
        """The feed held against the log, of late: for a look, not for an audit."""
        endpoint = await self._subscribing.find(id_in_path(visit.request))
        found = await self._deliveries.reconcile_lately(endpoint.id, RECONCILED_EVENTS)
        template = "endpoint_reconciled.html" if visit.is_fragment else "endpoint_reconciliation.html"
        return await visit.render(
            template, endpoint=endpoint, tally=found.counts, looked_at=found.upto - found.after
        )

    async def back(self, visit: Visit) -> Response:
        """For whoever reloads what was a button."""
        return await visit.go(address_of(id_in_path(visit.request)))

    async def _told(self, endpoint: Endpoint, visit: Visit) -> dict[str, Any]:
        standing = (await self._search.standings([endpoint.id]))[endpoint.id]
        latest = await self._search.latest(endpoint.id, LATEST)
        return {
            "endpoint": endpoint,
            "standing": standing,
            "line": sparkline(standing.hours, endpoint.read_at),
            "latest": latest,
            "ping": await self._ping(endpoint, parse_id(visit.query.text("ping"))),
            "every_event": len(EventName),
            "snippets": snippets,
            **words_of(visit),
        }

    async def _ping(self, endpoint: Endpoint, delivery_id: UUID | None) -> Delivery | None:
        found = None if delivery_id is None else await self._search.find(delivery_id)
        return found if found is not None and found.endpoint_id == endpoint.id else None

    async def _set_paused(self, visit: Visit, paused: bool, notice: str) -> Response:
        endpoint_id = id_in_path(visit.request)
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
        return TIME_AND_ID_CURSOR.decode(visit.query.text("cursor"))
    except ValueError:
        return None


def _next(page: list[Endpoint]) -> str | None:
    if len(page) <= ENDPOINTS_A_PAGE:
        return None
    last = page[ENDPOINTS_A_PAGE - 1]
    return f"{WEBHOOKS}?cursor={creation_cursor(last)}"
