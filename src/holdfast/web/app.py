"""The web application, put together."""

from __future__ import annotations

from functools import cache, partial

from holdfast.web.authentication import KeyGuard
from holdfast.web.backoffice.audit import audit_places
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.keys import key_places
from holdfast.web.backoffice.pages.routes import backoffice_page_places
from holdfast.web.backoffice.routes import PREFIX, backoffice_places, webhook_places
from holdfast.web.backoffice.staff import staff_places
from holdfast.web.cors import Preflight, SharedWith
from holdfast.web.front import Front
from holdfast.web.http.connection import Application
from holdfast.web.integration.routes import integration_places
from holdfast.web.pages import page_places
from holdfast.web.parts import Parts
from holdfast.web.payments.routes import SignedByTheTill, payment_places
from holdfast.web.public_guard import PublicGuard
from holdfast.web.routing import Place
from holdfast.web.status_routes import status_places
from holdfast.web.storefront.pages.routes import storefront_page_places
from holdfast.web.storefront.routes import storefront_places


def web_app(parts: Parts) -> Application:
    origins = parts.cors_origins
    if not origins:
        return Front(web_places(parts))
    return SharedWith(Front([Preflight(origins), *web_places(parts)]), origins)


def web_places(parts: Parts) -> list[Place]:
    """The busiest first."""
    doors = cache(partial(KeyGuard, parts.key_ring, parts.rate_limit))
    inventory, selling, subscribing = parts.inventory, parts.selling, parts.subscribing
    origins = parts.cors_origins
    public = PublicGuard(parts.addresses, parts.public_rate_limit)
    desk = Desk(parts.signing_in, parts.announcing, parts.cookies, parts.time_zone)
    return [
        *integration_places(inventory, parts.feed, subscribing, doors),
        *storefront_places(inventory, selling, parts.addresses, public, origins),
        *payment_places(parts.paying, SignedByTheTill(parts.paying)),
        *webhook_places(subscribing, parts.deliveries, doors),
        *key_places(PREFIX, parts.keys, doors),
        *audit_places(PREFIX, parts.auditing, doors),
        *staff_places(PREFIX, parts.staffing, parts.public_url, doors),
        *backoffice_places(inventory, selling, parts.projects, parts.public_url, doors),
        *backoffice_page_places(desk, parts),
        *storefront_page_places(parts, public),
        *status_places(parts.health),
        *page_places(parts.tour),
    ]
