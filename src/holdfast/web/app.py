"""The web application: an ASGI application that any ASGI server can run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from holdfast.domain.errors import DomainError
from holdfast.observability.metrics import flush_counts
from holdfast.settings import Settings, check_setting_names
from holdfast.web import middleware
from holdfast.web.api import surfaces
from holdfast.web.context import build_context
from holdfast.web.pages.backoffice.routes import backoffice_page_routes
from holdfast.web.pages.routes import mount_pages
from holdfast.web.pages.service import service_routes
from holdfast.web.pages.storefront import bookings, projects, units
from holdfast.web.pages.storefront.base import BuyerRequest
from holdfast.web.pages.tour import Tour
from holdfast.web.spreadsheets.unit_rows import RowParser
from holdfast.wiring import build_services


def create_app(settings: Settings | None = None, tour: Tour | None = None) -> Starlette:
    """Build the application, with settings of the environment unless they are given."""
    if settings is None:
        check_setting_names(os.environ)
        settings = Settings.from_environment(os.environ)
    services = build_services(settings, RowParser)
    context = build_context(settings, services, tour)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.stopping.clear()
        async with services.running():
            yield
            app.state.stopping.set()
            flush_counts()

    app = Starlette(
        # The busiest first: they are tried in this order.
        routes=[
            *([surfaces.MetricsPort(settings.metrics_port)] if settings.metrics_port else []),
            *surfaces.api_routes(),
            *backoffice_page_routes(),
            *mount_pages(BuyerRequest, [units.pages, bookings.pages, projects.pages]),
            *surfaces.status_routes(),
            *service_routes(settings.public_url, context.tour),
        ],
        middleware=_middleware(settings),
        exception_handlers={DomainError: middleware.handle_error, HTTPException: middleware.handle_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.context = context
    app.state.stopping = asyncio.Event()
    return app


def _middleware(settings: Settings) -> list[Middleware]:
    """The outermost first."""
    hsts = f"max-age=31536000{'; includeSubDomains' if settings.hsts_subdomains else ''}"
    is_https = urlsplit(settings.public_url or "").scheme == "https"
    headers = [(b"strict-transport-security", hsts.encode())] if is_https else []
    origins = settings.cors_origins
    cors = [Middleware(middleware.ApiCorsMiddleware, origins=origins)] if origins else []
    return [
        Middleware(middleware.RequestMiddleware, headers=headers),
        *cors,
        Middleware(middleware.ErrorMiddleware),
        Middleware(middleware.CompressionMiddleware),
    ]
