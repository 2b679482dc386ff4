"""From an error to its response: a problem document for programs, a page for browsers."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response

from holdfast.web.http_errors import MethodNotAllowed, UnknownRoute
from holdfast.web.pages.service import error_page
from holdfast.web.problems import INTERNAL_ERROR, add_problem_headers, problem_response, problem_type
from holdfast.web.request import Request

logger = logging.getLogger("holdfast.web")

_READING = ("GET", "HEAD")
_PROGRAM_PATHS = ("/v1/", "/openapi.json", "/healthz", "/readyz", "/metrics")


async def handle_error(request: StarletteRequest, failure: Exception) -> Response:
    """Starlette's exception handler for ours and its own."""
    own = Request(request.scope)
    return error_response(own, _ours(own, failure) if isinstance(failure, HTTPException) else failure)


def error_response(request: Request, failure: Exception) -> Response:
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        log_failure(request.request_id, failure)
    if request.scope["path"].startswith(_PROGRAM_PATHS) or not _wants_page(request, kind.status):
        return problem_response(failure, request.request_id)
    page = error_page(kind, request.request_id)
    add_problem_headers(page, failure)
    return page


def log_failure(request_id: str, failure: Exception) -> None:
    logger.error("request failed", exc_info=failure, extra={"fields": {"requestId": request_id}})


def _wants_page(request: Request, status: int) -> bool:
    """A program that asks for a path that is not there is told so in its own way."""
    accepted = request.header_values.get(b"accept", b"")
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or b"text/html" in accepted


def _ours(request: Request, failure: HTTPException) -> Exception:
    """Starlette raises its own for unknown paths, and for static files that are not just read."""
    if failure.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowed(request.method, _READING)
    return UnknownRoute()
