"""Places: a path, and what is answered there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Protocol

from starlette.types import ASGIApp

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.refusals import MethodNotAllowed, UnknownRoute

Answer = JsonAnswer | ASGIApp
Handler = Callable[[Call], Awaitable[Answer]]
Guard = Callable[[Call], Awaitable[None]]

_PARAMETER = re.compile(r"\{([a-z]+)\}")


class Place(Protocol):
    def takes(self, call: Call) -> bool: ...

    async def answer(self, call: Call) -> Answer: ...


class Resource:
    """A path with parameters, and what each method does there.

    A parameter is one part of the path, still percent-encoded; an empty one too, which its handler
    refuses.
    """

    def __init__(self, path: str, methods: Mapping[str, Handler], guard: Guard | None) -> None:
        self.path = path
        literals_and_names = _PARAMETER.split(path)
        literals, names = map(re.escape, literals_and_names[::2]), literals_and_names[1::2]
        parts = zip_longest(literals, (f"(?P<{name}>[^/]*)" for name in names), fillvalue="")
        self._match = re.compile("".join(map("".join, parts))).fullmatch
        self._guard = guard
        self._methods = dict(methods)
        if "GET" in methods:
            self._methods["HEAD"] = methods["GET"]

    def takes(self, call: Call) -> bool:
        match = self._match(call.path)
        if match is None:
            return False
        call.route = self.path
        call.parameters = match
        return True

    async def answer(self, call: Call) -> Answer:
        if self._guard is not None:
            await self._guard(call)
        handler = self._methods.get(call.method)
        if handler is None:
            raise MethodNotAllowed(call.method, self._methods)
        return await handler(call)


def resource(path: str, guard: Guard | None = None, **methods: Handler) -> Resource:
    return Resource(path, methods, guard)


class Nowhere:
    """What is left below a guarded prefix: whether a path exists is told to those who may know."""

    def __init__(self, prefix: str, guard: Guard) -> None:
        self._prefix = prefix
        self._below = prefix + "/"
        self._guard = guard

    def takes(self, call: Call) -> bool:
        return call.path == self._prefix or call.path.startswith(self._below)

    async def answer(self, call: Call) -> Answer:
        await self._guard(call)
        raise UnknownRoute


def place_of(call: Call, places: Sequence[Place]) -> Place:
    """The first that takes it."""
    for place in places:
        if place.takes(call):
            return place
    raise UnknownRoute
