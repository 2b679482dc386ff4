"""Declare pages, for the back office and the storefront.

A page is a function with a decorator::

    pages = Pages(StaffRequest)

    @pages.get("/projects/{slug}/units/{code}", Permission.SEE_UNITS)
    async def show_unit(request: StaffRequest, slug: str, code: str) -> Response:

Path parameters are parsed and passed in the order of the path. A form is read and its CSRF token checked
before the function is called. Every error becomes a page in the visitor's language. A side is a subclass of
``PageRequest``: it says how visitors are identified, who is admitted, and which headers, cookies and
templates its pages have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from holdfast import __version__
from holdfast.domain.errors import DomainError, Fault, InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.web.api.parameters import PATH_PARAMETERS, read_path
from holdfast.web.auth import check_public_rate
from holdfast.web.errors import Forbidden, ForeignForm, MethodNotAllowed, UnknownRoute
from holdfast.web.pages import forms
from holdfast.web.pages.base import PAGE_HEADERS
from holdfast.web.pages.i18n import DIRECTIONS, NAMES, Language, accepted_language, translate_error
from holdfast.web.pages.templates import templates
from holdfast.web.problems import INTERNAL_ERROR, add_problem_headers, log_failure, problem_type
from holdfast.web.request import BODY_LIMIT, PUBLIC_BODY_LIMIT, Request

Handler = Callable[..., Awaitable[Response]]
H = TypeVar("H", bound=Handler)

SAFE_METHODS = frozenset({"GET", "HEAD"})
LANGUAGE_COOKIE = "holdfast_language"


class PageRequest(Request):
    prefix: ClassVar[str]
    template_directory: ClassVar[str]

    language: Language
    """Set by ``identify``, as is ``csrf_secret``."""
    csrf_secret: str
    """The secret of a cookie, from which the CSRF tokens of the visitor's forms follow."""
    is_anonymous = True
    form: forms.Form = forms.Form(())  # type: ignore[assignment]  # Starlette's parser knows no limits.
    """The form that was submitted; empty where none was."""

    async def identify(self) -> None:
        """Find the visitor. ``language`` and ``csrf_secret`` are set first: the pages of errors need them."""
        raise NotImplementedError

    async def admit(self, *, is_public: bool) -> Response | None:
        """Return a redirect for a visitor who must go elsewhere first; raise an error for one to reject."""
        return None

    def may(self, permission: Permission) -> bool:
        """Return whether the visitor has a permission; nobody has any unless a side says so."""
        return False

    @property
    def page_headers(self) -> Mapping[str, str]:
        return PAGE_HEADERS

    async def layout_values(self) -> dict[str, Any]:
        return {}

    def set_cookies(self, response: Response) -> None:
        """Remember the visitor; called for every rendered page."""

    def route_for_logs(self, path: str) -> str:
        return path

    def path_error(self, faults: list[Fault]) -> Exception:
        return InvalidInput(faults)

    @property
    def csrf(self) -> str:
        return forms.csrf_token(self.csrf_secret)

    @property
    def is_fragment(self) -> bool:
        """Whether a script asks for a part of a page."""
        return b"hx-request" in self.header_values

    @property
    def query(self) -> forms.Form:
        """The query, read as leniently as a form: a wrong filter filters nothing."""
        return forms.Form(forms.parse_fields(self.raw_query))

    @property
    def full_path(self) -> str:
        query = self.raw_query.decode("latin-1")
        return f"{self.path}?{query}" if query else self.path

    def preferred_language(self) -> str:
        """Return the code of the language that was chosen before, or that the browser is set to."""
        chosen = self.context.cookies.read(self, LANGUAGE_COOKIE)
        return chosen if chosen in DIRECTIONS else accepted_language(self.header(b"accept-language"))

    def _(self, text: str, /, **values: Any) -> str:
        return self.language.gettext(text, **values)

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        return self.language.ngettext(one, many, num, **values)

    def error_text(self, error: DomainError) -> str:
        return translate_error(error, self.language)

    async def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        found = templates().get_template(f"{self.template_directory}/{template}")
        text = found.render(
            request=self,
            language=self.language,
            languages=NAMES,
            csrf=self.csrf,
            version=__version__,
            **await self.layout_values(),
            **values,
        )
        response = HTMLResponse(text, status, headers=self.page_headers)
        self.set_cookies(response)
        return response

    async def render_error(self, error: Exception) -> Response:
        """Render the page that tells a person of an error. Unexpected ones are logged."""
        kind = problem_type(error)
        if kind is INTERNAL_ERROR:
            log_failure(self.request_id, error)
        page = await self.render(
            "error.html",
            kind.status,
            kind=kind,
            message=self.error_text(error) if isinstance(error, DomainError) else None,
            back=self.path.rpartition("/")[0] if isinstance(error, ForeignForm) else None,
        )
        add_problem_headers(page, error)
        return page

    def redirect(self, path: str, status: int = 303) -> Response:
        return RedirectResponse(path, status, headers=self.page_headers)


@dataclass(frozen=True, slots=True)
class Page:
    method: str
    path: str
    handler: Handler
    permission: Permission | None
    is_public: bool
    body_limit: int
    reads_form: bool = True
    back_to: str | None = None

    async def respond(self, request: PageRequest) -> Response:
        if self.permission is not None and not request.may(self.permission):
            raise Forbidden
        if self.reads_form and request.method not in SAFE_METHODS:
            fields = forms.PUBLIC_FIELDS if self.is_public else forms.SIGNED_IN_FIELDS
            request.form = await forms.read_form(request, self.body_limit, fields)
            forms.check_csrf(request, request.form, request.csrf_secret)
        faults: list[Fault] = []
        arguments = [_parse_parameter(request, name, faults) for name in request.path_params]
        if faults:
            raise request.path_error(faults)
        return await self.handler(request, *arguments)


def _parse_parameter(request: PageRequest, name: str, faults: list[Fault]) -> Any:
    if name != "token":
        return read_path(request, PATH_PARAMETERS[name], faults)
    token = request.path_parameter(name)
    # A token that is no UTF-8 opens nothing, like any other wrong one.
    return token if isinstance(token, str) else ""


class Pages:
    """The pages of one noun on one side, in the order in which they are declared."""

    def __init__(self, request_class: type[PageRequest], *, is_public: bool = False) -> None:
        """``is_public``: pages need no sign-in unless they say so."""
        self.request_class = request_class
        self.declared: list[Page] = []
        self._is_public = is_public

    def get(self, path: str, permission: Permission | None = None, **options: Any) -> Callable[[H], H]:
        return self._declare("GET", path, permission, **options)

    def post(self, path: str, permission: Permission | None = None, **options: Any) -> Callable[[H], H]:
        return self._declare("POST", path, permission, **options)

    def _declare(
        self,
        method: str,
        path: str,
        permission: Permission | None,
        *,
        is_public: bool | None = None,
        body_limit: int | None = None,
        reads_form: bool = True,
        back_to: str | None = None,
    ) -> Callable[[H], H]:
        """Return a decorator that declares a page.

        ``reads_form``: if not, the form may come from another site, and is not read. ``back_to``: the page
        that is shown to whoever reloads the response to a form, which browsers do by GET.
        """
        prefix = self.request_class.prefix
        is_open = self._is_public if is_public is None else is_public
        limit = body_limit or (PUBLIC_BODY_LIMIT if is_open else BODY_LIMIT)
        target = None if back_to is None else prefix + back_to

        def declare(handler: H) -> H:
            page = Page(method, prefix + path, handler, permission, is_open, limit, reads_form, target)
            self.declared.append(page)
            return handler

        return declare


class PagePath:
    """The pages of one path, as an ASGI application."""

    def __init__(self, path: str, request_class: type[PageRequest], pages: Mapping[str, Page]) -> None:
        self.path = path
        self.pages = pages
        self.request_class = request_class
        self.is_public = any(page.is_public for page in pages.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self.request_class(scope, receive, send)
        scope["state"]["route"] = request.route_for_logs(self.path)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: PageRequest) -> Response:
        try:
            await request.identify()
            is_public = self._is_public(request)
            if is_public or request.is_anonymous:
                await check_public_rate(request)
            request.check_query()
            return await request.admit(is_public=is_public) or await self._show(request)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - every error becomes a page
            return await request.render_error(error)

    def _is_public(self, request: PageRequest) -> bool:
        return self.is_public

    async def _show(self, request: PageRequest) -> Response:
        page = self.pages.get("GET" if request.method == "HEAD" else request.method)
        if page is None:
            raise MethodNotAllowed(request.method, self.pages)
        return await page.respond(request)


class UnknownPage(PagePath):
    """Every other path below the prefix of a side."""

    def __init__(self, request_class: type[PageRequest], *, has_start: bool) -> None:
        # It may be a link with a slip in it: the token in it is not for the log.
        super().__init__(request_class.prefix + "/{token}", request_class, {})
        self._has_start = has_start

    def _is_public(self, request: PageRequest) -> bool:
        return request.path.endswith("/")

    async def _show(self, request: PageRequest) -> Response:
        """No page has a path that ends in a slash, but people type one."""
        path = request.path.rstrip("/")
        if request.path.endswith("/") and (self._has_start or path != request.prefix):
            query = request.full_path.partition("?")[2]
            return request.redirect(f"{path}?{query}" if query else path, 308)
        raise UnknownRoute


def mount_pages(request_class: type[PageRequest], groups: Sequence[Pages]) -> list[BaseRoute]:
    """Return the routes of a side: one for each path, and one for every other path below its prefix."""
    prefix = request_class.prefix
    by_path: dict[str, dict[str, Page]] = {}
    for page in (page for group in groups for page in group.declared):
        by_path.setdefault(page.path, {})[page.method] = page
    for path, pages in by_path.items():
        target = next((page.back_to for page in pages.values() if page.back_to), None)
        if target is not None and "GET" not in pages:
            pages["GET"] = _redirect_page(path, by_path[target]["GET"])
    apps = {path: PagePath(path, request_class, pages) for path, pages in by_path.items()}
    start = apps.pop(prefix, None)
    unknown = UnknownPage(request_class, has_start=start is not None)
    routes = [Route(path.removeprefix(prefix), app) for path, app in apps.items()]
    return [
        Route(prefix, start or unknown),
        Mount(prefix, Router(routes, redirect_slashes=False, default=unknown)),
    ]


def _redirect_page(path: str, target: Page) -> Page:
    """Return the page that leads to ``target`` from a path that only a form is sent to."""

    async def redirect(request: PageRequest, *_: Any) -> Response:
        return request.redirect(target.path.format(**request.path_params))

    return Page("GET", path, redirect, target.permission, target.is_public, 0)
