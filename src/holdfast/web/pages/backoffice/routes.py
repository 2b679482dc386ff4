"""All pages of the back office: importing a module declares its pages."""

from __future__ import annotations

from starlette.routing import BaseRoute

from holdfast.web.pages.backoffice import (  # noqa: F401
    account,
    api_keys,
    audit,
    boards,
    bookings,
    deliveries,
    emails,
    endpoints,
    imports,
    layouts,
    login,
    projects,
    reports,
    sellers,
    staff,
    units,
)
from holdfast.web.pages.backoffice.base import StaffRequest, pages
from holdfast.web.pages.routes import mount_pages


def backoffice_page_routes() -> list[BaseRoute]:
    return mount_pages(StaffRequest, [pages])
