"""The web application, put together."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.access import Scope
from holdfast.operations.feed import EventFeed
from holdfast.operations.health import Health
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.web.authentication import KeyGuard
from holdfast.web.front import Front
from holdfast.web.http.connection import Application
from holdfast.web.integration.routes import integration_places
from holdfast.web.pages import page_places
from holdfast.web.rate_limit import RateLimit
from holdfast.web.status_routes import status_places


class Parts(NamedTuple):
    """What the routes need of the rest of the house."""

    inventory: Inventory
    feed: EventFeed
    key_ring: KeyRing
    health: Health
    rate_limit: RateLimit


def web_app(parts: Parts) -> Application:
    guard = KeyGuard(parts.key_ring, Scope.INTEGRATION, parts.rate_limit)
    return Front(
        [
            *integration_places(parts.inventory, parts.feed, guard),
            *status_places(parts.health),
            *page_places(),
        ]
    )
