"""Pages for people: welcome, the API, the problems. Each is made once, when the routes are."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from holdfast import __version__
from holdfast.web.call import JSON, Call, asgi_scope
from holdfast.web.html.language import DIRECTIONS, Language, language_of
from holdfast.web.html.templates import STATIC, digest, templates
from holdfast.web.openapi import examples as examples
from holdfast.web.openapi.document import openapi_document, openapi_json
from holdfast.web.problem_types import PROBLEM_TYPES, ProblemType
from holdfast.web.problems import MEDIA_TYPE
from holdfast.web.refusals import MethodNotAllowed, UnknownRoute
from holdfast.web.routing import Handler, Place, resource
from holdfast.web.tour import Tour, language_code

HTML = "text/html"
_ZONE = "UTC"
"""These pages tell no time."""
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
    """The files that pages load. What is not there is refused like everything else."""

    _PATH = "/static"

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    def takes(self, call: Call) -> bool:
        return call.path.startswith(f"{self._PATH}/")

    async def answer(self, call: Call) -> Response:
        call.route = self._PATH
        path = self.get_path({"path": call.path, "root_path": self._PATH})
        try:
            response = await self.get_response(path, asgi_scope(call))
        except HTTPException as failure:
            if failure.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
                raise MethodNotAllowed(call.method, ("GET", "HEAD")) from None
            raise UnknownRoute from None
        versioned = call.exchange.query.startswith(b"v=")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if versioned else "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


class _Operation(NamedTuple):
    method: str
    path: str
    link: str


def page_places(tour: Tour | None = None) -> list[Place]:
    """``tour``: of a demo, which begins with what there is to try."""
    templates = service_templates()
    problem_pages = {name: _problem_page(templates, kind) for name, kind in PROBLEM_TYPES.items()}
    return [
        resource("/", GET=_serving(_welcome(templates)) if tour is None else _guiding(templates, tour)),
        resource("/docs", GET=_serving(_html(templates, "docs.html", here="/docs", viewer=VIEWER))),
        resource("/openapi.json", GET=_serving(_page(openapi_json(), JSON))),
        resource("/problems", GET=_serving(_problems_page(templates))),
        resource("/problems/{name}", GET=_serving_by_name(problem_pages)),
        PageFiles(),
    ]


def _serving(page: Page) -> Handler:
    async def serve(call: Call) -> Response:
        return _response(call, page)

    return serve


def _welcome(templates: Environment) -> Page:
    return _html(templates, "welcome.html", first_put=examples.first_put())


def _guiding(templates: Environment, tour: Tour) -> Handler:
    """In each language once."""
    pages = {code: _tour_page(templates, tour, language_of(code, "latn", _ZONE)) for code in DIRECTIONS}

    async def serve(call: Call) -> Response:
        return _response(call, pages[language_code(call)])

    return serve


def _tour_page(templates: Environment, tour: Tour, language: Language) -> Page:
    page = _html(templates, "tour.html", tour=tour, language=language, others=language.others)
    return page._replace(headers={**page.headers, "Vary": "Accept-Language"})


def _serving_by_name(pages: dict[str, Page]) -> Handler:
    async def serve(call: Call) -> Response:
        name = call.path_parameter("name")
        if not isinstance(name, str) or name not in pages:
            raise UnknownRoute
        return _response(call, pages[name])

    return serve


def _response(call: Call, page: Page) -> Response:
    known = call.precondition.none_match
    if known is not None and (page.revision in known or "*" in known):
        return Response(status_code=304, headers=page.headers)
    return Response(page.body, headers=page.headers)


def _page(body: bytes, media_type: str, **headers: str) -> Page:
    """Browsers ask again each time, and a release shows at once; an unchanged page is a short answer."""
    revision = digest(body)
    return Page(
        body,
        {
            "Content-Type": media_type,
            "Cache-Control": "no-cache",
            "ETag": f'"{revision}"',
            "X-Content-Type-Options": "nosniff",
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
    document = json.dumps(examples.problem(kind.name), indent=2, ensure_ascii=False)
    return _html(
        templates,
        "problem.html",
        here="/problems",
        problem=kind,
        phrase=phrase,
        example=f"HTTP/1.1 {kind.status} {phrase}\nContent-Type: {MEDIA_TYPE}\n\n{document}",
        operations=_operations_with(kind),
    )


def _operations_with(kind: ProblemType) -> list[_Operation]:
    document = openapi_document()
    answers = document["components"]["responses"]
    return [
        _Operation(method.upper(), path, f"/docs#/{operation['tags'][0]}/{operation['operationId']}")
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if any(_tells_of(kind, answers, answer) for answer in operation["responses"].values())
    ]


def _tells_of(kind: ProblemType, answers: dict[str, Any], answer: dict[str, Any]) -> bool:
    name = answer.get("$ref", "").rpartition("/")[2]
    return name in answers and kind.name in answers[name]["content"][MEDIA_TYPE]["examples"]


def service_templates() -> Environment:
    """With what only these pages need."""
    environment = templates().overlay()
    environment.filters = {**environment.filters, "code_spans": code_spans, "side": _side}
    return environment


def _side(status: int) -> str:
    return "client" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server"


def code_spans(text: str) -> Markup:
    """What stands between backticks is code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )
