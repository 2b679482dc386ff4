"""The integration API: which path does what."""

from __future__ import annotations

from starlette.routing import Router

from holdfast.operations.feed import EventFeed
from holdfast.operations.inventory import Inventory
from holdfast.web.integration.bulk import BulkRoute
from holdfast.web.integration.events import EventRoutes
from holdfast.web.integration.projects import ProjectRoutes
from holdfast.web.integration.units import UnitRoutes
from holdfast.web.routing import no_route, resource


def integration_router(inventory: Inventory, feed: EventFeed, prefix: str) -> Router:
    units = UnitRoutes(inventory)
    return Router(
        routes=[
            resource(
                "/projects/{slug:segment}/units/{code:segment}",
                prefix,
                GET=units.get,
                PUT=units.put,
                PATCH=units.patch,
            ),
            resource("/projects/{slug:segment}/units", prefix, GET=units.list, PUT=BulkRoute(inventory).put),
            resource("/projects", prefix, GET=ProjectRoutes(inventory).list),
            resource("/events", prefix, GET=EventRoutes(feed).list),
        ],
        default=no_route,
        redirect_slashes=False,
    )
