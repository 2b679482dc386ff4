"""Places: a path, and what is answered there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, Protocol

from starlette.types import ASGIApp

from holdfast.domain.permissions import Permission
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.refusals import MethodNotAllowed, UnknownRoute

Answer = JsonAnswer | ASGIApp
Handler = Callable[[Call], Awaitable[Answer]]
Guard = Callable[[Call], Awaitable[None]]
Doors = Callable[[Permission], Guard]
"""For each permission the guard that lets those pass who have it."""

_PARAMETER = re.compile(r"\{([a-z]+)\}")


def path_matcher(path: str) -> Callable[[str], re.Match[str] | None]:
    literals_and_names = _PARAMETER.split(path)
    literals, names = map(re.escape, literals_and_names[::2]), literals_and_names[1::2]
    parts = zip_longest(literals, (f"(?P<{name}>[^/]*)" for name in names), fillvalue="")
    return re.compile("".join(map("".join, parts))).fullmatch


class Place(Protocol):
    def takes(self, call: Call) -> bool: ...

    async def answer(self, call: Call) -> Answer: ...


class Way(NamedTuple):
    """What one method does, and for whom."""

    handler: Handler
    guard: Guard | None
    permission: Permission | None
    """None: whoever calls may, or the guard asks for something else than a permission."""


class Resource:
    """A path with parameters, and what each method does there.

    A parameter is one part of the path, still percent-encoded; an empty one too, which its handler
    refuses.
    """

    def __init__(self, path: str, methods: Mapping[str, Way]) -> None:
        self.path = path
        self._match = path_matcher(path)
        self._ways = dict(methods)
        # Whether a method exists is told to those who may use the first one.
        self._other = next(iter(methods.values()))._replace(handler=self._refuse_method)
        if "GET" in methods:
            self._ways["HEAD"] = methods["GET"]

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._ways)

    def permission_of(self, method: str) -> Permission | None:
        return self._ways.get(method, self._other).permission

    def takes(self, call: Call) -> bool:
        match = self._match(call.path)
        if match is None:
            return False
        call.route = self.path
        call.parameters = match
        return True

    async def answer(self, call: Call) -> Answer:
        handler, guard, _ = self._ways.get(call.method, self._other)
        if guard is not None:
            await guard(call)
        return await handler(call)

    async def _refuse_method(self, call: Call) -> Answer:
        raise MethodNotAllowed(call.method, self._ways)


def resource(path: str, guard: Guard | None = None, **methods: Handler) -> Resource:
    """One guard for all that is done there."""
    return Resource(path, {name: Way(handler, guard, None) for name, handler in methods.items()})


def guarded(path: str, **ways: Way) -> Resource:
    """Each method for those whom its way lets pass; the first should be the one that most may use."""
    return Resource(path, ways)


def behind(doors: Doors, permission: Permission) -> Callable[[Handler], Way]:
    """Makes ways for those who have the permission."""
    guard = doors(permission)
    return lambda handler: Way(handler, guard, permission)


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
