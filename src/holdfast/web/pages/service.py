"""Pages for people: welcome, the API, the problems. Each is made once, when the routes are."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from holdfast import __version__
from holdfast.web.errors import UnknownRoute
from holdfast.web.openapi.document import openapi_json, operations_with
from holdfast.web.openapi.schemas import PROJECT, first_put, sample_problem
from holdfast.web.pages.base import PublicPage
from holdfast.web.pages.i18n import DIRECTIONS, accepted_language, language_of
from holdfast.web.pages.templates import STATIC, digest, templates
from holdfast.web.pages.tour import Tour
from holdfast.web.problems import MEDIA_TYPE, PROBLEM_TYPES, ProblemType
from holdfast.web.request import JSON, Request

_ZONE = "UTC"
"""These pages show no times."""
VIEWER = "vendor/swagger-ui-5.34.1"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


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
        lifetime = "public, max-age=31536000, immutable" if is_versioned else "no-cache"
        response.headers["Cache-Control"] = lifetime
        return response


def service_routes(public_url: str | None, tour: Tour | None = None) -> list[BaseRoute]:
    """``tour``: of a demo, which begins with what there is to try."""
    put = first_put(public_url) if public_url else first_put()
    welcome = _html("welcome.html", project=PROJECT, first_put=put)
    docs = _html("docs.html", here="/docs", viewer=VIEWER)
    document = _page(openapi_json(public_url), JSON)
    problems = sorted(PROBLEM_TYPES.values(), key=lambda kind: kind.status)
    problem_list = _html("problems.html", here="/problems", problems=problems)
    problem_pages = {name: _problem_page(kind) for name, kind in PROBLEM_TYPES.items()}

    def choose_problem(request: Request) -> Page:
        name = request.path_parameter("name")
        if not isinstance(name, str) or name not in problem_pages:
            raise UnknownRoute
        return problem_pages[name]

    return [
        _route("/", lambda _: welcome) if tour is None else _tour_route(tour),
        _route("/docs", lambda _: docs),
        _route("/openapi.json", lambda _: document),
        _route("/problems", lambda _: problem_list),
        _route("/problems/{name}", choose_problem),
        Mount("/static", PageFiles(directory=STATIC)),
    ]


def error_page(kind: ProblemType, request_id: str) -> Response:
    page = _html("error.html", problem=kind, request_id=request_id)
    return Response(page.body, kind.status, headers={**page.headers, "Cache-Control": "no-store"})


def _route(path: str, choose: Callable[[Request], Page]) -> Route:
    """Browsers revalidate a page each time: a release shows at once, an unchanged page is a 304."""

    async def show(request: Request) -> Response:
        page = choose(request)
        headers = {**page.headers, "Cache-Control": "no-cache", "ETag": f'"{page.revision}"'}
        if request.has_revision(page.revision):
            return Response(status_code=304, headers=headers)
        return Response(page.body, headers=headers)

    return Route(path, PublicPage(path, show))


def _tour_route(tour: Tour) -> Route:
    """Render the page once for each language."""
    pages = {}
    for code in DIRECTIONS:
        language = language_of(code, "latn", _ZONE)
        page = _html("tour.html", tour=tour, language=language, others=language.others)
        pages[code] = page._replace(headers={**page.headers, "Vary": "Accept-Language"})
    return _route("/", lambda request: pages[_language_code(request)])


def _html(name: str, **values: Any) -> Page:
    plain: dict[str, Any] = {"here": None, "language": language_of("en", "latn", _ZONE), "others": {}}
    text = templates().get_template(name).render(version=__version__, **{**plain, **values})
    return _page(
        text.encode(),
        "text/html; charset=utf-8",
        **{"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Referrer-Policy": "no-referrer"},
    )


def _page(body: bytes, media_type: str, **headers: str) -> Page:
    return Page(body, {"Content-Type": media_type, **headers}, digest(body))


def _problem_page(kind: ProblemType) -> Page:
    phrase = HTTPStatus(kind.status).phrase
    document = json.dumps(sample_problem(kind.name), indent=2, ensure_ascii=False)
    return _html(
        "problem.html",
        here="/problems",
        problem=kind,
        phrase=phrase,
        example=f"HTTP/1.1 {kind.status} {phrase}\nContent-Type: {MEDIA_TYPE}\n\n{document}",
        operations=operations_with(kind),
    )


def _language_code(request: Request) -> str:
    """Return the language that a link names, or that the browser is set to."""
    chosen = next((value for name, value in request.query_items() if name == "lang"), None)
    if chosen in DIRECTIONS:
        return str(chosen)
    return accepted_language(request.header(b"accept-language"))
