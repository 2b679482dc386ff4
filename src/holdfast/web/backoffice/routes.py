"""The back office as JSON: which path does what."""

from __future__ import annotations

from holdfast.domain.permissions import Permission
from holdfast.domain.status import Action
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.inventory import Inventory
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling
from holdfast.operations.subscribing import Subscribing
from holdfast.web.backoffice.bookings import StaffBookingRoutes
from holdfast.web.backoffice.deliveries import DeliveryRoutes
from holdfast.web.backoffice.endpoints import EndpointRoutes
from holdfast.web.backoffice.projects import StaffProjectRoutes
from holdfast.web.backoffice.units import StaffUnitRoutes
from holdfast.web.routing import Doors, Nowhere, Place, behind, guarded

PREFIX = "/v1/backoffice"


def webhook_places(subscribing: Subscribing, deliveries: Deliveries, doors: Doors) -> list[Place]:
    """They stand before those of ``backoffice_places``, which end with what is nowhere."""
    own, log = EndpointRoutes(subscribing), DeliveryRoutes(subscribing, deliveries)
    see, manage = behind(doors, Permission.SEE_WEBHOOKS), behind(doors, Permission.MANAGE_WEBHOOKS)
    endpoint, delivery = PREFIX + "/endpoints/{id}", PREFIX + "/deliveries/{id}"
    return [
        guarded(PREFIX + "/endpoints", GET=see(own.list), POST=manage(own.add)),
        guarded(endpoint, GET=see(own.get), PATCH=manage(own.change), DELETE=manage(own.remove)),
        guarded(endpoint + "/rotate-secret", POST=manage(own.rotate)),
        guarded(endpoint + "/ping", POST=manage(own.ping)),
        guarded(endpoint + "/recover", POST=manage(log.recover)),
        guarded(endpoint + "/reconciliation", GET=see(log.reconcile)),
        guarded(PREFIX + "/deliveries", GET=see(log.list)),
        guarded(delivery, GET=see(log.get)),
        guarded(delivery + "/resend", POST=manage(log.resend)),
    ]


def backoffice_places(
    inventory: Inventory, selling: Selling, projects: Projects, public_url: str, doors: Doors
) -> list[Place]:
    return [
        *_booking_places(StaffBookingRoutes(inventory, selling, public_url), doors),
        *_unit_places(StaffUnitRoutes(selling, projects), doors),
        *_project_places(StaffProjectRoutes(inventory, projects), doors),
        Nowhere(PREFIX, doors(Permission.SEE_UNITS)),
    ]


def _booking_places(bookings: StaffBookingRoutes, doors: Doors) -> list[Place]:
    see, sell = behind(doors, Permission.SEE_BOOKINGS), behind(doors, Permission.SELL)
    confirm = behind(doors, Permission.CONFIRM_DEPOSIT)
    booking = PREFIX + "/bookings/{reference}"
    return [
        guarded(booking + "/confirm-deposit", POST=confirm(bookings.confirm_deposit)),
        guarded(booking + "/cancel", POST=sell(bookings.cancel)),
        guarded(booking + "/close-sale", POST=sell(bookings.close_sale)),
        guarded(booking + "/extend", POST=sell(bookings.extend)),
        guarded(booking + "/mark-refunded", POST=sell(bookings.mark_refunded)),
        guarded(booking + "/reissue-link", POST=sell(bookings.reissue_link)),
        guarded(booking + "/erase-buyer", POST=sell(bookings.erase_buyer)),
        guarded(booking, GET=see(bookings.get)),
        guarded(PREFIX + "/bookings", GET=see(bookings.list)),
    ]


def _unit_places(units: StaffUnitRoutes, doors: Doors) -> list[Place]:
    """One for each action of the status table; those of the clock are there, and refused."""
    all_units = PREFIX + "/projects/{slug}/units"
    unit = all_units + "/{code}"
    see, sell = behind(doors, Permission.SEE_UNITS), behind(doors, Permission.SELL)
    ways = dict.fromkeys(Action, sell) | {Action.REVOKE_SALE: behind(doors, Permission.REVOKE_SALE)}
    return [
        guarded(all_units, GET=see(units.list)),
        guarded(unit, GET=see(units.get)),
        guarded(unit + "/history", GET=see(units.history)),
        *(guarded(f"{unit}/{action}", POST=way(units.acting(action))) for action, way in ways.items()),
    ]


def _project_places(own: StaffProjectRoutes, doors: Doors) -> list[Place]:
    see, sell = behind(doors, Permission.SEE_UNITS), behind(doors, Permission.SELL)
    project = PREFIX + "/projects/{slug}"
    return [
        guarded(project + "/layout", GET=see(own.layout), PUT=sell(own.arrange)),
        guarded(project, GET=see(own.get), PATCH=sell(own.patch)),
        guarded(PREFIX + "/projects", GET=see(own.list), POST=sell(own.add)),
    ]
