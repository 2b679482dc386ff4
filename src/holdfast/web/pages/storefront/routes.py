"""The pages of the storefront: which path shows what."""

from __future__ import annotations

from starlette.routing import BaseRoute

from holdfast.web.auth import PUBLIC
from holdfast.web.context import WebContext
from holdfast.web.pages.base import mounted_pages
from holdfast.web.pages.storefront.base import PREFIX, Door, Elsewhere
from holdfast.web.pages.storefront.bookings import booking_routes, hold_routes
from holdfast.web.pages.storefront.documents import paper_routes
from holdfast.web.pages.storefront.projects import project_routes
from holdfast.web.pages.storefront.units import unit_routes


def storefront_page_routes(context: WebContext) -> list[BaseRoute]:
    door = Door(
        context.addresses, PUBLIC, context.cookies, context.time_zone, context.payment_url, context.public_url
    )
    routes = [
        *hold_routes(door, context),
        *paper_routes(door, context),
        *booking_routes(door, context),
        *unit_routes(door, context),
        *project_routes(door, context),
    ]
    return mounted_pages(PREFIX, routes, Elsewhere(door))
