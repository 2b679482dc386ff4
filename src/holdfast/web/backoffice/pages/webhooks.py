"""All pages about webhooks: endpoints, deliveries, and what failed sent again."""

from __future__ import annotations

from starlette.routing import Route

from holdfast.operations.deliveries import Deliveries, DeliverySearch
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.units import Units
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.deliveries import delivery_page_routes
from holdfast.web.backoffice.pages.endpoints import endpoint_page_routes
from holdfast.web.backoffice.pages.recovering import recovery_page_routes


def webhook_page_routes(
    desk: Desk,
    subscribing: Endpoints,
    deliveries: Deliveries,
    search: DeliverySearch,
    inventory: Units,
) -> list[Route]:
    return [
        *endpoint_page_routes(desk, subscribing, deliveries, search, inventory),
        *recovery_page_routes(desk, subscribing, deliveries),
        *delivery_page_routes(desk, subscribing, deliveries, search),
    ]
