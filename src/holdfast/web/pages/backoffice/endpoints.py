"""Webhook endpoints: listed, added, changed, tried, removed, and failed deliveries sent again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response

from holdfast.domain.delivery import HOURS, FailedDeliveryFilter, HourlyDeliveries
from holdfast.domain.endpoint import SENT_EVENTS, Endpoint, EndpointConfig, IssuedSecret
from holdfast.domain.errors import Fault, InvalidInput, UnknownEndpoint, UnknownProject
from holdfast.domain.event import EventName
from holdfast.domain.permissions import Permission
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.operations.deliveries import RESENT_AT_ONCE
from holdfast.web.api.backoffice.endpoints import NewEndpoint
from holdfast.web.api.bodies import validated
from holdfast.web.api.parameters import parse_id
from holdfast.web.errors import MalformedBody
from holdfast.web.fields import parse_time
from holdfast.web.json import time_text
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, with_query
from holdfast.web.pages.backoffice.deliveries import DELIVERIES
from holdfast.web.pages.forms import Form, parse_whole_number
from holdfast.web.pages.templates import WEB
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

WEBHOOKS = f"{PREFIX}/settings/api/webhooks"
ENDPOINTS_A_PAGE = 50
LATEST_DELIVERIES = 8
RECONCILED_EVENTS = 5000
RECOVERED_PERIOD = timedelta(days=1)
"""The period that the form for failed deliveries begins with."""

_ENDPOINT = "/settings/api/webhooks/{id}"
_SEE, _MANAGE = Permission.SEE_WEBHOOKS, Permission.MANAGE_WEBHOOKS


@pages.get("/settings/api/webhooks", _SEE)
async def list_endpoints(request: StaffRequest) -> Response:
    after = request.parse_cursor(TIME_AND_ID_CURSOR)
    rows = await request.services.endpoints.page(after, None, ENDPOINTS_A_PAGE)
    endpoints, next_cursor = paginate(rows, ENDPOINTS_A_PAGE, creation_cursor)
    traffic = await request.services.delivery_search.load_traffic([endpoint.id for endpoint in endpoints])
    return await request.render(
        "endpoints.html",
        endpoints=endpoints,
        traffic_by_id=traffic,
        sparkline=sparkline,
        every_event=len(EventName),
        **request.page_links(WEBHOOKS, next_cursor),
    )


@pages.get("/settings/api/webhooks/new", _MANAGE)
async def show_new_endpoint(request: StaffRequest) -> Response:
    return await _render_form(request, _fill_form(EndpointConfig("")), {})


@pages.post("/settings/api/webhooks/new", _MANAGE)
async def add_endpoint(request: StaffRequest) -> Response:
    try:
        config = EndpointConfig(**await _parse_form(request))
        issued = await request.services.endpoints.add(
            config, request.author, request.form_id, repeats_secret=False
        )
    except (InvalidInput, UnknownProject) as error:
        return await _render_form_error(request, error)
    return await _render_secret(request, issued, 201)


@pages.get(_ENDPOINT, _SEE)
async def show_endpoint(request: StaffRequest, endpoint_id: UUID) -> Response:
    search = request.services.delivery_search
    try:
        endpoint = await request.services.endpoints.find(endpoint_id)
    except UnknownEndpoint:
        # The log still has what was sent to a removed endpoint.
        label = await search.label(endpoint_id)
        notice = request._("%(endpoint)s was removed. This is what was sent to it.", endpoint=label.name)
        return await request.redirect_with_notice(f"{DELIVERIES}?endpoint={endpoint_id}", notice, "warning")
    traffic = (await search.load_traffic([endpoint.id]))[endpoint.id]
    ping_id = parse_id(request.query.text("ping"))
    ping = None if ping_id is None else await search.find(ping_id)
    return await request.render(
        "endpoint.html",
        endpoint=endpoint,
        traffic=traffic,
        line=sparkline(traffic.hours, endpoint.read_at),
        latest=await search.latest(endpoint.id, LATEST_DELIVERIES),
        ping=ping if ping is not None and ping.endpoint_id == endpoint.id else None,
        every_event=len(EventName),
        snippets=verification_snippets(endpoint.config.url),
    )


@pages.get(f"{_ENDPOINT}/edit", _MANAGE)
async def edit_endpoint(request: StaffRequest, endpoint_id: UUID) -> Response:
    endpoint = await request.services.endpoints.find(endpoint_id)
    return await _render_form(request, _fill_form(endpoint.config), {}, endpoint)


@pages.post(f"{_ENDPOINT}/edit", _MANAGE)
async def change_endpoint(request: StaffRequest, endpoint_id: UUID) -> Response:
    endpoint = await request.services.endpoints.find(endpoint_id)
    try:
        changes = await _parse_form(request)
        await request.services.endpoints.change(endpoint.id, changes, request.author)
    except (InvalidInput, UnknownProject) as error:
        return await _render_form_error(request, error, endpoint)
    return await request.redirect_with_notice(_path(endpoint.id), request._("Endpoint saved."))


@pages.post(f"{_ENDPOINT}/pause", _MANAGE, back_to=_ENDPOINT)
@pages.post(f"{_ENDPOINT}/resume", _MANAGE, back_to=_ENDPOINT)
async def pause_or_resume(request: StaffRequest, endpoint_id: UUID) -> Response:
    paused = request.path.endswith("/pause")
    await request.services.endpoints.change(endpoint_id, {"paused": paused}, request.author)
    resumed = request._("Endpoint resumed. Its kept events are being sent.")
    notice = request._("Endpoint paused. Its events are kept until you resume it.") if paused else resumed
    return await request.redirect_with_notice(_path(endpoint_id), notice)


@pages.post(f"{_ENDPOINT}/rotate", _MANAGE, back_to=_ENDPOINT)
async def rotate_secret(request: StaffRequest, endpoint_id: UUID) -> Response:
    issued = await request.services.endpoints.rotate(
        endpoint_id, request.author, seen_secret_id=request.form.text("secret")
    )
    return await _render_secret(request, issued, 200)


@pages.post(f"{_ENDPOINT}/ping", _MANAGE, back_to=_ENDPOINT)
async def ping_endpoint(request: StaffRequest, endpoint_id: UUID) -> Response:
    """Redirect to the endpoint's page, which shows the result."""
    delivery = await request.services.endpoints.ping(endpoint_id, request.author)
    return request.redirect(f"{_path(endpoint_id)}?ping={delivery.id}#ping")


@pages.post(f"{_ENDPOINT}/remove", _MANAGE, back_to=_ENDPOINT)
async def remove_endpoint(request: StaffRequest, endpoint_id: UUID) -> Response:
    label = await request.services.delivery_search.label(endpoint_id)
    await request.services.endpoints.remove(endpoint_id, request.author)
    notice = request._("%(endpoint)s was removed. Nothing more is sent to it.", endpoint=label.name)
    return await request.redirect_with_notice(WEBHOOKS, notice)


@pages.get(f"{_ENDPOINT}/reconciliation", _SEE)
async def reconcile(request: StaffRequest, endpoint_id: UUID) -> Response:
    """Compare the latest events of the feed with the log: for a look, not for an audit."""
    endpoint = await request.services.endpoints.find(endpoint_id)
    found = await request.services.deliveries.reconcile(endpoint.id, None, latest=RECONCILED_EVENTS)
    template = "endpoint_reconciled.html" if request.is_fragment else "endpoint_reconciliation.html"
    return await request.render(
        template, endpoint=endpoint, counts=found.counts, compared_events=found.compared
    )


def _path(endpoint_id: UUID) -> str:
    return f"{WEBHOOKS}/{endpoint_id}"


async def _render_secret(request: StaffRequest, issued: IssuedSecret, status: int) -> Response:
    return await request.render(
        "endpoint_secret.html",
        status,
        issued=issued,
        endpoint=issued.endpoint,
        is_new=status == 201,
        snippets=verification_snippets(issued.endpoint.config.url),
    )


# The form of an endpoint.


def _fill_form(config: EndpointConfig) -> Form:
    return Form(
        [
            ("url", config.url),
            ("description", config.description),
            *(("event", event) for event in config.events),
            ("reach", "all" if config.project_slugs is None else "some"),
            *(("project", slug) for slug in config.project_slugs or ()),
            *([("ordered", "1")] if config.ordered else []),
            ("maxInFlight", str(config.max_in_flight)),
        ]
    )


async def _parse_form(request: StaffRequest) -> dict[str, Any]:
    """Return the fields by their names in the domain, or raise every fault at once."""
    form = request.form
    number = parse_whole_number(form.text("maxInFlight"))
    body = validated(
        NewEndpoint,
        {
            "url": form.text("url"),
            "description": form.text("description"),
            "events": form.all("event"),
            "projects": form.all("project") if form.text("reach") == "some" else None,
            "ordered": form.has("ordered"),
            "maxInFlight": form.text("maxInFlight") if number is None else Decimal(number),
        },
    )
    if not isinstance(body, list):
        fields = body.sent()
        fields["project_slugs"] = fields.pop("projects")
        return fields
    if not any(fault.pointer == "/url" for fault in body):
        message = await request.services.endpoints.find_url_error(form.text("url"))
        body += [] if message is None else [Fault("/url", message)]
    raise InvalidInput(body)


async def _render_form_error(
    request: StaffRequest, error: InvalidInput | UnknownProject, endpoint: Endpoint | None = None
) -> Response:
    form, faults = request.form, request.faults(error)
    if isinstance(error, UnknownProject):
        faults["projects"] = request._("One of these projects does not exist.")
    else:
        if not form.has("event"):
            faults["events"] = request._("Choose at least one event.")
        if form.text("reach") == "some" and not form.has("project"):
            faults["projects"] = request._("Choose at least one project.")
        if not form.text("url"):
            faults["url"] = request._("Enter a URL.")
    return await _render_form(request, form, faults, endpoint)


async def _render_form(
    request: StaffRequest, typed: Form, faults: dict[str, str], endpoint: Endpoint | None = None
) -> Response:
    return await request.render(
        "endpoint_form.html",
        422 if faults else 200,
        typed=typed,
        faults=faults,
        endpoint=endpoint,
        projects=await request.list_projects(),
        events=list(EventName),
    )


# Recovery: all that failed at an endpoint is counted first, then sent again step by step.


class Recovery(NamedTuple):
    selection: FailedDeliveryFilter
    total: int
    resent: int

    @property
    def fields(self) -> dict[str, str]:
        """The hidden fields of the form for the next step."""
        selection = self.selection
        return {
            "since": time_text(selection.since),
            "until": time_text(selection.until) if selection.until else "",
            "event": selection.events[0] if selection.events else "",
            "total": str(self.total),
            "resent": str(self.resent),
        }


@pages.get(f"{_ENDPOINT}/recover", _MANAGE)
async def show_recovery(request: StaffRequest, endpoint_id: UUID) -> Response:
    """Show the form; with a time in the query also how many deliveries failed since."""
    endpoint = await request.services.endpoints.find(endpoint_id)
    typed_since, fault, recovery = request.query.text("since"), None, None
    if not request.query.has("since"):
        typed_since = request.language.local(endpoint.read_at - RECOVERED_PERIOD)
    elif (since := request.parse_local_time(typed_since)) is None:
        fault = request._("Enter a date and time.")
    else:
        deliveries = request.services.deliveries
        selection = await deliveries.limit_to_now(
            FailedDeliveryFilter(since, events=_parse_events(request.query))
        )
        recovery = Recovery(selection, await deliveries.count_failed(endpoint.id, selection), 0)
    return await request.render(
        "endpoint_recover.html",
        422 if fault else 200,
        endpoint=endpoint,
        since=typed_since,
        event=request.query.text("event"),
        events=SENT_EVENTS,
        fault=fault,
        recovery=recovery,
    )


@pages.post(f"{_ENDPOINT}/recover", _MANAGE)
async def recover(request: StaffRequest, endpoint_id: UUID) -> Response:
    endpoint = await request.services.endpoints.find(endpoint_id)
    recovery = _parse_recovery(request.form)
    count = await request.services.deliveries.recover_some(
        endpoint.id, recovery.selection, request.author, recovery.resent
    )
    recovery = recovery._replace(resent=recovery.resent + count)
    sent = request.ngettext(
        "%(num)s failed delivery is being resent.",
        "%(num)s failed deliveries are being resent.",
        recovery.resent,
    )
    if count == RESENT_AT_ONCE:
        if request.is_fragment:
            return await request.render("endpoint_recovering_part.html", endpoint=endpoint, recovery=recovery)
        # Without a script: the page counts those that are left.
        since = request.language.local(recovery.selection.since)
        path = with_query(f"{_path(endpoint.id)}/recover", since=since, event=request.form.text("event"))
        return await request.redirect_with_notice(path, sent)
    path, notice = _path(endpoint.id), request._("There was nothing to resend.")
    response = await request.redirect_with_notice(path, sent if recovery.resent else notice)
    if request.is_fragment:
        return request.no_content(HX_Redirect=path)
    return response


def _parse_recovery(form: Form) -> Recovery:
    since, until = parse_time(form.text("since")), parse_time(form.text("until"))
    if since is None or until is None:
        raise MalformedBody("The form does not say which deliveries are meant.")
    total, resent = parse_whole_number(form.text("total")), parse_whole_number(form.text("resent"))
    if total is None or resent is None:
        raise MalformedBody("The form does not say how many there are.")
    return Recovery(FailedDeliveryFilter(since, until, _parse_events(form)), total, resent)


def _parse_events(form: Form) -> tuple[str, ...] | None:
    event = form.text("event")
    return (event,) if event in SENT_EVENTS else None


# A day of deliveries as a sparkline: a bar for each hour.

WIDTH, HEIGHT = 120, 28
_LEAST_HEIGHT = 2.0
"""A single delivery can be seen."""


class Bar(NamedTuple):
    x: float
    delivered: int
    failed: int
    delivered_height: float
    failed_height: float


class Sparkline(NamedTuple):
    bars: list[Bar]
    delivered: int
    failed: int

    @property
    def success_percent(self) -> float | None:
        """Never 100 while one failed."""
        ended = self.delivered + self.failed
        if not ended:
            return None
        return min(round(100 * self.delivered / ended, 1), 99.9) if self.failed else 100


def sparkline(hours: Sequence[HourlyDeliveries], now: datetime) -> Sparkline:
    """The present hour is the last bar."""
    counts = {hour.begins_at: (hour.delivered, hour.failed) for hour in hours}
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    highest = max(map(sum, counts.values()), default=0)
    bars = []
    for place in range(HOURS):
        delivered, failed = counts.get(first + timedelta(hours=place), (0, 0))
        failed_height = _height(failed, highest, HEIGHT)
        # What little failed is never drawn over the edge.
        delivered_height = _height(delivered, highest, HEIGHT - failed_height)
        bars.append(Bar(place * WIDTH / HOURS, delivered, failed, delivered_height, failed_height))
    return Sparkline(bars, sum(bar.delivered for bar in bars), sum(bar.failed for bar in bars))


def _height(count: int, highest: int, most: float) -> float:
    return round(min(max(HEIGHT * count / highest, _LEAST_HEIGHT), most), 2) if count else 0


@cache
def _read_snippet(name: str) -> str:
    return (WEB / f"templates/backoffice/snippets/{name}.txt").read_text()


def verification_snippets(url: str) -> dict[str, str]:
    """Return code that verifies a delivery, and a command that sends a signed ping; a test runs each."""
    values = {"%TOLERANCE%": str(TOLERANCE_SECONDS), "%URL%": shlex.quote(url)}
    snippets = {name: _read_snippet(name) for name in ("python", "node", "openssl", "curl")}
    for placeholder, value in values.items():
        snippets = {name: text.replace(placeholder, value) for name, text in snippets.items()}
    return snippets
