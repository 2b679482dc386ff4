"""All pages of the back office."""

from __future__ import annotations

from starlette.routing import BaseRoute

from holdfast.web.pages.backoffice import (
    account,
    api_keys,
    audit,
    boards,
    bookings,
    deliveries,
    endpoints,
    imports,
    layouts,
    login,
    projects,
    reports,
    staff,
    units,
)
from holdfast.web.pages.backoffice.base import StaffRequest
from holdfast.web.pages.routes import mount_pages

_MODULES = (
    login, account, staff, api_keys, audit, units, bookings, imports, projects, boards, reports, layouts,
    endpoints, deliveries,
)  # fmt: skip


def backoffice_page_routes() -> list[BaseRoute]:
    return mount_pages(StaffRequest, [module.pages for module in _MODULES])
