"""Webhook endpoints: listed, added, changed, tried, removed, and failed deliveries sent again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response

from holdfast.domain.delivery import HOURS, FailedDeliveryFilter, HourlyDeliveries
from holdfast.domain.endpoint import (
    DEFAULT_IN_FLIGHT,
    SENT_EVENTS,
    Endpoint,
    EndpointConfig,
    IssuedSecret,
)
from holdfast.domain.errors import Fault, InvalidInput, UnknownEndpoint, UnknownProject
from holdfast.domain.event import EventName
from holdfast.domain.permissions import Permission
from holdfast.domain.signature import TOLERANCE_SECONDS
from holdfast.operations.deliveries import RESENT_AT_ONCE
from holdfast.web.api.backoffice.endpoints import NewEndpoint
from holdfast.web.api.bodies import validated
from holdfast.web.api.parameters import parse_id
from holdfast.web.fields import parse_time
from holdfast.web.http_errors import MalformedBody
from holdfast.web.json import time_text
from holdfast.web.pages.backoffice.base import (
    PREFIX,
    StaffRequest,
    faults_by_field,
    list_projects,
    page_links,
    parse_cursor,
    parse_local_time,
)
from holdfast.web.pages.backoffice.deliveries import DELIVERIES
from holdfast.web.pages.forms import Form
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.sessions import PAGE_HEADERS
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

WEBHOOKS = f"{PREFIX}/settings/api/webhooks"
ENDPOINTS_A_PAGE = 50
LATEST_DELIVERIES = 8
RECONCILED_EVENTS = 5000
RECOVERED_PERIOD = timedelta(days=1)
"""The period that the form for failed deliveries begins with."""

_ENDPOINT = "/settings/api/webhooks/{id}"
_SEE, _MANAGE = Permission.SEE_WEBHOOKS, Permission.MANAGE_WEBHOOKS
_LONGEST_NUMBER = 9
_LONGEST_COUNT = 12

pages = Pages(StaffRequest)


@pages.get("/settings/api/webhooks", _SEE)
async def list_endpoints(request: StaffRequest) -> Response:
    after = parse_cursor(request, TIME_AND_ID_CURSOR)
    rows = await request.services.endpoints.page(after, None, ENDPOINTS_A_PAGE)
    endpoints, next_cursor = paginate(rows, ENDPOINTS_A_PAGE, creation_cursor)
    traffic = await request.services.delivery_search.standings([endpoint.id for endpoint in endpoints])
    return await request.render(
        "endpoints.html",
        endpoints=endpoints,
        traffic_by_id=traffic,
        sparklines={
            endpoint.id: sparkline(traffic[endpoint.id].hours, endpoint.read_at) for endpoint in endpoints
        },
        every_event=len(EventName),
        **page_links(request, WEBHOOKS, next_cursor),
    )


@pages.get("/settings/api/webhooks/new", _MANAGE)
async def show_new_endpoint(request: StaffRequest) -> Response:
    return await _render_form(request, TypedEndpoint(), {})


@pages.post("/settings/api/webhooks/new", _MANAGE)
async def add_endpoint(request: StaffRequest) -> Response:
    typed = _typed_endpoint(request.form)
    try:
        config = EndpointConfig(**await _parse_form(request, typed))
        issued = await request.services.endpoints.add(config, request.author)
    except (InvalidInput, UnknownProject) as error:
        return await _render_form(request, typed, _form_faults(request, error, typed))
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
    traffic = (await search.standings([endpoint.id]))[endpoint.id]
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
    config = endpoint.config
    typed = TypedEndpoint(
        config.url,
        config.description,
        [*config.events],
        config.project_slugs is not None,
        [*(config.project_slugs or ())],
        config.ordered,
        str(config.max_in_flight),
    )
    return await _render_form(request, typed, {}, endpoint)


@pages.post(f"{_ENDPOINT}/edit", _MANAGE)
async def change_endpoint(request: StaffRequest, endpoint_id: UUID) -> Response:
    endpoint = await request.services.endpoints.find(endpoint_id)
    typed = _typed_endpoint(request.form)
    try:
        changes = await _parse_form(request, typed)
        await request.services.endpoints.change(endpoint.id, changes, request.author)
    except (InvalidInput, UnknownProject) as error:
        return await _render_form(request, typed, _form_faults(request, error, typed), endpoint)
    return await request.redirect_with_notice(_path(endpoint.id), request._("The endpoint is changed."))


@pages.post(f"{_ENDPOINT}/pause", _MANAGE, back_to=_ENDPOINT)
async def pause(request: StaffRequest, endpoint_id: UUID) -> Response:
    await request.services.endpoints.change(endpoint_id, {"paused": True}, request.author)
    notice = request._("Paused. Events are kept for it, and nothing is sent.")
    return await request.redirect_with_notice(_path(endpoint_id), notice)


@pages.post(f"{_ENDPOINT}/resume", _MANAGE, back_to=_ENDPOINT)
async def resume(request: StaffRequest, endpoint_id: UUID) -> Response:
    await request.services.endpoints.change(endpoint_id, {"paused": False}, request.author)
    notice = request._("Resumed. What was kept for it goes out now.")
    return await request.redirect_with_notice(_path(endpoint_id), notice)


@pages.post(f"{_ENDPOINT}/rotate", _MANAGE, back_to=_ENDPOINT)
async def rotate_secret(request: StaffRequest, endpoint_id: UUID) -> Response:
    issued = await request.services.endpoints.rotate(endpoint_id, request.author)
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
    notice = request._("%(endpoint)s is removed: nothing is sent to it any more.", endpoint=label.name)
    return await request.redirect_with_notice(WEBHOOKS, notice)


@pages.get(f"{_ENDPOINT}/reconciliation", _SEE)
async def reconcile(request: StaffRequest, endpoint_id: UUID) -> Response:
    """Compare the latest events of the feed with the log: for a look, not for an audit."""
    endpoint = await request.services.endpoints.find(endpoint_id)
    found = await request.services.deliveries.reconcile_lately(endpoint.id, RECONCILED_EVENTS)
    template = "endpoint_reconciled.html" if request.is_fragment else "endpoint_reconciliation.html"
    return await request.render(
        template, endpoint=endpoint, counts=found.counts, compared_events=found.upto - found.after
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


class TypedEndpoint(NamedTuple):
    url: str = ""
    description: str = ""
    events: Sequence[str] = tuple(EventName)
    is_limited: bool = False
    projects: Sequence[str] = ()
    is_ordered: bool = False
    max_in_flight: str = str(DEFAULT_IN_FLIGHT)


def _typed_endpoint(form: Form) -> TypedEndpoint:
    return TypedEndpoint(
        form.text("url"),
        form.text("description"),
        form.all("event"),
        form.text("reach") == "some",
        form.all("project"),
        form.has("ordered"),
        form.text("maxInFlight"),
    )


async def _parse_form(request: StaffRequest, typed: TypedEndpoint) -> dict[str, Any]:
    """Return the fields by their names in the domain, or raise every fault at once."""
    number = typed.max_in_flight
    is_number = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
    body = validated(
        NewEndpoint,
        {
            "url": typed.url,
            "description": typed.description,
            "events": [*typed.events],
            "projects": [*typed.projects] if typed.is_limited else None,
            "ordered": typed.is_ordered,
            "maxInFlight": Decimal(number) if is_number else number,
        },
    )
    if not isinstance(body, list):
        fields = body.sent()
        fields["project_slugs"] = fields.pop("projects")
        return fields
    if not any(fault.pointer == "/url" for fault in body):
        message = await request.services.endpoints.find_url_error(typed.url)
        body += [] if message is None else [Fault("/url", message)]
    raise InvalidInput(body)


def _form_faults(
    request: StaffRequest, error: InvalidInput | UnknownProject, typed: TypedEndpoint
) -> dict[str, str]:
    if isinstance(error, UnknownProject):
        return {"projects": request._("One of these projects is not there.")}
    faults = faults_by_field(request, error)
    if not typed.events:
        faults["events"] = request._("Choose at least one event.")
    if typed.is_limited and not typed.projects:
        faults["projects"] = request._("Choose at least one project.")
    if not typed.url:
        faults["url"] = request._("An endpoint needs a URL.")
    return faults


async def _render_form(
    request: StaffRequest, typed: TypedEndpoint, faults: dict[str, str], endpoint: Endpoint | None = None
) -> Response:
    return await request.render(
        "endpoint_form.html",
        422 if faults else 200,
        typed=typed,
        faults=faults,
        endpoint=endpoint,
        projects=await list_projects(request),
        events=list(EventName),
    )


# Recovery: all that failed at an endpoint is counted first, then sent again step by step.


class Recovery(NamedTuple):
    """A recovery that is under way."""

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
    elif (since := parse_local_time(request, typed_since)) is None:
        fault = request._("Say since when.")
    else:
        deliveries = request.services.deliveries
        selection = await deliveries.bounded(FailedDeliveryFilter(since, events=_parse_events(request.query)))
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
    if count == RESENT_AT_ONCE:
        template = "endpoint_recovering_part.html" if request.is_fragment else "endpoint_recovering.html"
        return await request.render(template, endpoint=endpoint, recovery=recovery)
    path, notice = _path(endpoint.id), request._("There was nothing to send again.")
    if recovery.resent:
        notice = request.ngettext(
            "%(num)s failed delivery is being sent again.",
            "%(num)s failed deliveries are being sent again.",
            recovery.resent,
        )
    response = await request.redirect_with_notice(path, notice)
    if request.is_fragment:
        return Response(status_code=204, headers={**PAGE_HEADERS, "HX-Redirect": path})
    return response


def _parse_recovery(form: Form) -> Recovery:
    since, until = parse_time(form.text("since")), parse_time(form.text("until"))
    if since is None or until is None:
        raise MalformedBody("The form does not say which deliveries are meant.")
    selection = FailedDeliveryFilter(since, until, _parse_events(form))
    return Recovery(selection, _parse_count(form, "total"), _parse_count(form, "resent"))


def _parse_events(form: Form) -> tuple[str, ...] | None:
    event = form.text("event")
    return (event,) if event in SENT_EVENTS else None


def _parse_count(form: Form, name: str) -> int:
    text = form.text(name)
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_COUNT):
        raise MalformedBody("The form does not say how many there are.")
    return int(text)


# A day of deliveries as a sparkline: a bar for each hour.

WIDTH, HEIGHT = 120, 28
_STEP = WIDTH / HOURS
_BAR = _STEP - 1.25
_LEAST_HEIGHT = 2.0
"""A single delivery can be seen."""


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
    return round(min(max(HEIGHT * count / highest, _LEAST_HEIGHT), most), 2) if count else 0


# Snippets that show receivers how to check a signature; each of these is run by a test.

_PYTHON = f'''\
import hashlib
import hmac
import time


def is_genuine(secret: str, headers, body: bytes) -> bool:
    """`headers` as your framework gives them, `body` the raw bytes, before anything parses them."""
    timestamp = headers.get("X-Service-Timestamp", "")
    signature = headers.get("X-Service-Signature", "")
    if not (timestamp.isascii() and timestamp.isdigit()):
        return False
    if abs(time.time() - int(timestamp)) > {TOLERANCE_SECONDS}:
        return False
    signed = timestamp.encode() + b"." + body
    expected = "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())
'''

_NODE = f"""\
const crypto = require("node:crypto");

// `headers` as Node gives them (names in lower case), `body` the raw Buffer, before anything parses it.
function isGenuine(secret, headers, body) {{
  const timestamp = headers["x-service-timestamp"] ?? "";
  const signature = Buffer.from(headers["x-service-signature"] ?? "");
  if (!/^[0-9]+$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > {TOLERANCE_SECONDS}) return false;
  const digest = crypto.createHmac("sha256", secret).update(`${{timestamp}}.`).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${{digest}}`);
  return expected.length === signature.length && crypto.timingSafeEqual(expected, signature);
}}

module.exports = {{ isGenuine }};
"""

_OPENSSL = """\
# body.json holds the body exactly as it came; the other three are the secret and two headers.
SECRET='hfs_…'
TIMESTAMP='…'    # X-Service-Timestamp
SIGNATURE='…'    # X-Service-Signature

EXPECTED="sha256=$( { printf '%s.' "$TIMESTAMP"; cat body.json; } \\
  | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)"
[ "$EXPECTED" = "$SIGNATURE" ] && echo genuine || echo forged
"""

_CURL = """\
SECRET='hfs_…'
BODY='{{"id":"00000000-0000-4000-8000-000000000000","type":"ping","createdAt":"2026-01-01T00:00:00.000Z",\
"data":{{"unit":null,"booking":null}}}}'
TIMESTAMP="$(date +%s)"
SIGNATURE="sha256=$(printf '%s.%s' "$TIMESTAMP" "$BODY" \\
  | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)"

curl -i -X POST {url} \\
  -H 'Content-Type: application/json' \\
  -H 'X-Service-Event: ping' \\
  -H 'X-Service-Delivery: 00000000-0000-4000-8000-000000000000' \\
  -H "X-Service-Timestamp: $TIMESTAMP" \\
  -H "X-Service-Signature: $SIGNATURE" \\
  --data-raw "$BODY"
"""


def verification_snippets(url: str) -> dict[str, str]:
    """Return code that verifies a delivery, and a command that sends a signed ping to ``url``."""
    return {
        "python": _PYTHON,
        "node": _NODE,
        "openssl": _OPENSSL,
        "curl": _CURL.format(url=shlex.quote(url)),
    }
