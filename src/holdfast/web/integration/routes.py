"""The integration API: which path does what."""

from __future__ import annotations

from holdfast.operations.feed import EventFeed
from holdfast.operations.inventory import Inventory
from holdfast.web.integration.bulk import BulkRoute
from holdfast.web.integration.events import EventRoutes
from holdfast.web.integration.projects import ProjectRoutes
from holdfast.web.integration.units import UnitRoutes
from holdfast.web.routing import Guard, Nowhere, Place, resource

PREFIX = "/v1/integration"


def integration_places(inventory: Inventory, feed: EventFeed, guard: Guard) -> list[Place]:
    """The busiest first: they are tried in this order."""
    units = UnitRoutes(inventory)
    project = PREFIX + "/projects/{slug}"
    return [
        resource(project + "/units/{code}", guard, GET=units.get, PUT=units.put, PATCH=units.patch),
        resource(project + "/units", guard, GET=units.list, PUT=BulkRoute(inventory).put),
        resource(PREFIX + "/projects", guard, GET=ProjectRoutes(inventory).list),
        resource(PREFIX + "/events", guard, GET=EventRoutes(feed).list),
        Nowhere(PREFIX, guard),
    ]
