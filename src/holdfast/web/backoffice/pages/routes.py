"""The pages of the back office: which path shows what."""

from __future__ import annotations

from starlette.routing import BaseRoute

from holdfast.web.backoffice.desk import Desk, Elsewhere
from holdfast.web.backoffice.pages.account import account_routes
from holdfast.web.backoffice.pages.administration import administration_routes
from holdfast.web.backoffice.pages.board import board_routes
from holdfast.web.backoffice.pages.figures import figure_routes
from holdfast.web.backoffice.pages.importing import import_routes
from holdfast.web.backoffice.pages.layout import layout_routes
from holdfast.web.backoffice.pages.papers import paper_routes
from holdfast.web.backoffice.pages.projects import project_list_routes
from holdfast.web.backoffice.pages.sales import sales_routes
from holdfast.web.backoffice.pages.sign_in import sign_in_routes
from holdfast.web.backoffice.pages.staff import staff_page_routes
from holdfast.web.backoffice.pages.start import start_routes
from holdfast.web.backoffice.pages.webhooks import webhook_page_routes
from holdfast.web.backoffice.visits import PREFIX
from holdfast.web.context import WebContext
from holdfast.web.page_routes import mounted_pages


def backoffice_page_routes(context: WebContext) -> list[BaseRoute]:
    services = context.services
    desk = Desk(services.signing_in, services.announcing, context.cookies, context.time_zone)
    routes = [
        *start_routes(desk, context.services.announcing),
        *administration_routes(
            desk,
            context.services.inventory,
            context.services.projects,
            context.services.keys,
            context.services.auditing,
            context.services.periods,
            context.public_url,
        ),
        *sign_in_routes(desk, context.services.signing_in, context.services.setup_links, context.addresses),
        *account_routes(desk, context.services.accounts, context.services.signing_in, context.addresses),
        *staff_page_routes(desk, context.services.staffing, context.public_url),
        *sales_routes(desk, context.services.inventory, context.services.selling, context.public_url),
        *paper_routes(desk, context.services.selling, context.papers),
        *import_routes(
            desk,
            context.services.import_files,
            context.services.import_runs,
            context.services.projects,
            context.services.inventory,
        ),
        *project_list_routes(desk, context.services.boards),
        *board_routes(desk, context.services.boards, context.services.watching, context.services.inventory),
        *figure_routes(desk, context.services.figures),
        *layout_routes(desk, context.services.projects),
        *webhook_page_routes(
            desk,
            context.services.subscribing,
            context.services.deliveries,
            context.services.delivery_search,
            context.services.inventory,
        ),
    ]
    return mounted_pages(PREFIX, routes, Elsewhere(desk))
