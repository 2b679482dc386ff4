"""The web application, put together."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.access import Scope
from holdfast.operations.feed import EventFeed
from holdfast.operations.health import Health
from holdfast.operations.inventory import Inventory
from holdfast.operations.key_ring import KeyRing
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling
from holdfast.web.authentication import KeyGuard
from holdfast.web.backoffice.routes import Guards, backoffice_places
from holdfast.web.client_address import ClientAddresses
from holdfast.web.front import Front
from holdfast.web.http.connection import Application
from holdfast.web.integration.routes import integration_places
from holdfast.web.pages import page_places
from holdfast.web.public_guard import PublicGuard
from holdfast.web.rate_limit import RateLimit
from holdfast.web.status_routes import status_places
from holdfast.web.storefront.routes import storefront_places


class Parts(NamedTuple):
    """What the routes need of the rest of the house."""

    inventory: Inventory
    selling: Selling
    projects: Projects
    feed: EventFeed
    key_ring: KeyRing
    health: Health
    addresses: ClientAddresses
    rate_limit: RateLimit
    public_rate_limit: RateLimit


def web_app(parts: Parts) -> Application:
    def guard(*scopes: Scope) -> KeyGuard:
        return KeyGuard(parts.key_ring, parts.rate_limit, *scopes)

    inventory, selling = parts.inventory, parts.selling
    public = PublicGuard(parts.addresses, parts.public_rate_limit)
    desks = Guards(
        staff=guard(Scope.BACKOFFICE),
        payments=guard(Scope.PAYMENTS, Scope.BACKOFFICE),
        admin=guard(Scope.ADMIN),
    )
    return Front(
        [
            *integration_places(inventory, parts.feed, guard(Scope.INTEGRATION)),
            *storefront_places(inventory, selling, parts.addresses, public),
            *backoffice_places(inventory, selling, parts.projects, desks),
            *status_places(parts.health),
            *page_places(),
        ]
    )
