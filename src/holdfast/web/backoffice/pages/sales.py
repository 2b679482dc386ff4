"""The pages of selling: units and bookings."""

from __future__ import annotations

from starlette.routing import Route

from holdfast.domain.booking_steps import BookingAction
from holdfast.domain.permissions import Permission
from holdfast.domain.status import TRANSITIONS, Caller
from holdfast.operations.bookings import Bookings
from holdfast.operations.units import Units
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages import booking_views, unit_views
from holdfast.web.backoffice.pages.booking import BookingPages
from holdfast.web.backoffice.pages.bookings import BOOKINGS, BookingListPages
from holdfast.web.backoffice.pages.unit import UnitPages
from holdfast.web.backoffice.visits import PREFIX


def sales_routes(desk: Desk, inventory: Units, selling: Bookings, public_url: str) -> list[Route]:
    return [*_unit_routes(desk, selling, public_url), *_booking_routes(desk, inventory, selling, public_url)]


def _unit_routes(desk: Desk, selling: Bookings, public_url: str) -> list[Route]:
    pages = UnitPages(selling, public_url)
    unit = PREFIX + "/projects/{slug}/units/{code}"
    of_staff = dict.fromkeys(row.action for row in TRANSITIONS if Caller.ADMIN in row.callers)
    return [
        desk.page(unit, Permission.SEE_UNITS, GET=pages.show),
        desk.page(f"{unit}/panel", Permission.SEE_UNITS, GET=pages.panel),
        desk.page(f"{unit}/history", Permission.SEE_UNITS, GET=pages.history),
        *(
            desk.page(
                f"{unit}/{action}",
                Permission.SEE_UNITS,
                GET=pages.back,
                POST=(unit_views.permission_for(action), pages.acting(action)),
            )
            for action in of_staff
        ),
    ]


def _booking_routes(desk: Desk, inventory: Units, selling: Bookings, public_url: str) -> list[Route]:
    pages = BookingPages(selling, public_url)
    booking = BOOKINGS + "/{reference}"
    return [
        desk.page(BOOKINGS, Permission.SEE_BOOKINGS, GET=BookingListPages(inventory, selling).show),
        desk.page(booking, Permission.SEE_BOOKINGS, GET=pages.show),
        *(
            desk.page(
                f"{booking}/{action}",
                Permission.SEE_BOOKINGS,
                GET=pages.back,
                POST=(
                    booking_views.permission_for(action),
                    pages.reissue_link if action is BookingAction.REISSUE_LINK else pages.acting(action),
                ),
            )
            for action in BookingAction
        ),
    ]
