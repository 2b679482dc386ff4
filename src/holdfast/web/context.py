"""The context of all requests: the services, settings of the site, and limits of this process."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

from holdfast.settings import Settings
from holdfast.web.client_address import ClientAddresses
from holdfast.web.cookies import Cookies
from holdfast.web.documents.rendering import Documents
from holdfast.web.pages.tour import Tour
from holdfast.web.rate_limit import LiveLimits, RateLimit, WrongKeyLimit
from holdfast.web.spreadsheets.processes import FileReader, WorkbookWriter
from holdfast.wiring import Services


class WebContext(NamedTuple):
    services: Services
    addresses: ClientAddresses
    rate_limit: RateLimit | None
    public_rate_limit: RateLimit | None
    wrong_key_limit: WrongKeyLimit
    live_limits: LiveLimits
    cookies: Cookies
    documents: Documents
    file_reader: FileReader
    workbook_writer: WorkbookWriter
    public_url: str
    time_zone: str
    cors_origins: tuple[str, ...]
    metrics_token: str | None
    payment_url: str | None
    """The payment page, to which buyers are sent."""
    tour: Tour | None


def build_context(settings: Settings, services: Services, tour: Tour | None) -> WebContext:
    public_url = settings.public_url or ""
    return WebContext(
        services=services,
        addresses=ClientAddresses(settings.trusted_proxies),
        rate_limit=_rate_limit(settings.rate_limit, settings),
        public_rate_limit=_rate_limit(settings.public_rate_limit, settings),
        wrong_key_limit=WrongKeyLimit(settings.wrong_keys_per_minute, monotonic),
        live_limits=LiveLimits(),
        cookies=Cookies.for_address(settings.public_url),
        documents=Documents(services.units, services.sellers, public_url, settings.time_zone),
        file_reader=FileReader(),
        workbook_writer=WorkbookWriter(),
        public_url=public_url,
        time_zone=settings.time_zone,
        cors_origins=settings.cors_origins,
        metrics_token=settings.metrics_token,
        payment_url=settings.payment_url,
        tour=tour,
    )


def _rate_limit(per_second: float, settings: Settings) -> RateLimit | None:
    return RateLimit(per_second / settings.processes, monotonic) if per_second else None


def buyer_link(public_url: str, slug: str, reference: str, token: str) -> str:
    return f"{public_url.rstrip('/')}/p/{slug}/bookings/{reference}/{token}"
