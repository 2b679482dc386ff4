"""All that failed at an endpoint is sent again: counted first, then step by step."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.endpoint import SENT_EVENTS, Endpoint
from holdfast.domain.permissions import Permission
from holdfast.operations.deliveries import RESENT_AT_ONCE, Deliveries, FailedDeliveryFilter
from holdfast.operations.endpoints import Endpoints
from holdfast.web.api.parameters import id_in_path
from holdfast.web.fields import parse_time
from holdfast.web.http_errors import MalformedBody
from holdfast.web.json import time_text
from holdfast.web.pages.backoffice.base import Desk, Visit
from holdfast.web.pages.backoffice.deliveries import moment_of
from holdfast.web.pages.backoffice.endpoints import address_of
from holdfast.web.pages.backoffice.webhook_pages import WEBHOOKS, go_from_part
from holdfast.web.pages.forms import Form

LOOKED_BACK = timedelta(days=1)
"""What the form offers at first."""
_LARGEST = 12


class Recovery(NamedTuple):
    """One that is under way."""

    selection: FailedDeliveryFilter
    total: int
    resent: int

    @property
    def fields(self) -> dict[str, str]:
        """What its next step has to know."""
        selection = self.selection
        return {
            "since": time_text(selection.since),
            "until": time_text(selection.until) if selection.until else "",
            "event": selection.events[0] if selection.events else "",
            "total": str(self.total),
            "resent": str(self.resent),
        }


class RecoveryPages:
    def __init__(self, subscribing: Endpoints, deliveries: Deliveries) -> None:
        self._subscribing = subscribing
        self._deliveries = deliveries

    async def ask(self, visit: Visit) -> Response:
        """The form; with a time in the query also how many there are."""
        endpoint = await self._subscribing.find(id_in_path(visit.request))
        sent = visit.query
        if not sent.has("since"):
            return await self._form(visit, endpoint, visit.language.local(endpoint.read_at - LOOKED_BACK))
        since = moment_of(sent, "since", visit.language)
        if since is None:
            return await self._form(visit, endpoint, sent.text("since"), visit._("Say since when."))
        selection = await self._deliveries.bounded(FailedDeliveryFilter(since, events=_events(sent)))
        total = await self._deliveries.count_failed(endpoint.id, selection)
        return await self._form(visit, endpoint, sent.text("since"), recovery=Recovery(selection, total, 0))

    async def act(self, visit: Visit) -> Response:
        endpoint = await self._subscribing.find(id_in_path(visit.request))
        under_way = _under_way(visit.form)
        count = await self._deliveries.recover_some(
            endpoint.id, under_way.selection, visit.author, under_way.resent
        )
        under_way = under_way._replace(resent=under_way.resent + count)
        if count < RESENT_AT_ONCE:
            return await go_from_part(visit, address_of(endpoint.id), _done(visit, under_way.resent))
        template = "endpoint_recovering_part.html" if visit.is_fragment else "endpoint_recovering.html"
        return await visit.render(template, endpoint=endpoint, recovery=under_way)

    async def _form(
        self,
        visit: Visit,
        endpoint: Endpoint,
        since: str,
        fault: str | None = None,
        recovery: Recovery | None = None,
    ) -> Response:
        return await visit.render(
            "endpoint_recover.html",
            422 if fault else 200,
            endpoint=endpoint,
            since=since,
            event=visit.query.text("event"),
            events=SENT_EVENTS,
            fault=fault,
            recovery=recovery,
        )


def recovery_page_routes(desk: Desk, subscribing: Endpoints, deliveries: Deliveries) -> list[Route]:
    pages = RecoveryPages(subscribing, deliveries)
    path = f"{WEBHOOKS}/{{id}}/recover"
    return [desk.page(path, Permission.MANAGE_WEBHOOKS, GET=pages.ask, POST=pages.act)]


def _events(sent: Form) -> tuple[str, ...] | None:
    event = sent.text("event")
    return (event,) if event in SENT_EVENTS else None


def _under_way(form: Form) -> Recovery:
    since, until = parse_time(form.text("since")), parse_time(form.text("until"))
    if since is None or until is None:
        raise MalformedBody("The form does not say which deliveries are meant.")
    selection = FailedDeliveryFilter(since, until, _events(form))
    return Recovery(selection, _number(form, "total"), _number(form, "resent"))


def _number(form: Form, name: str) -> int:
    text = form.text(name)
    if not (text.isascii() and text.isdigit() and len(text) <= _LARGEST):
        raise MalformedBody("The form does not say how many there are.")
    return int(text)


def _done(visit: Visit, count: int) -> str:
    if not count:
        return visit._("There was nothing to send again.")
    return visit.ngettext(
        "%(num)s failed delivery is being sent again.",
        "%(num)s failed deliveries are being sent again.",
        count,
    )
