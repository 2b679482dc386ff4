"""Which deliveries are asked for, read from a query and written into one. A wrong filter filters nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.delivery import Delivery, DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS, Endpoint
from holdfast.domain.errors import EndpointRemoved, UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.domain.unit import code_fault
from holdfast.operations.deliveries import (
    BEHIND_ALL,
    END,
    START,
    Attempt,
    Deliveries,
    DeliveryFilter,
    DeliverySearch,
    DeliverySearchPage,
)
from holdfast.operations.endpoints import Endpoints
from holdfast.web.api.parameters import CODE_CLASSES, UNANSWERED, id_in_path, parse_id
from holdfast.web.pages.backoffice import http_texts
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.backoffice.webhook_pages import DELIVERIES, unchanged, words_of
from holdfast.web.pages.forms import Form
from holdfast.web.pages.i18n import Language, translate_error
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

NAMES = ("endpoint", "event", "unit", "status", "code", "since", "until")
CODES = (*CODE_CLASSES, UNANSWERED)


class AskedFor(NamedTuple):
    endpoint_id: UUID | None
    filters: DeliveryFilter
    before: tuple[datetime, UUID]
    chosen: dict[str, str]
    """The filters that filter, as they stand in the query."""

    @property
    def is_newest(self) -> bool:
        """Whether it is the page that grows."""
        return self.before == BEHIND_ALL and self.filters.until == END

    def address(self, path: str, **more: str) -> str:
        query = urlencode({**self.chosen, **more})
        return f"{path}?{query}" if query else path


def asked_for(visit: Visit) -> AskedFor:
    sent = visit.query
    event, status, code = sent.text("event"), sent.text("status"), sent.text("code")
    since, until = moment_of(sent, "since", visit.language), moment_of(sent, "until", visit.language)
    unit = sent.text("unit")
    unit_code = None if not unit or code_fault(unit, "/unit") else unit
    filters = DeliveryFilter(
        since=since or START,
        until=until or END,
        events=(event,) if event in SENT_EVENTS else None,
        unit_code=unit_code,
        code_class=CODE_CLASSES.get(code),
        unanswered=True if code == UNANSWERED else None,
        status=DeliveryStatus(status) if status in tuple(DeliveryStatus) else None,
    )
    endpoint_id = parse_id(sent.text("endpoint"))
    valid = {
        "endpoint": endpoint_id is not None,
        "event": filters.events is not None,
        "unit": unit_code is not None,
        "status": filters.status is not None,
        "code": code in CODES,
        "since": since is not None,
        "until": until is not None,
    }
    chosen = {name: sent.text(name) for name in NAMES if valid[name]}
    return AskedFor(endpoint_id, filters, _cursor(sent), chosen)


def moment_of(sent: Form, name: str, language: Language) -> datetime | None:
    """What a field for a date and time says, in the person's time zone."""
    try:
        return language.at(sent.text(name)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _cursor(sent: Form) -> tuple[datetime, UUID]:
    try:
        return TIME_AND_ID_CURSOR.decode(sent.text("cursor"))
    except ValueError:
        return BEHIND_ALL


# The life of a delivery, step by step: committed, each attempt, its end or what comes next.


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

WIDTH = 600
_LEAST = 3.0


class Part(NamedTuple):
    name: str
    """``dns``, ``connect``, ``tls``, ``wait`` or ``rest``."""
    milliseconds: float
    x: float
    width: float


def timing_bar(attempt: Attempt) -> list[Part]:
    """In the order in which they happened; a connection that is used again has no beginning."""
    known = [
        ("dns", attempt.dns_ms),
        ("connect", attempt.connect_ms),
        ("tls", attempt.tls_ms),
        ("wait", attempt.first_byte_ms),
    ]
    parts = [(name, value) for name, value in known if value is not None and value >= 0]
    rest = attempt.duration_ms - sum(value for _, value in parts)
    return _drawn([*parts, ("rest", max(rest, 0.0))])


def _drawn(parts: list[tuple[str, float]]) -> list[Part]:
    """Each wide enough to be seen, together as wide as the bar."""
    total = sum(value for _, value in parts) or 1.0
    wanted = [max(WIDTH * value / total, _LEAST) for _, value in parts]
    scale = WIDTH / sum(wanted)
    drawn, x = [], 0.0
    for (name, value), width in zip(parts, wanted, strict=True):
        drawn.append(Part(name, value, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return drawn


# Deliveries: every one, and all that is known of one.

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
            id_in_path(visit.request), attempts_at_most=ATTEMPTS_SHOWN + 1
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
        delivery_id = id_in_path(visit.request)
        if not visit.is_fragment:
            return await visit.go(f"{DELIVERIES}/{delivery_id}")
        delivery, _ = await self._deliveries.find(delivery_id, attempts_at_most=0)
        if visit.query.text("seen") == _mark([delivery]):
            return unchanged()
        values = {"ping": delivery, "mark": _mark([delivery]), **words_of(visit)}
        return await visit.render("delivery_result.html", **values)

    async def resend(self, visit: Visit) -> Response:
        delivery_id = id_in_path(visit.request)
        path = f"{DELIVERIES}/{delivery_id}"
        try:
            await self._deliveries.resend(delivery_id, visit.author)
        except EndpointRemoved as refusal:
            return await visit.go(path, translate_error(refusal, visit.language), "refused")
        return await visit.go(path, visit._("It is being sent again, with the same id and the same bytes."))

    async def back(self, visit: Visit) -> Response:
        return await visit.go(f"{DELIVERIES}/{id_in_path(visit.request)}")

    async def _found(self, asked: AskedFor) -> DeliverySearchPage:
        try:
            return await self._search.page(asked.endpoint_id, asked.before, asked.filters, DELIVERIES_A_PAGE)
        except UnknownEndpoint:
            return DeliverySearchPage([], {}, None)

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


def _listed(found: DeliverySearchPage, asked: AskedFor) -> dict[str, Any]:
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


def _next(found: DeliverySearchPage, asked: AskedFor) -> str | None:
    """Behind the last that is shown, or where the search was given up."""
    if len(found.deliveries) > DELIVERIES_A_PAGE:
        last = found.deliveries[DELIVERIES_A_PAGE - 1]
        return asked.address(DELIVERIES, cursor=creation_cursor(last))
    if found.searched_back_to is None:
        return None
    return asked.address(DELIVERIES, cursor=TIME_AND_ID_CURSOR.encode((found.searched_back_to, _FIRST_ID)))


def _told(delivery: Delivery, found: Sequence[Attempt], endpoint: Endpoint | None) -> dict[str, Any]:
    attempts = found[-ATTEMPTS_SHOWN:]
    is_paused = endpoint is not None and endpoint.config.paused
    read_at = delivery.created_at if endpoint is None else endpoint.read_at
    return {
        "delivery": delivery,
        "attempts": attempts,
        "are_more": len(found) > len(attempts),
        "endpoint": endpoint,
        "unit_address": unit_address(delivery),
        "steps": timeline(delivery, attempts, read_at, is_paused=is_paused),
        "timing_bar": timing_bar,
        "wire": http_texts,
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
