"""All pages about webhooks: endpoints, deliveries, and what failed sent again."""

from __future__ import annotations

from holdfast.operations.deliveries import Deliveries
from holdfast.operations.delivery_search import DeliverySearch
from holdfast.operations.inventory import Inventory
from holdfast.operations.subscribing import Subscribing
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.deliveries import delivery_page_places
from holdfast.web.backoffice.pages.endpoints import endpoint_page_places
from holdfast.web.backoffice.pages.recovering import recovery_page_places
from holdfast.web.routing import Place


def webhook_page_places(
    desk: Desk,
    subscribing: Subscribing,
    deliveries: Deliveries,
    search: DeliverySearch,
    inventory: Inventory,
) -> list[Place]:
    return [
        *endpoint_page_places(desk, subscribing, deliveries, search, inventory),
        *recovery_page_places(desk, subscribing, deliveries),
        *delivery_page_places(desk, subscribing, deliveries, search),
    ]
