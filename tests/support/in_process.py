"""The real application in the loop of a test, with routes of the test's own and no database."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.settings import Settings
from holdfast.storage.secrets import new_encryption_key
from holdfast.web.app import create_app
from holdfast.web.context import WebContext
from holdfast.web.request import Request

NOBODY_LISTENS = "postgresql://nobody@127.0.0.1:1/nothing"

Respond = Callable[[Request], Awaitable[Response]]


class _Responding:
    def __init__(self, path: str, respond: Respond) -> None:
        self._path = path
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["route"] = self._path
        response = await self._respond(Request(scope, receive, send))
        await response(scope, receive, send)


def at(path: str, respond: Respond) -> Route:
    """A route for every method."""
    return Route(path, _Responding(path, respond))


def app_with(*routes: BaseRoute, database_url: str = NOBODY_LISTENS, **settings: str) -> Starlette:
    """The application with these routes before its own. ``settings``: ``public_url="http://..."``."""
    own = {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}
    named = {"HOLDFAST_DATABASE_URL": database_url, "HOLDFAST_ENCRYPTION_KEYS": new_encryption_key(), **own}
    app = create_app(Settings.from_environment(named))
    app.router.routes[:0] = routes
    return app


def all_routes(routes: Sequence[BaseRoute]) -> Iterator[Route]:
    """Those below mounts, too."""
    for route in routes:
        if isinstance(route, Route):
            yield route
        elif isinstance(route, Mount):
            yield from all_routes(route.routes)


def context_of(app: Starlette) -> WebContext:
    context: WebContext = app.state.context
    return context


@asynccontextmanager
async def client_of(app: ASGIApp, peer: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(peer, 50_000))
    async with httpx.AsyncClient(base_url="http://holdfast.example", transport=transport) as client:
        yield client
