"""The pages of the back office: which path shows what."""

from __future__ import annotations

from holdfast.web.backoffice.desk import Desk, Elsewhere
from holdfast.web.backoffice.pages.account import account_places
from holdfast.web.backoffice.pages.administration import administration_places
from holdfast.web.backoffice.pages.board import board_places
from holdfast.web.backoffice.pages.figures import figure_places
from holdfast.web.backoffice.pages.importing import import_places
from holdfast.web.backoffice.pages.layout import layout_places
from holdfast.web.backoffice.pages.papers import paper_places
from holdfast.web.backoffice.pages.projects import project_list_places
from holdfast.web.backoffice.pages.sales import sales_places
from holdfast.web.backoffice.pages.sign_in import sign_in_places
from holdfast.web.backoffice.pages.staff import staff_page_places
from holdfast.web.backoffice.pages.start import start_places
from holdfast.web.backoffice.pages.webhooks import webhook_page_places
from holdfast.web.parts import Parts
from holdfast.web.routing import Place


def backoffice_page_places(desk: Desk, parts: Parts) -> list[Place]:
    return [
        *start_places(desk, parts.announcing),
        *administration_places(
            desk, parts.inventory, parts.projects, parts.keys, parts.auditing, parts.periods, parts.public_url
        ),
        *sign_in_places(desk, parts.signing_in, parts.setup_links, parts.addresses),
        *account_places(desk, parts.accounts, parts.signing_in, parts.addresses),
        *staff_page_places(desk, parts.staffing, parts.public_url),
        *sales_places(desk, parts.inventory, parts.selling, parts.public_url),
        *paper_places(desk, parts.selling, parts.papers),
        *import_places(desk, parts.import_files, parts.import_runs, parts.projects, parts.inventory),
        *project_list_places(desk, parts.boards),
        *board_places(desk, parts.boards, parts.watching, parts.inventory),
        *figure_places(desk, parts.figures),
        *layout_places(desk, parts.projects),
        *webhook_page_places(
            desk, parts.subscribing, parts.deliveries, parts.delivery_search, parts.inventory
        ),
        Elsewhere(desk),
    ]
