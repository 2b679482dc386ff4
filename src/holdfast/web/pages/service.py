"""Pages for people: welcome, the API, the problems. Each is made once, when the routes are."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from holdfast import __version__
from holdfast.web.http_errors import UnknownRoute
from holdfast.web.openapi.document import openapi_json, operations_with
from holdfast.web.openapi.schemas import first_put, sample_problem
from holdfast.web.pages.base import simple_route
from holdfast.web.pages.i18n import DIRECTIONS, Language, language_of
from holdfast.web.pages.templates import STATIC, digest, templates
from holdfast.web.pages.tour import Tour, language_code
from holdfast.web.problems import MEDIA_TYPE, PROBLEM_TYPES, ProblemType
from holdfast.web.request import JSON, Request

HTML = "text/html"
_ZONE = "UTC"
"""These pages show no times."""
VIEWER = "vendor/swagger-ui-5.34.1"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


Handler = Callable[[Request], Awaitable[Response]]


class Page(NamedTuple):
    body: bytes
    headers: dict[str, str]
    revision: str


class PageFiles(StaticFiles):
    """The files that pages load. A versioned address never changes its content."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        scope["state"]["route"] = "/static"
        response = await super().get_response(path, scope)
        is_versioned = scope["query_string"].startswith(b"v=")
        response.headers["Cache-Control"] = (
            "public, max-age=31536000, immutable" if is_versioned else "no-cache"
        )
        return response


def service_routes(tour: Tour | None = None) -> list[BaseRoute]:
    """``tour``: of a demo, which begins with what there is to try."""
    templates = service_templates()
    problem_pages = {name: _problem_page(templates, kind) for name, kind in PROBLEM_TYPES.items()}
    welcome = _handler(_welcome(templates)) if tour is None else _tour_handler(templates, tour)
    return [
        simple_route("/", welcome),
        simple_route("/docs", _handler(_html(templates, "docs.html", here="/docs", viewer=VIEWER))),
        simple_route("/openapi.json", _handler(_page(openapi_json(), JSON))),
        simple_route("/problems", _handler(_problems_page(templates))),
        simple_route("/problems/{name}", _handler_by_name(problem_pages)),
        Mount("/static", PageFiles(directory=STATIC)),
    ]


def error_page(kind: ProblemType, request_id: str) -> Response:
    page = _html(service_templates(), "error.html", problem=kind, request_id=request_id)
    return Response(page.body, kind.status, headers={**page.headers, "Cache-Control": "no-store"})


def _handler(page: Page) -> Handler:
    async def serve(request: Request) -> Response:
        return _response(request, page)

    return serve


def _welcome(templates: Environment) -> Page:
    return _html(templates, "welcome.html", first_put=first_put())


def _tour_handler(templates: Environment, tour: Tour) -> Handler:
    """The page is rendered once for each language."""
    pages = {code: _tour_page(templates, tour, language_of(code, "latn", _ZONE)) for code in DIRECTIONS}

    async def serve(request: Request) -> Response:
        return _response(request, pages[language_code(request)])

    return serve


def _tour_page(templates: Environment, tour: Tour, language: Language) -> Page:
    page = _html(templates, "tour.html", tour=tour, language=language, others=language.others)
    return page._replace(headers={**page.headers, "Vary": "Accept-Language"})


def _handler_by_name(pages: dict[str, Page]) -> Handler:
    async def serve(request: Request) -> Response:
        name = request.path_parameter("name")
        if not isinstance(name, str) or name not in pages:
            raise UnknownRoute
        return _response(request, pages[name])

    return serve


def _response(request: Request, page: Page) -> Response:
    headers = {**page.headers, "ETag": f'"{page.revision}"'}
    if request.has_revision(page.revision):
        return Response(status_code=304, headers=headers)
    return Response(page.body, headers=headers)


def _page(body: bytes, media_type: str, **headers: str) -> Page:
    """Browsers revalidate the page each time: a release shows at once, an unchanged page is a 304."""
    revision = digest(body)
    return Page(
        body,
        {
            "Content-Type": media_type,
            "Cache-Control": "no-cache",
            **headers,
        },
        revision,
    )


def _html(templates: Environment, name: str, **values: Any) -> Page:
    plain: dict[str, Any] = {"here": None, "language": language_of("en", "latn", _ZONE), "others": {}}
    text = templates.get_template(name).render(version=__version__, **{**plain, **values})
    return _page(
        text.encode(),
        f"{HTML}; charset=utf-8",
        **{"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Referrer-Policy": "no-referrer"},
    )


def _problems_page(templates: Environment) -> Page:
    problems = sorted(PROBLEM_TYPES.values(), key=lambda kind: kind.status)
    return _html(templates, "problems.html", here="/problems", problems=problems)


def _problem_page(templates: Environment, kind: ProblemType) -> Page:
    phrase = HTTPStatus(kind.status).phrase
    document = json.dumps(sample_problem(kind.name), indent=2, ensure_ascii=False)
    return _html(
        templates,
        "problem.html",
        here="/problems",
        problem=kind,
        phrase=phrase,
        example=f"HTTP/1.1 {kind.status} {phrase}\nContent-Type: {MEDIA_TYPE}\n\n{document}",
        operations=operations_with(kind),
    )


@cache
def service_templates() -> Environment:
    """Return the templates with the filters that only these pages use."""
    environment = templates().overlay()
    environment.filters = {**environment.filters, "code_spans": code_spans, "side": _side}
    return environment


def _side(status: int) -> str:
    return "client" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server"


def code_spans(text: str) -> Markup:
    """Mark text between backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )
