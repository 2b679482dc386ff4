"""The web application: an ASGI application that any ASGI server can run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from holdfast.domain.errors import DomainError
from holdfast.observability.metrics import flush_counts
from holdfast.settings import Settings, check_setting_names
from holdfast.web.api import surfaces
from holdfast.web.api.health import status_routes
from holdfast.web.context import WebContext, build_context
from holdfast.web.errors import handle_error
from holdfast.web.middleware import (
    ApiCorsMiddleware,
    CompressionMiddleware,
    ErrorMiddleware,
    RequestMiddleware,
)
from holdfast.web.pages.backoffice.routes import backoffice_page_routes
from holdfast.web.pages.routes import mount_pages
from holdfast.web.pages.service import service_routes
from holdfast.web.pages.storefront import bookings, holds, projects, units
from holdfast.web.pages.storefront.base import BuyerRequest
from holdfast.web.pages.tour import Tour
from holdfast.web.spreadsheets.unit_rows import RowParser
from holdfast.wiring import build_services


def create_app(settings: Settings | None = None, tour: Tour | None = None) -> Starlette:
    """Build the application. Its lifespan opens the database, which must be migrated already.

    Without ``settings`` they are read from the environment. ``tour``: what the first page of a demo shows.
    """
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
        routes=_routes(context),
        middleware=_middleware(settings),
        exception_handlers={DomainError: handle_error, HTTPException: handle_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.context = context
    app.state.stopping = asyncio.Event()
    return app


def _middleware(settings: Settings) -> list[Middleware]:
    """The outermost first."""
    cors = [Middleware(ApiCorsMiddleware, origins=settings.cors_origins)] if settings.cors_origins else []
    return [
        Middleware(RequestMiddleware),
        *cors,
        Middleware(ErrorMiddleware),
        Middleware(CompressionMiddleware),
    ]


def _routes(context: WebContext) -> list[BaseRoute]:
    """The busiest first: they are tried in this order."""
    return [
        *surfaces.api_routes(),
        *backoffice_page_routes(),
        *mount_pages(BuyerRequest, [holds.pages, bookings.pages, units.pages, projects.pages]),
        *status_routes(),
        *service_routes(context.tour),
    ]
