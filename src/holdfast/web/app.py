"""The web application, put together."""

from __future__ import annotations

from typing import NamedTuple

from starlette.routing import Mount, Router
from starlette.types import ASGIApp

from holdfast.domain.access import Scope
from holdfast.operations.feed import EventFeed
from holdfast.operations.health import Health
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.web.authentication import KeyGuard
from holdfast.web.front import Front
from holdfast.web.integration.routes import integration_routes
from holdfast.web.pages import PageFiles, page_routes
from holdfast.web.rate_limit import RateLimit
from holdfast.web.routing import no_route
from holdfast.web.status_routes import status_routes


class Parts(NamedTuple):
    """What the routes need of the rest of the house."""

    inventory: Inventory
    feed: EventFeed
    key_ring: KeyRing
    health: Health
    rate_limit: RateLimit


def web_app(parts: Parts) -> ASGIApp:
    guard = KeyGuard(parts.key_ring, Scope.INTEGRATION, parts.rate_limit)
    routes = [
        *integration_routes(parts.inventory, parts.feed, guard),
        *status_routes(parts.health),
        *page_routes(),
        Mount("/static", app=PageFiles()),
    ]
    return Front(Router(routes, default=no_route, redirect_slashes=False))
