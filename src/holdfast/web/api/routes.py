"""Declare the operations of the API: what is checked, what is called, and what the OpenAPI document says.

An operation is a function with a decorator::

    @routes.put("/projects/{slug}/units/{code}", summary="Create or replace a unit", ...)
    async def replace_unit(request: Request, slug: str, code: str, body: UnitReplacement) -> UnitDocument:

Path parameters come by position, the body after them, query parameters by name: ``limit: Limit``. Checks run
in the order of the contract: who calls, the method, the form of the body, every fault of path, query and body
at once, then whether the key may use the project.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from holdfast.domain.errors import Fault, InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.domain.wire_format import camel_case
from holdfast.web.api.bodies import NO_BODY, Body, BodyModel, ModelBody
from holdfast.web.api.parameters import PATH_PARAMETERS, Parameter, read_path, read_query
from holdfast.web.auth import PUBLIC, Guard, check_project_access, key_guard
from holdfast.web.errors import MethodNotAllowed, UnknownRoute
from holdfast.web.json import JsonResponse
from holdfast.web.request import Request

Handler = Callable[..., Awaitable[Any]]


class SegmentConvertor(Convertor[str]):
    """One segment of the path, percent-encoded as it was sent; an empty one too, which is then a fault."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("segment", SegmentConvertor())


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    guard: Guard
    summary: str
    responses: Mapping[int, Any]
    """By status: the type of the document, or None for no body."""
    errors: Sequence[type[Exception]]
    body: Body | None
    query: tuple[Parameter, ...]
    headers: tuple[str, ...]
    """Names of request headers that it honors."""
    path_parameters: tuple[Parameter, ...]
    tag: str
    is_limited_by_key: bool
    """The key must be one that may use the project."""

    @property
    def description(self) -> str:
        return inspect.getdoc(self.handler) or ""

    @property
    def is_personal(self) -> bool:
        """Whether caches must not keep its responses: they name a buyer or a token, or need credentials."""
        return self.method != "GET" or self.guard is not PUBLIC

    @property
    def operation_id(self) -> str:
        first, *rest = self.handler.__name__.split("_")
        return first + "".join(word.title() for word in rest)

    async def respond(self, request: Request) -> Response:
        if request.raw_query:
            request.check_query()
        faults: list[Fault] = []
        arguments = [read_path(request, parameter, faults) for parameter in self.path_parameters]
        query = read_query(request, self.query, faults) if self.query or request.raw_query else {}
        if self.body is not None:
            body = await self.body.read(request, arguments, faults)
            if self.body is not NO_BODY:
                arguments.append(body)
        if faults:
            raise InvalidInput(faults)
        if self.is_limited_by_key:
            check_project_access(request, arguments[0])
        result = await self.handler(request, *arguments, **query)
        if isinstance(result, Response):
            return result
        ((status, kind),) = self.responses.items()
        if kind is None:
            return Response(status_code=status)
        return JsonResponse(result, status)


class ApiPath:
    """The operations of one path, as an ASGI application. Authentication comes before the method."""

    def __init__(self, path: str, operations: Mapping[str, Operation]) -> None:
        self.path = path
        self.operations = dict(operations)
        # Only callers who may use the first method learn which methods exist.
        self._first = next(iter(operations.values()))
        if "GET" in operations:
            self.operations["HEAD"] = operations["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["route"] = self.path
        request = Request(scope, receive, send)
        operation = self.operations.get(scope["method"])
        if operation is None:
            await self._first.guard.check(request)
            raise MethodNotAllowed(scope["method"], self.operations)
        scope["state"]["is_personal"] = operation.is_personal
        await operation.guard.check(request)
        response = await operation.respond(request)
        await response(scope, receive, send)


class Unknown:
    """All other paths below a prefix. Callers without access do not learn which paths exist."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard.check(Request(scope, receive, send))
        raise UnknownRoute


class ApiRoutes:
    """The operations of one noun below one prefix, in the order in which they are declared."""

    def __init__(self, prefix: str, tag: str, guard: Guard | None = None) -> None:
        self.prefix = prefix
        self.operations: list[Operation] = []
        self._tag = tag
        self._guard = guard
        self.get, self.put, self.patch, self.post, self.delete = (
            partial(self.operation, method) for method in ("GET", "PUT", "PATCH", "POST", "DELETE")
        )

    def operation(
        self,
        method: str,
        path: str,
        *,
        summary: str,
        status: int = 200,
        responses: Mapping[int, Any] | None = None,
        permission: Permission | None = None,
        guard: Guard | None = None,
        errors: Sequence[type[Exception]] = (),
        body: Body | None = None,
        headers: Sequence[str] = (),
    ) -> Callable[[Handler], Handler]:
        """Declare an operation; its docstring is its description.

        The handler returns a document, which is sent with ``status``; None, which is 204; or one of
        ``responses``. ``permission``: for holders of a key that has it. ``guard``: another than that of the
        group. ``body``: where the annotation of the argument is no model.
        """
        guard = guard or self._guard if permission is None else key_guard(permission)
        assert guard is not None, path
        parameters = [one for name, one in PATH_PARAMETERS.items() if f"{{{name}}}" in path]

        def declare(handler: Handler) -> Handler:
            signature = inspect.signature(handler, eval_str=True)
            kind = signature.return_annotation
            arguments = [one for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
            self.operations.append(
                Operation(
                    method=method,
                    path=self.prefix + path,
                    handler=handler,
                    guard=guard,
                    summary=summary,
                    responses=responses or ({204: None} if kind is None else {status: kind}),
                    errors=[*(one.error for one in parameters if one.error), *errors],
                    body=body or _declared_body(method, signature),
                    query=tuple(
                        replace(one.annotation.__metadata__[0], name=camel_case(one.name))
                        for one in arguments
                    ),
                    headers=tuple(headers),
                    path_parameters=tuple(parameters),
                    tag=self._tag,
                    is_limited_by_key=guard.permission is not None and "{slug}" in path,
                )
            )
            return handler

        return declare


def _declared_body(method: str, signature: inspect.Signature) -> Body | None:
    """Return the body of the argument whose type is a model. A POST without one takes an empty object."""
    for argument in signature.parameters.values():
        kinds = get_args(argument.annotation) or (argument.annotation,)
        if isinstance(kinds[0], type) and issubclass(kinds[0], BodyModel):
            return ModelBody(kinds[0], optional=type(None) in kinds)
    return NO_BODY if method == "POST" else None


def mounted(
    prefix: str, groups: Sequence[ApiRoutes], unknown: Guard | None = None, busiest: str | None = None
) -> list[BaseRoute]:
    """One Starlette route for each path, so that ``Allow`` is complete and 401 comes before 405."""
    by_path: dict[str, dict[str, Operation]] = {}
    for group in groups:
        for operation in group.operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
    # The busiest path is looked for first, outside of the mount.
    first = [] if busiest is None else [_route("", busiest, by_path.pop(busiest))]
    routes = [_route(prefix, path, operations) for path, operations in by_path.items()]
    if unknown is None:
        return [*first, Mount(prefix, Router(routes, redirect_slashes=False))]
    otherwise = Unknown(unknown)
    return [
        *first,
        Mount(prefix, Router(routes, redirect_slashes=False, default=otherwise)),
        Route(prefix, otherwise),
    ]


def _route(prefix: str, path: str, operations: Mapping[str, Operation]) -> Route:
    return Route(path.removeprefix(prefix).replace("}", ":segment}"), ApiPath(path, operations))
