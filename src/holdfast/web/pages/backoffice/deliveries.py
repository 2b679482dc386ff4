"""Webhook deliveries: the searchable log, and one delivery with its attempts."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from unicodedata import category
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.domain.delivery import Attempt, Delivery, DeliveryFilter, DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS, Endpoint
from holdfast.domain.endpoint_url import InvalidEndpointUrl, parse_endpoint_url
from holdfast.domain.errors import EndpointRemoved, UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.domain.unit import code_fault
from holdfast.operations.deliveries import BEHIND_ALL, END, START, DeliverySearchPage
from holdfast.web.api.parameters import CODE_CLASSES, UNANSWERED, parse_id
from holdfast.web.pages.backoffice.base import (
    PREFIX,
    StaffRequest,
    parse_cursor,
    parse_local_time,
    unit_path,
    with_query,
)
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pages.routes import Pages
from holdfast.web.pages.sessions import PAGE_HEADERS
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

DELIVERIES = f"{PREFIX}/deliveries"
DELIVERIES_A_PAGE = 50
ATTEMPTS_SHOWN = 50
"""With all that was sent and answered; one of them may take a hundred kilobytes."""
STATUS_CODES = (*CODE_CLASSES, UNANSWERED)
# Of the bar that shows where the time of an attempt went.
WIDTH = 600

_LEAST_WIDTH = 3.0
_FIRST_ID = UUID(int=0)
_MADE_BY_CURL = frozenset({"host", "content-length"})
_BYTES_A_LINE = 16
_TEXT_CONTROLS = "\t\n\r"
_DIRECTION_MARKS = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))

pages = Pages(StaffRequest)


class LogQuery(NamedTuple):
    """The query of the log, parsed."""

    endpoint_id: UUID | None
    filters: DeliveryFilter
    before: tuple[datetime, UUID]
    chosen: dict[str, str]
    """The filters that filter, as they stand in the query."""

    @property
    def is_newest(self) -> bool:
        """Whether it is the page that grows."""
        return self.before == BEHIND_ALL and self.filters.until == END

    def address(self, **more: str) -> str:
        return with_query(DELIVERIES, **{**self.chosen, **more})


@pages.get("/deliveries", Permission.SEE_WEBHOOKS)
async def list_deliveries(request: StaffRequest) -> Response:
    """A script asks for the rows alone, and gets none while they are the ones that it has."""
    query = _parse_query(request)
    search = request.services.delivery_search
    try:
        found = await search.page(query.endpoint_id, query.before, query.filters, DELIVERIES_A_PAGE)
    except UnknownEndpoint:
        found = DeliverySearchPage([], {}, None)
    version = _version(found.deliveries)
    if request.is_fragment and request.query.text("seen") == version:
        return _no_content()
    deliveries = found.deliveries[:DELIVERIES_A_PAGE]
    values = {
        "deliveries": deliveries,
        "labels": found.labels,
        "units": {delivery.id: _unit_path(delivery) for delivery in deliveries},
        "here": query.address(),
        "first": None if query.is_newest else query.address(),
        "next": _next_page(found, query),
        "searched_back_to": found.searched_back_to,
        "live": query.is_newest,
        "delivery_version": version,
    }
    if request.is_fragment:
        return await request.render("delivery_rows.html", **values)
    return await request.render(
        "deliveries.html",
        **values,
        chosen=query.chosen,
        choices=await search.labels(),
        events=SENT_EVENTS,
        codes=STATUS_CODES,
    )


@pages.get("/deliveries/{id}", Permission.SEE_WEBHOOKS)
async def show_delivery(request: StaffRequest, delivery_id: UUID) -> Response:
    """A script asks for the part that changes, while it may."""
    delivery, attempts = await request.services.deliveries.find(
        delivery_id, attempts_at_most=ATTEMPTS_SHOWN + 1
    )
    version = _version([delivery])
    if request.is_fragment and request.query.text("seen") == version:
        return _no_content()
    label = await request.services.delivery_search.label(delivery.endpoint_id)
    endpoint = None if label.is_removed else await _find_endpoint(request, delivery.endpoint_id)
    are_more, attempts = len(attempts) > ATTEMPTS_SHOWN, attempts[-ATTEMPTS_SHOWN:]
    return await request.render(
        "delivery_part.html" if request.is_fragment else "delivery.html",
        delivery=delivery,
        attempts=attempts,
        are_more=are_more,
        endpoint=endpoint,
        label=label,
        unit_address=_unit_path(delivery),
        steps=timeline(
            delivery,
            attempts,
            delivery.created_at if endpoint is None else endpoint.read_at,
            is_paused=endpoint is not None and endpoint.config.paused,
        ),
        timing_bar=timing_bar,
        format_request=format_request,
        format_curl=format_curl,
        format_response_head=format_response_head,
        format_response_body=format_response_body,
        is_live=delivery.status is DeliveryStatus.PENDING,
        delivery_version=version,
    )


@pages.get("/deliveries/{id}/result", Permission.SEE_WEBHOOKS)
async def show_result(request: StaffRequest, delivery_id: UUID) -> Response:
    """Show the result of a ping in a line; without a script, the whole delivery."""
    if not request.is_fragment:
        return request.redirect(f"{DELIVERIES}/{delivery_id}")
    delivery, _ = await request.services.deliveries.find(delivery_id, attempts_at_most=0)
    version = _version([delivery])
    if request.query.text("seen") == version:
        return _no_content()
    return await request.render("delivery_result.html", ping=delivery, delivery_version=version)


@pages.post("/deliveries/{id}/resend", Permission.MANAGE_WEBHOOKS, back_to="/deliveries/{id}")
async def resend(request: StaffRequest, delivery_id: UUID) -> Response:
    path = f"{DELIVERIES}/{delivery_id}"
    try:
        await request.services.deliveries.resend(delivery_id, request.author)
    except EndpointRemoved as error:
        return await request.redirect_with_notice(path, translate_error(error, request.language), "refused")
    notice = request._("It is being sent again, with the same id and the same bytes.")
    return await request.redirect_with_notice(path, notice)


def _parse_query(request: StaffRequest) -> LogQuery:
    """A wrong filter filters nothing."""
    names = ("endpoint", "event", "unit", "status", "code", "since", "until")
    sent = {name: request.query.text(name) for name in names}
    values: dict[str, Any] = {
        "endpoint": parse_id(sent["endpoint"]),
        "event": sent["event"] if sent["event"] in SENT_EVENTS else None,
        "unit": sent["unit"] if sent["unit"] and code_fault(sent["unit"], "/unit") is None else None,
        "status": DeliveryStatus(sent["status"]) if sent["status"] in tuple(DeliveryStatus) else None,
        "code": sent["code"] if sent["code"] in STATUS_CODES else None,
        "since": parse_local_time(request, sent["since"]),
        "until": parse_local_time(request, sent["until"]),
    }
    filters = DeliveryFilter(
        since=values["since"] or START,
        until=values["until"] or END,
        events=(values["event"],) if values["event"] else None,
        unit_code=values["unit"],
        code_class=CODE_CLASSES.get(sent["code"]),
        unanswered=True if sent["code"] == UNANSWERED else None,
        status=values["status"],
    )
    before = parse_cursor(request, TIME_AND_ID_CURSOR) or BEHIND_ALL
    chosen = {name: sent[name] for name in names if values[name] is not None}
    return LogQuery(values["endpoint"], filters, before, chosen)


def _next_page(found: DeliverySearchPage, query: LogQuery) -> str | None:
    """Return the address behind the last delivery that is shown, or where the search was given up."""
    if len(found.deliveries) > DELIVERIES_A_PAGE:
        last = found.deliveries[DELIVERIES_A_PAGE - 1]
        return query.address(cursor=creation_cursor(last))
    if found.searched_back_to is None:
        return None
    return query.address(cursor=TIME_AND_ID_CURSOR.encode((found.searched_back_to, _FIRST_ID)))


async def _find_endpoint(request: StaffRequest, endpoint_id: UUID) -> Endpoint | None:
    """Return None if the endpoint was removed a moment ago."""
    try:
        return await request.services.endpoints.find(endpoint_id)
    except UnknownEndpoint:
        return None


def _unit_path(delivery: Delivery) -> str | None:
    """Return the page of the delivery's unit; the body names its project."""
    unit = msgspec.json.decode(delivery.body)["data"]["unit"]
    return None if unit is None else unit_path(unit["projectSlug"], unit["code"])


def _version(deliveries: Iterable[Delivery]) -> str:
    """Return a text that differs as soon as something is to be seen that was not before."""
    seen = [(one.id, one.status, one.attempts, one.next_attempt_at, one.ended_at) for one in deliveries]
    return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:16]


def _no_content() -> Response:
    """The script keeps what it has."""
    return Response(status_code=204, headers=PAGE_HEADERS)


# The timeline of a delivery: committed, each attempt, its end or what comes next.


class Step(NamedTuple):
    kind: str
    """``committed``, ``attempt``, how it ended, or what it waits for: ``next``, ``due`` or ``paused``."""
    at: datetime | None
    gap_seconds: float | None = None
    """Since the step before ended."""
    attempt: Attempt | None = None

    @property
    def tone(self) -> str:
        if self.attempt is not None:
            return "bad" if self.attempt.cause else "good"
        return {"delivered": "good", "failed": "bad", "next": "busy", "due": "busy"}.get(self.kind, "")


def timeline(
    delivery: Delivery, attempts: Sequence[Attempt], now: datetime, *, is_paused: bool
) -> list[Step]:
    """``attempts``: the latest of them; what lies between the commit and those is left open."""
    steps = [Step("committed", delivery.created_at)]
    ended_at = delivery.created_at if attempts and attempts[0].number == 1 else None
    for attempt in attempts:
        gap = None if ended_at is None else max((attempt.started_at - ended_at).total_seconds(), 0.0)
        steps.append(Step("attempt", attempt.started_at, gap, attempt))
        ended_at = attempt.ended_at
    return [*steps, _last(delivery, now, is_paused)]


def _last(delivery: Delivery, now: datetime, is_paused: bool) -> Step:
    if delivery.status is not DeliveryStatus.PENDING:
        return Step(delivery.status.value, delivery.ended_at)
    if is_paused:
        return Step("paused", None)
    due_at = delivery.next_attempt_at
    return Step("next", due_at) if due_at is not None and due_at > now else Step("due", due_at)


# Where the time of an attempt went, as the parts of one bar.


class TimingPart(NamedTuple):
    name: str
    """``dns``, ``connect``, ``tls``, ``wait`` or ``rest``."""
    milliseconds: float
    x: float
    width: float


def timing_bar(attempt: Attempt) -> list[TimingPart]:
    """Return the parts in the order in which they happened; a reused connection has no first ones."""
    known = [
        ("dns", attempt.dns_ms),
        ("connect", attempt.connect_ms),
        ("tls", attempt.tls_ms),
        ("wait", attempt.first_byte_ms),
    ]
    parts = [(name, value) for name, value in known if value is not None and value >= 0]
    rest = attempt.duration_ms - sum(value for _, value in parts)
    return _drawn([*parts, ("rest", max(rest, 0.0))])


def _drawn(parts: list[tuple[str, float]]) -> list[TimingPart]:
    """Each wide enough to be seen, together as wide as the bar."""
    total = sum(value for _, value in parts) or 1.0
    widths = [max(WIDTH * value / total, _LEAST_WIDTH) for _, value in parts]
    scale = WIDTH / sum(widths)
    drawn, x = [], 0.0
    for (name, value), width in zip(parts, widths, strict=True):
        drawn.append(TimingPart(name, value, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return drawn


# Requests and responses as they were sent, for people and for a terminal.


class BodyText(NamedTuple):
    text: str
    is_dump: bool = False
    """Whether the bytes are no text, and shown as hexadecimal digits."""


def format_request(attempt: Attempt, body: str) -> str | None:
    """Return the request as it was sent; None: it was never written."""
    if not attempt.request_headers:
        return None
    return f"POST {_target(attempt.url)} HTTP/1.1\n{_lines(attempt.request_headers)}\n\n{body}"


def format_response_head(attempt: Attempt) -> str:
    return _lines(attempt.response_headers)


def format_response_body(attempt: Attempt) -> BodyText:
    text = _as_text(attempt.response_body)
    return BodyText(_dump(attempt.response_body), True) if text is None else BodyText(text)


def format_curl(attempt: Attempt, body: str) -> str | None:
    """Return a command that sends the same request again, signature and all."""
    if not attempt.request_headers:
        return None
    headers = [
        f"-H {shlex.quote(f'{name}: {value}')}"
        for name, value in attempt.request_headers
        if name.lower() not in _MADE_BY_CURL
    ]
    parts = [f"curl -X POST {shlex.quote(attempt.url)}", *headers, f"--data-raw {shlex.quote(body)}"]
    return " \\\n  ".join(parts)


def _target(url: str) -> str:
    try:
        return parse_endpoint_url(url).request_target
    except InvalidEndpointUrl:
        return url


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in headers)


def _as_text(body: bytes) -> str | None:
    """Return the body as text; None if it has characters that cannot be seen."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if any(map(_is_hidden, text)) else text


def _is_hidden(character: str) -> bool:
    """Return whether it is a control character, or changes the direction of what follows."""
    return character in _DIRECTION_MARKS or (category(character) == "Cc" and character not in _TEXT_CONTROLS)


def _dump(body: bytes) -> str:
    """Return lines of offset, bytes, and ASCII characters."""
    lines = []
    for start in range(0, len(body), _BYTES_A_LINE):
        part = body[start : start + _BYTES_A_LINE]
        seen = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:06x}  {part.hex(' '):<{_BYTES_A_LINE * 3 - 1}}  {seen}")
    return "\n".join(lines)
