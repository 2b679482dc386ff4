"""Every operation of the API, by surface, and the routes for operators."""

from __future__ import annotations

from typing import Literal

from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from holdfast.domain.permissions import Permission
from holdfast.observability.metrics import CONTENT_TYPE, metrics_text
from holdfast.operations.documents import Document
from holdfast.operations.health import check_ready
from holdfast.web.api.backoffice import PREFIX, api_keys, audit, deliveries, endpoints, layouts, staff
from holdfast.web.api.backoffice import bookings as staff_bookings
from holdfast.web.api.backoffice import projects as staff_projects
from holdfast.web.api.backoffice import sellers as staff_sellers
from holdfast.web.api.backoffice import units as staff_units
from holdfast.web.api.integration import events, projects, units
from holdfast.web.api.payments import callback
from holdfast.web.api.routes import ApiRoutes, mounted
from holdfast.web.api.storefront import bookings as own_bookings
from holdfast.web.api.storefront import units as units_on_sale
from holdfast.web.auth import check_metrics_token, key_guard
from holdfast.web.errors import UnknownRoute
from holdfast.web.json import JsonResponse
from holdfast.web.pages.base import PublicPage
from holdfast.web.request import Request

INTEGRATION: tuple[ApiRoutes, ...] = (units.routes, projects.routes, events.routes)
STOREFRONT: tuple[ApiRoutes, ...] = (units_on_sale.routes, own_bookings.routes)
PAYMENTS: tuple[ApiRoutes, ...] = (callback.routes,)
BACKOFFICE: tuple[ApiRoutes, ...] = (
    staff_bookings.routes,
    staff_units.routes,
    staff_projects.routes,
    layouts.routes,
    staff_sellers.routes,
    endpoints.routes,
    deliveries.routes,
    api_keys.routes,
    staff.routes,
    audit.routes,
)
ALL: tuple[ApiRoutes, ...] = (*INTEGRATION, *STOREFRONT, *PAYMENTS, *BACKOFFICE)
"""Those that the OpenAPI document describes."""

TAGS = {
    "Units": "Scope `integration`: create, replace, change and read the units of a project.",
    "Projects": "Scope `integration`: what units belong to.",
    "Events": "Scope `integration`: everything that happened to units, for catching up after an outage.",
    "Storefront": "For buyers: the units on sale, and their own booking from the hold to the signature. "
    "No key needed; the token of a booking opens it.",
    "Payments": "For a payment system, which reports payments. No key needed: the requests are signed. "
    "Available if a payment page is set (`HOLDFAST_PAYMENT_URL`).",
    "Bookings": "Back office, scope `backoffice`: bookings, as staff and payment systems use them. These "
    "routes ignore conditions such as `If-Match`.",
    "Sales": "Back office, scope `backoffice`: what staff do to a unit, and what was done to it.",
    "Settings": "Back office, scope `backoffice`: projects, how long their holds and reservations last, and "
    "their layout. These routes ignore conditions such as `If-Match`.",
    "Webhooks": "Back office, scope `backoffice`: endpoints, which events are sent to, and the log of what "
    "was sent.",
    "Administration": "Back office, scope `admin`: keys, staff, and the audit trail.",
    "Operation": "For those who run Holdfast. No key needed.",
}
"""The groups of the OpenAPI document."""


def api_routes() -> list[BaseRoute]:
    """The busiest first: they are tried in this order."""
    return [
        *mounted(units.PREFIX, INTEGRATION, key_guard(Permission.INTEGRATE), units.UNIT_PATH),
        *mounted(units_on_sale.PREFIX, STOREFRONT),
        *mounted(callback.PREFIX, PAYMENTS),
        *mounted(PREFIX, (*BACKOFFICE, staff_units.undocumented_routes), key_guard(Permission.SEE_UNITS)),
    ]


# For operators: alive, ready, metrics. No key needed.


class HealthDocument(Document):
    status: Literal["alive", "ready"]


async def _alive(_: Request) -> Response:
    return JsonResponse(HealthDocument("alive"))


async def _ready(request: Request) -> Response:
    await check_ready(request.services.database)
    return JsonResponse(HealthDocument("ready"))


async def _metrics(request: Request) -> Response:
    check_metrics_token(request)
    return Response(metrics_text(), headers={"content-type": CONTENT_TYPE})


class MetricsPort(BaseRoute):
    """Where `/metrics` has a port of its own, hide everything else there, and `/metrics` on other ports."""

    def __init__(self, port: int) -> None:
        self._port = port

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        _, port = scope.get("server") or (None, None)
        is_hidden = (port == self._port) != (scope["path"] == "/metrics")
        return Match.FULL if is_hidden else Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise UnknownRoute


def status_routes() -> list[Route]:
    return [
        Route("/healthz", PublicPage("/healthz", _alive)),
        Route("/readyz", PublicPage("/readyz", _ready)),
        Route("/metrics", PublicPage("/metrics", _metrics)),
    ]
