"""What the web needs besides the services: settings of the site, and limits that this process keeps."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

from holdfast.settings import Settings
from holdfast.web.client_address import ClientAddresses
from holdfast.web.documents.rendering import Documents
from holdfast.web.pages.sessions import Cookies
from holdfast.web.pages.tour import Tour
from holdfast.web.rate_limit import LiveLimits, RateLimit
from holdfast.web.spreadsheets.processes import FileReader, WorkbookWriter
from holdfast.wiring import Services


class WebContext(NamedTuple):
    services: Services
    addresses: ClientAddresses
    rate_limit: RateLimit
    public_rate_limit: RateLimit
    live_limits: LiveLimits
    cookies: Cookies
    documents: Documents
    file_reader: FileReader
    workbook_writer: WorkbookWriter
    public_url: str
    time_zone: str
    cors_origins: tuple[str, ...]
    payment_url: str | None
    """Where buyers are sent to pay."""
    tour: Tour | None
    """Of a demo."""


def build_context(settings: Settings, services: Services, tour: Tour | None) -> WebContext:
    public_url = settings.public_url or ""
    return WebContext(
        services=services,
        addresses=ClientAddresses(settings.trusted_proxies),
        rate_limit=RateLimit(settings.rate_limit / settings.processes, monotonic),
        public_rate_limit=RateLimit(settings.public_rate_limit / settings.processes, monotonic),
        live_limits=LiveLimits(),
        cookies=Cookies.for_address(settings.public_url),
        documents=Documents(services.units, public_url, settings.time_zone),
        file_reader=FileReader(),
        workbook_writer=WorkbookWriter(),
        public_url=public_url,
        time_zone=settings.time_zone,
        cors_origins=settings.cors_origins,
        payment_url=settings.payment_url,
        tour=tour,
    )


# The link by which a buyer opens their booking on any device; it is their key to it.


def buyer_link(public_url: str, slug: str, reference: str, token: str) -> str:
    return f"{public_url.rstrip('/')}/p/{slug}/bookings/{reference}/{token}"
