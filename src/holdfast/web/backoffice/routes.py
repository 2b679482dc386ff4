"""The back office as JSON: which path does what."""

from __future__ import annotations

from holdfast.operations.inventory import Inventory
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling
from holdfast.web.backoffice.bookings import StaffBookingRoutes
from holdfast.web.backoffice.projects import StaffProjectRoutes
from holdfast.web.backoffice.units import StaffUnitRoutes
from holdfast.web.routing import Guard, Nowhere, Place, resource

PREFIX = "/v1/backoffice"


def backoffice_places(
    inventory: Inventory, selling: Selling, projects: Projects, guard: Guard, payments: Guard
) -> list[Place]:
    """``payments`` guards the one route that payment systems use too."""
    units = StaffUnitRoutes(selling, projects)
    bookings = StaffBookingRoutes(selling)
    own = StaffProjectRoutes(inventory, projects)
    project, booking = PREFIX + "/projects/{slug}", PREFIX + "/bookings/{reference}"
    return [
        resource(booking + "/confirm-deposit", payments, POST=bookings.confirm_deposit),
        resource(booking + "/cancel", guard, POST=bookings.cancel),
        resource(booking + "/close-sale", guard, POST=bookings.close_sale),
        resource(booking + "/extend", guard, POST=bookings.extend),
        resource(booking + "/mark-refunded", guard, POST=bookings.mark_refunded),
        resource(booking + "/reissue-link", guard, POST=bookings.reissue_link),
        resource(booking, guard, GET=bookings.get),
        resource(PREFIX + "/bookings", guard, GET=bookings.list),
        resource(project + "/units/{code}/history", guard, GET=units.history),
        resource(project + "/units/{code}/{action}", guard, POST=units.act),
        resource(project + "/layout", guard, GET=own.layout, PUT=own.arrange),
        resource(project, guard, GET=own.get, PATCH=own.patch),
        resource(PREFIX + "/projects", guard, GET=own.list, POST=own.add),
        Nowhere(PREFIX, guard),
    ]
