"""The pages of the storefront: which path shows what."""

from __future__ import annotations

from starlette.routing import BaseRoute

from holdfast.web.auth import PUBLIC
from holdfast.web.context import WebContext
from holdfast.web.page_routes import mounted_pages
from holdfast.web.storefront.pages.door import Door, Elsewhere
from holdfast.web.storefront.pages.journey import booking_routes, hold_routes
from holdfast.web.storefront.pages.papers import paper_routes
from holdfast.web.storefront.pages.project import project_routes
from holdfast.web.storefront.pages.unit import unit_routes
from holdfast.web.storefront.pages.visits import PREFIX


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
