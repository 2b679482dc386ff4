"""The application's middleware, in pure ASGI. ``app.create_app`` lists it in its order."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus
from random import getrandbits
from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.observability.logging import log_request
from holdfast.observability.metrics import count_request
from holdfast.operations.write_path import has_caller_left
from holdfast.web import problems
from holdfast.web.errors import MethodNotAllowed, UnknownRoute
from holdfast.web.json import NO_STORE, Header
from holdfast.web.pages.live import EVENT_STREAM
from holdfast.web.pages.service import error_page
from holdfast.web.request import NO_ROUTE, Request

logger = logging.getLogger("holdfast.web")

_CLIENT_CLOSED_REQUEST = 499
_NOT_LOGGED = frozenset({"/healthz", "/readyz", "/metrics"})
_ACCEPTABLE_ID = re.compile(rb"[A-Za-z0-9._~:+/=-]{1,128}")
_GZIP_LEVEL = 4
_READING = ("GET", "HEAD")
_PROGRAM_PATHS = ("/v1/", "/openapi.json", "/healthz", "/readyz", "/metrics")
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_EVENT_STREAM = (b"content-type", EVENT_STREAM.encode())


class RequestMiddleware:
    """Give every request an id, a line in the access log with the client's address, and metrics.

    The caller's id is kept if it is acceptable. Paths are routed as they were sent: a unit code may have a
    slash in it (``A%2F101``). Every response has ``X-Request-Id``, ``nosniff`` and ``headers``; ``no-store``,
    where it answers one caller. With a middleware for each of these a PUT took 5 % more CPU, measured in
    process without the database.
    """

    def __init__(self, app: ASGIApp, headers: Sequence[Header] = ()) -> None:
        self.app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started_at = perf_counter()
        if (raw_path := scope.get("raw_path")) is not None:
            scope["path"] = raw_path.decode("latin-1")
        headers = dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"")
        if not _ACCEPTABLE_ID.fullmatch(request_id):
            request_id = b"%032x" % getrandbits(128)
        state = scope.setdefault("state", {})
        state["headers"], state["request_id"] = headers, request_id.decode()
        own_headers = [(b"x-request-id", request_id), _NOSNIFF, *self._headers]
        answered_at = 0.0
        token = has_caller_left.set(lambda: StarletteRequest(scope, receive).is_disconnected())

        async def send_with_headers(message: Message) -> None:
            nonlocal answered_at
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                if _EVENT_STREAM in message["headers"]:
                    # The time that somebody watched is not the time that the server took.
                    answered_at = perf_counter()
                # Unless an operation says that it is for everybody. The errors of a route are as personal.
                if scope["path"].startswith("/v1/") and state.get("is_personal", True):
                    own_headers.append(NO_STORE)
                message["headers"] = [*message["headers"], *own_headers]
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            has_caller_left.reset(token)
            _record_request(scope, (answered_at or perf_counter()) - started_at)


class ErrorMiddleware:
    """Turn what no handler has caught into a response: a problem for the API, a page for browsers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            pass
        except Exception as failure:
            if scope["type"] != "http":
                raise
            if "status" in scope["state"]:
                fields = {"requestId": scope["state"]["request_id"]}
                logger.error("response cut short", exc_info=failure, extra={"fields": fields})
                raise
            await error_response(Request(scope, receive), failure)(scope, receive, send)


async def handle_error(request: StarletteRequest, failure: Exception) -> Response:
    """Starlette's exception handler for ours and its own."""
    if isinstance(failure, HTTPException):
        # Raised for unknown paths, and for static files that are not just read.
        is_method = failure.status_code == HTTPStatus.METHOD_NOT_ALLOWED
        failure = MethodNotAllowed(request.method, _READING) if is_method else UnknownRoute()
    return error_response(Request(request.scope), failure)


def error_response(request: Request, failure: Exception) -> Response:
    kind = problems.problem_type(failure)
    if kind is problems.INTERNAL_ERROR:
        problems.log_failure(request.request_id, failure)
    # A program that asks for a path that does not exist gets a problem, too.
    is_page = kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR or "text/html" in request.header(b"accept")
    if request.scope["path"].startswith(_PROGRAM_PATHS) or not is_page:
        return problems.problem_response(failure, request.request_id)
    page = error_page(kind, request.request_id)
    problems.add_problem_headers(page, failure)
    return page


class ApiCorsMiddleware:
    """Let pages of other sites call the API, and nothing else; never with cookies."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self.app = app
        self._shared = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=(
                "Authorization", "Content-Type", "Idempotency-Key",
                "If-Match", "If-None-Match", "X-Request-Id",
            ),
            expose_headers=("ETag", "Retry-After", "X-Request-Id"),
            max_age=7200,
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_shared = scope["type"] == "http" and is_api_path(scope["path"])
        await (self._shared if is_shared else self.app)(scope, receive, send)


class CompressionMiddleware:
    """Compress responses for those who accept it; event streams are left alone by Starlette's own list.

    Requests to the API that do not accept it go past: the middleware costs a tenth of a PUT even then.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._compressing = GZipMiddleware(app, compresslevel=_GZIP_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        goes_past = (
            scope["type"] == "http"
            and is_api_path(scope["path"])
            and b"accept-encoding" not in scope["state"]["headers"]
        )
        await (self.app if goes_past else self._compressing)(scope, receive, send)


def is_api_path(path: str) -> bool:
    return path.startswith("/v1/") or path == "/openapi.json"


def _record_request(scope: Scope, seconds: float) -> None:
    state = scope["state"]
    method, route = scope["method"], state.get("route", NO_ROUTE)
    status = state.get("status", _CLIENT_CLOSED_REQUEST)
    count_request(method, route, status, seconds)
    if route not in _NOT_LOGGED or 400 <= status < 500:
        # A path may end with a token that opens an account: that is not for the log.
        path = route if "{token}" in route else scope["path"]
        client = scope["app"].state["context"].addresses.find(scope).text
        fields = {"requestId": state["request_id"], "route": route, "client": client}
        fields["durationMs"] = round(seconds * 1000, 3)
        if (key := state.get("key")) is not None:
            fields["key"] = key.hint
        log_request(f"{method} {path} {status}", fields)
