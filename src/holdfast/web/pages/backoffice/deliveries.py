"""Webhook deliveries: the searchable log, and one delivery with its attempts."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.domain.delivery import Attempt, Delivery, DeliveryFilter, DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS, Endpoint
from holdfast.domain.endpoint_url import InvalidEndpointUrl, parse_endpoint_url
from holdfast.domain.errors import UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.domain.unit import code_fault
from holdfast.operations.deliveries import END, NO_CURSOR, START, DeliverySearchPage
from holdfast.web.api.parameters import CODE_CLASSES, UNANSWERED, parse_id
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, unit_path, with_query
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

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
# Control characters but for tabs and ends of lines, and marks that change the direction of what follows.
_HIDDEN = re.compile(r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F\u202A-\u202E\u2066-\u2069]")


@pages.get("/deliveries", Permission.SEE_WEBHOOKS)
async def list_deliveries(request: StaffRequest) -> Response:
    """A script asks for the rows alone, and gets none while they are the ones that it has."""
    search = request.services.delivery_search
    endpoint_id, filters, chosen = _parse_filters(request)
    address = partial(with_query, DELIVERIES, **chosen)
    before = request.parse_cursor(TIME_AND_ID_CURSOR) or NO_CURSOR
    try:
        found = await search.page(endpoint_id, before, filters, DELIVERIES_A_PAGE)
    except UnknownEndpoint:
        found = DeliverySearchPage([], {}, None)
    version = _version(found.deliveries)
    if request.is_fragment and request.query.text("seen") == version:
        return request.no_content()
    deliveries, next_cursor = paginate(found.deliveries, DELIVERIES_A_PAGE, creation_cursor)
    if next_cursor is None and found.searched_back_to is not None:
        next_cursor = TIME_AND_ID_CURSOR.encode((found.searched_back_to, _FIRST_ID))
    # The page that grows.
    is_newest = before == NO_CURSOR and filters.until == END
    return await request.render(
        "delivery_rows.html" if request.is_fragment else "deliveries.html",
        deliveries=deliveries,
        labels=found.labels,
        find_unit_path=_find_unit_path,
        here=address(),
        first=None if is_newest else address(),
        next=next_cursor and address(cursor=next_cursor),
        searched_back_to=found.searched_back_to,
        live=is_newest,
        delivery_version=version,
        chosen=chosen,
        choices=[] if request.is_fragment else await search.labels(),
        events=SENT_EVENTS,
        codes=STATUS_CODES,
    )


@pages.get("/deliveries/{id}", Permission.SEE_WEBHOOKS)
async def show_delivery(request: StaffRequest, delivery_id: UUID) -> Response:
    delivery, attempts = await request.services.deliveries.find(
        delivery_id, attempts_at_most=ATTEMPTS_SHOWN + 1
    )
    version = _version([delivery])
    if request.is_fragment and request.query.text("seen") == version:
        return request.no_content()
    label = await request.services.delivery_search.label(delivery.endpoint_id)
    endpoint = await _find_endpoint(request, delivery)
    now = delivery.created_at if endpoint is None else endpoint.read_at
    is_paused = endpoint is not None and endpoint.config.paused
    are_more, attempts = len(attempts) > ATTEMPTS_SHOWN, attempts[-ATTEMPTS_SHOWN:]
    return await request.render(
        "delivery_part.html" if request.is_fragment else "delivery.html",
        delivery=delivery,
        indented_body=msgspec.json.format(delivery.body),
        attempts=attempts,
        are_more=are_more,
        endpoint=endpoint,
        label=label,
        unit_address=_find_unit_path(delivery),
        steps=timeline(delivery, attempts, now, is_paused=is_paused),
        timing_bar=timing_bar,
        format_request=format_request,
        format_curl=format_curl,
        format_headers=format_headers,
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
    endpoint = await _find_endpoint(request, delivery)
    version = _version([delivery]) + ("-failing" if endpoint and endpoint.failure else "")
    if request.query.text("seen") == version:
        return request.no_content()
    return await request.render(
        "delivery_result.html", ping=delivery, delivery_version=version, endpoint=endpoint
    )


@pages.post("/deliveries/{id}/resend", Permission.MANAGE_WEBHOOKS, back_to="/deliveries/{id}")
async def resend(request: StaffRequest, delivery_id: UUID) -> Response:
    await request.services.deliveries.resend(delivery_id, request.author)
    notice = request._("The delivery is being resent with the same id and body.")
    return await request.redirect_with_notice(f"{DELIVERIES}/{delivery_id}", notice)


def _parse_filters(request: StaffRequest) -> tuple[UUID | None, DeliveryFilter, dict[str, str]]:
    """Return the endpoint, the other filters, and all as the query has them; a wrong one filters nothing."""
    names = ("endpoint", "event", "unit", "status", "code", "since", "until")
    sent = {name: request.query.text(name) for name in names}
    values: dict[str, Any] = {
        "endpoint": parse_id(sent["endpoint"]),
        "event": sent["event"] if sent["event"] in SENT_EVENTS else None,
        "unit": sent["unit"] if sent["unit"] and code_fault(sent["unit"], "/unit") is None else None,
        "status": DeliveryStatus(sent["status"]) if sent["status"] in tuple(DeliveryStatus) else None,
        "code": sent["code"] if sent["code"] in STATUS_CODES else None,
        "since": request.parse_local_time(sent["since"]),
        "until": request.parse_local_time(sent["until"]),
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
    chosen = {name: sent[name] for name in names if values[name] is not None}
    return values["endpoint"], filters, chosen


async def _find_endpoint(request: StaffRequest, delivery: Delivery) -> Endpoint | None:
    """Return the endpoint of a delivery; None if it was removed."""
    with suppress(UnknownEndpoint):
        return await request.services.endpoints.find(delivery.endpoint_id)
    return None


def _find_unit_path(delivery: Delivery) -> str | None:
    """Return the page of the delivery's unit; the body names its project."""
    unit = msgspec.json.decode(delivery.body)["data"]["unit"]
    return None if unit is None else unit_path(unit["projectSlug"], unit["code"])


def _version(deliveries: Iterable[Delivery]) -> str:
    """Return a text that differs as soon as something is to be seen that was not before."""
    seen = [(one.id, one.status, one.attempts, one.next_attempt_at, one.ended_at) for one in deliveries]
    return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:16]


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
    if delivery.status is not DeliveryStatus.PENDING:
        return [*steps, Step(delivery.status.value, delivery.ended_at)]
    if is_paused:
        return [*steps, Step("paused", None)]
    due_at = delivery.next_attempt_at
    return [*steps, Step("next" if due_at is not None and due_at > now else "due", due_at)]


class TimingPart(NamedTuple):
    name: str
    """``dns``, ``connect``, ``tls``, ``wait`` or ``rest``."""
    milliseconds: float
    x: float
    width: float


def timing_bar(attempt: Attempt) -> list[TimingPart]:
    """Return the parts in order, each wide enough to be seen; a reused connection has no first ones."""
    known = {
        "dns": attempt.dns_ms,
        "connect": attempt.connect_ms,
        "tls": attempt.tls_ms,
        "wait": attempt.first_byte_ms,
    }
    parts = {name: value for name, value in known.items() if value is not None and value >= 0}
    parts["rest"] = max(attempt.duration_ms - sum(parts.values()), 0.0)
    total = sum(parts.values()) or 1.0
    widths = [max(WIDTH * value / total, _LEAST_WIDTH) for value in parts.values()]
    scale, x = WIDTH / sum(widths), 0.0
    bar = []
    for (name, value), width in zip(parts.items(), widths, strict=True):
        bar.append(TimingPart(name, value, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return bar


# Requests and responses as they were sent, for people and for a terminal.


class BodyText(NamedTuple):
    text: str
    is_dump: bool = False
    """Whether the bytes are no text, and shown as hexadecimal digits."""


def format_request(attempt: Attempt, body: str) -> str | None:
    """Return the request as it was sent; None: it was never written."""
    if not attempt.request_headers:
        return None
    try:
        target = parse_endpoint_url(attempt.url).request_target
    except InvalidEndpointUrl:
        target = attempt.url
    return f"POST {target} HTTP/1.1\n{format_headers(attempt.request_headers)}\n\n{body}"


def format_headers(headers: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in headers)


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


def format_response_body(attempt: Attempt) -> BodyText:
    """Return the body as text, or as lines of offset, bytes and ASCII if it has hidden characters."""
    body = attempt.response_body
    try:
        text = body.decode()
        if not _HIDDEN.search(text):
            return BodyText(text)
    except UnicodeDecodeError:
        pass
    lines = []
    for start in range(0, len(body), _BYTES_A_LINE):
        part = body[start : start + _BYTES_A_LINE]
        ascii_text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:06x}  {part.hex(' '):<{_BYTES_A_LINE * 3 - 1}}  {ascii_text}")
    return BodyText("\n".join(lines), True)
