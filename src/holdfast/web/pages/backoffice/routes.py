"""Keys, the audit trail, projects and their settings; and a page from which all settings are reached."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.holds import HoldPeriods
from holdfast.domain.permissions import Permission
from holdfast.domain.status import TRANSITIONS, Caller
from holdfast.operations.api_keys import ApiKeys
from holdfast.operations.audit import Audit
from holdfast.operations.bookings import Bookings
from holdfast.operations.deliveries import Deliveries, DeliverySearch, FailureNotices
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.projects import Projects
from holdfast.operations.units import Units
from holdfast.web.context import WebContext
from holdfast.web.http_errors import MalformedBody
from holdfast.web.pages.backoffice import sale_views
from holdfast.web.pages.backoffice.account import account_routes
from holdfast.web.pages.backoffice.api_keys import key_page_routes
from holdfast.web.pages.backoffice.audit import audit_page_routes
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Elsewhere, Visit, local_path
from holdfast.web.pages.backoffice.boards import board_routes
from holdfast.web.pages.backoffice.bookings import BOOKINGS, BookingListPages, BookingPages
from holdfast.web.pages.backoffice.deliveries import delivery_page_routes
from holdfast.web.pages.backoffice.documents import paper_routes
from holdfast.web.pages.backoffice.endpoints import endpoint_page_routes
from holdfast.web.pages.backoffice.imports import import_routes
from holdfast.web.pages.backoffice.layouts import layout_routes
from holdfast.web.pages.backoffice.login import sign_in_routes
from holdfast.web.pages.backoffice.projects import project_list_routes, project_setting_routes
from holdfast.web.pages.backoffice.recovery import recovery_page_routes
from holdfast.web.pages.backoffice.reports import figure_routes
from holdfast.web.pages.backoffice.staff import staff_page_routes
from holdfast.web.pages.backoffice.units import UnitPages
from holdfast.web.pages.base import mounted_pages


def administration_routes(
    desk: Desk,
    inventory: Units,
    projects: Projects,
    keys: ApiKeys,
    audit: Audit,
    periods: HoldPeriods,
    public_url: str,
) -> list[Route]:
    return [
        *project_setting_routes(desk, projects, periods),
        *key_page_routes(desk, keys, inventory, public_url),
        *audit_page_routes(desk, audit, inventory),
        desk.page(f"{PREFIX}/settings", None, GET=_settings),
    ]


async def _settings(visit: Visit) -> Response:
    return await visit.render("settings.html")


# The pages of selling: units and bookings.


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
                POST=(sale_views.unit_permission(action), pages.acting(action)),
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
                    sale_views.booking_permission(action),
                    pages.reissue_link if action is BookingAction.REISSUE_LINK else pages.acting(action),
                ),
            )
            for action in BookingAction
        ),
    ]


# All pages about webhooks: endpoints, deliveries, and what failed sent again.


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


# Where staff come in, and what they have been told already.


class StartPages:
    def __init__(self, announcing: FailureNotices) -> None:
        self._announcing = announcing

    async def start(self, visit: Visit) -> Response:
        """Everybody may see units."""
        return await visit.go(f"{PREFIX}/projects")

    async def seen(self, visit: Visit) -> Response:
        """Up to the newest that was shown: what failed since then is still to be told."""
        try:
            up_to = _moment(visit.form.text("upTo"))
        except (ValueError, OverflowError):
            raise MalformedBody("The form does not say what was seen.") from None
        await self._announcing.seen(visit.staff.id, up_to)
        return await visit.go(local_path(visit.form.text("next")))


def _moment(text: str) -> datetime:
    """An offset can lead out of the years that there are."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.astimezone(UTC)


def start_routes(desk: Desk, announcing: FailureNotices) -> list[Route]:
    pages = StartPages(announcing)
    return [
        desk.page(PREFIX, None, GET=pages.start),
        desk.page(f"{PREFIX}/news/seen", Permission.SEE_WEBHOOKS, POST=pages.seen),
    ]


# The pages of the back office: which path shows what.


def backoffice_page_routes(context: WebContext) -> list[BaseRoute]:
    services = context.services
    desk = Desk(services.login, services.announcing, context.cookies, context.time_zone)
    routes = [
        *start_routes(desk, context.services.announcing),
        *administration_routes(
            desk,
            context.services.units,
            context.services.projects,
            context.services.api_keys,
            context.services.audit,
            context.services.periods,
            context.public_url,
        ),
        *sign_in_routes(desk, context.services.login, context.services.setup_links, context.addresses),
        *account_routes(desk, context.services.accounts, context.services.login, context.addresses),
        *staff_page_routes(desk, context.services.staff, context.public_url),
        *sales_routes(desk, context.services.units, context.services.bookings, context.public_url),
        *paper_routes(desk, context.services.bookings, context.documents),
        *import_routes(
            desk,
            context.services.import_files,
            context.services.import_runs,
            context.services.projects,
            context.services.units,
        ),
        *project_list_routes(desk, context.services.boards),
        *board_routes(desk, context.services.boards, context.services.live_updates, context.services.units),
        *figure_routes(desk, context.services.reports),
        *layout_routes(desk, context.services.projects),
        *webhook_page_routes(
            desk,
            context.services.subscribing,
            context.services.deliveries,
            context.services.delivery_search,
            context.services.units,
        ),
    ]
    return mounted_pages(PREFIX, routes, Elsewhere(desk))
