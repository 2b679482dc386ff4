"""Resources: a path, and what each method does there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.web.call import Call
from holdfast.web.refusals import MethodNotAllowed, UnknownRoute

Handler = Callable[[Call], Awaitable[ASGIApp]]
Guard = Callable[[Call], Awaitable[None]]

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
    def __init__(self, path: str, methods: Mapping[str, Handler], guard: Guard | None) -> None:
        self._path = path.replace(":segment", "")
        self._guard = guard
        self._methods = dict(methods)
        if "GET" in methods:
            self._methods["HEAD"] = methods["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self._path
        call: Call = scope[CALL]
        if self._guard is not None:
            await self._guard(call)
        handler = self._methods.get(call.method)
        if handler is None:
            raise MethodNotAllowed(call.method, self._methods)
        answer = await handler(call)
        await answer(scope, receive, send)


def resource(path: str, guard: Guard | None = None, **methods: Handler) -> Route:
    return Route(path, Resource(path, methods, guard))


class Nowhere:
    """What is left below a guarded prefix: whether a path exists is told to those who may know."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope[CALL])
        raise UnknownRoute


async def no_route(scope: Scope, receive: Receive, send: Send) -> None:
    raise UnknownRoute
