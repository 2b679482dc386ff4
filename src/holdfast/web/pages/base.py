"""Pages as Starlette routes: an ASGI application for each path, whatever the method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from holdfast.web.http_errors import MethodNotAllowed
from holdfast.web.request import Request


class PageApp(ABC):
    """The application at one path, for every method."""

    def __init__(self, path: str) -> None:
        self.path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        scope["state"]["route"] = self.route_of(request)
        response = await self.respond(request)
        await response(scope, receive, send)

    def route_of(self, request: Request) -> str:
        """The path as logs and metrics name it."""
        return self.path

    @abstractmethod
    async def respond(self, request: Request) -> Response: ...


class _Simple(PageApp):
    def __init__(self, path: str, show: Callable[[Request], Awaitable[Response]]) -> None:
        super().__init__(path)
        self._show = show

    async def respond(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(request.method, ("GET", "HEAD"))
        request.check_parameter_count()
        return await self._show(request)


def simple_route(path: str, show: Callable[[Request], Awaitable[Response]]) -> Route:
    """A path that is for everybody, and is only read."""
    return Route(path, _Simple(path, show))
