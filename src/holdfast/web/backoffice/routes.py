"""The back office as JSON: which path does what."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.status import Action
from holdfast.operations.inventory import Inventory
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling
from holdfast.web.backoffice.bookings import StaffBookingRoutes
from holdfast.web.backoffice.projects import StaffProjectRoutes
from holdfast.web.backoffice.units import StaffUnitRoutes
from holdfast.web.routing import Guard, Nowhere, Place, resource

PREFIX = "/v1/backoffice"


class Guards(NamedTuple):
    staff: Guard
    payments: Guard
    """Of the one route that payment systems use too."""
    admin: Guard


def backoffice_places(
    inventory: Inventory, selling: Selling, projects: Projects, guards: Guards
) -> list[Place]:
    guard = guards.staff
    units = StaffUnitRoutes(selling, projects)
    bookings = StaffBookingRoutes(inventory, selling)
    own = StaffProjectRoutes(inventory, projects)
    project, booking = PREFIX + "/projects/{slug}", PREFIX + "/bookings/{reference}"
    return [
        resource(booking + "/confirm-deposit", guards.payments, POST=bookings.confirm_deposit),
        resource(booking + "/cancel", guard, POST=bookings.cancel),
        resource(booking + "/close-sale", guard, POST=bookings.close_sale),
        resource(booking + "/extend", guard, POST=bookings.extend),
        resource(booking + "/mark-refunded", guard, POST=bookings.mark_refunded),
        resource(booking + "/reissue-link", guard, POST=bookings.reissue_link),
        resource(booking, guard, GET=bookings.get),
        resource(PREFIX + "/bookings", guard, GET=bookings.list),
        resource(project + "/units/{code}/history", guard, GET=units.history),
        *_action_places(project + "/units/{code}", units, guards),
        resource(project + "/layout", guard, GET=own.layout, PUT=own.arrange),
        resource(project, guard, GET=own.get, PATCH=own.patch),
        resource(PREFIX + "/projects", guard, GET=own.list, POST=own.add),
        Nowhere(PREFIX, guard),
    ]


def _action_places(unit: str, units: StaffUnitRoutes, guards: Guards) -> list[Place]:
    """One for each action of the status table; those of the clock are there, and refused."""
    return [
        resource(
            f"{unit}/{action}",
            guards.admin if action is Action.REVOKE_SALE else guards.staff,
            POST=units.acting(action),
        )
        for action in Action
    ]
