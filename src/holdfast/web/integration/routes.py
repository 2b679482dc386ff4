"""The integration API: which path does what."""

from __future__ import annotations

from holdfast.domain.permissions import Permission
from holdfast.operations.feed import EventFeed
from holdfast.operations.inventory import Inventory
from holdfast.operations.subscribing import Subscribing
from holdfast.web.integration.bulk import BulkRoute
from holdfast.web.integration.events import EventRoutes
from holdfast.web.integration.projects import ProjectRoutes
from holdfast.web.integration.units import UnitRoutes
from holdfast.web.routing import Doors, Nowhere, Place, behind, guarded

PREFIX = "/v1/integration"


def integration_places(
    inventory: Inventory, feed: EventFeed, subscribing: Subscribing, doors: Doors
) -> list[Place]:
    """The busiest first: they are tried in this order."""
    units, bulk = UnitRoutes(inventory), BulkRoute(inventory)
    project = PREFIX + "/projects/{slug}"
    own = behind(doors, Permission.INTEGRATE)
    return [
        guarded(project + "/units/{code}", GET=own(units.get), PUT=own(units.put), PATCH=own(units.patch)),
        guarded(project + "/units", GET=own(units.list), PUT=own(bulk.put)),
        guarded(PREFIX + "/projects", GET=own(ProjectRoutes(inventory).list)),
        guarded(PREFIX + "/events", GET=own(EventRoutes(feed, subscribing).list)),
        Nowhere(PREFIX, doors(Permission.INTEGRATE)),
    ]
