"""Resources: a path, and what each method does there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from holdfast.web.call import Call
from holdfast.web.refusals import MethodNotAllowed, UnknownRoute

Handler = Callable[[Call], Awaitable[Response]]

CALL = "holdfast.call"
ROUTE = "holdfast.route"


class _Segment(Convertor[str]):
    """One part of the path, still percent-encoded; an empty one too, which its route refuses."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("segment", _Segment())


class Resource:
    def __init__(self, path: str, methods: Mapping[str, Handler]) -> None:
        self._path = path.replace(":segment", "")
        self._methods = dict(methods)
        if "GET" in methods:
            self._methods["HEAD"] = methods["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self._path
        call: Call = scope[CALL]
        handler = self._methods.get(call.method)
        if handler is None:
            raise MethodNotAllowed(call.method, self._methods)
        response = await handler(call)
        await response(scope, receive, send)


def resource(path: str, prefix: str = "", **methods: Handler) -> Route:
    """``prefix`` is where the route is mounted; it only completes the path's name."""
    return Route(path, Resource(prefix + path, methods))


async def no_route(scope: Scope, receive: Receive, send: Send) -> None:
    raise UnknownRoute
