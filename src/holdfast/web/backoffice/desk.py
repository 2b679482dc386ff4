"""The door of the back office: who comes in, what they may, and that a form is one of ours."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import DatabaseAway, Refusal
from holdfast.domain.permissions import Permission
from holdfast.domain.staff import Preferences
from holdfast.operations.deliveries import Announcements, News
from holdfast.operations.login import Login, SignedIn
from holdfast.web.backoffice.visits import (
    FORM_COOKIE,
    LANGUAGE_COOKIE,
    PREFIX,
    SESSION_COOKIE,
    Visit,
)
from holdfast.web.backoffice.ways import SAFE, to_sign_in, without_slash
from holdfast.web.errors import log_failure
from holdfast.web.html.cookies import Cookies
from holdfast.web.html.forms import PUBLIC_FIELDS, SIGNED_IN_FIELDS, read_form
from holdfast.web.html.language import DIRECTIONS, language_of, preferred
from holdfast.web.html.own_forms import refuse_foreign
from holdfast.web.html.translation import translate_refusal
from holdfast.web.page_routes import PageApp, page_route
from holdfast.web.problem_types import INTERNAL_ERROR
from holdfast.web.problems import add_problem_headers, problem_type
from holdfast.web.refusals import MethodNotAllowed, NotYours, UnknownRoute
from holdfast.web.request import BODY_LIMIT, PUBLIC_BODY_LIMIT, Request

Show = Callable[[Visit], Awaitable[Response]]
Guarded = tuple[Permission | None, Show]

_MISTYPED = PREFIX + "/{token}"
"""The route of what may be a set-up link with a slip in it: the token in it is not for the log."""
_HTTPS_FOR_A_YEAR = "max-age=31536000"


class Desk:
    def __init__(
        self, signing_in: Login, announcing: Announcements, cookies: Cookies, time_zone: str
    ) -> None:
        self.signing_in = signing_in
        self.cookies = cookies
        self._announcing = announcing
        self._time_zone = time_zone

    def page(
        self, path: str, permission: Permission | None, *, limit: int = BODY_LIMIT, **methods: Show | Guarded
    ) -> Route:
        """Behind the sign-in. A method may need another permission than the page: ``POST=(SELL, act)``.

        None: whoever is signed in.
        """
        guarded = {
            name: shown if isinstance(shown, tuple) else (permission, shown)
            for name, shown in methods.items()
        }
        return page_route(PREFIX, path, PageResource(self, path, guarded, limit, is_open=False))

    def open_page(self, path: str, **methods: Show) -> Route:
        """For whoever comes."""
        guarded: dict[str, Guarded] = {name: (None, show) for name, show in methods.items()}
        return page_route(PREFIX, path, PageResource(self, path, guarded, PUBLIC_BODY_LIMIT, is_open=True))

    async def news_for(self, visit: Visit) -> News | None:
        if not visit.may(Permission.SEE_WEBHOOKS):
            return None
        return await self._announcing.news(visit.staff.failures_seen_at)

    async def visit(self, request: Request) -> Visit:
        token = self.cookies.read(request, SESSION_COOKIE)
        signed_in = None if token is None else await self._signed_in(request, token)
        if token is None or signed_in is None:
            return self.visit_of_stranger(request)
        return self._visit(request, signed_in, token, signed_in.staff.preferences)

    def visit_of_stranger(self, request: Request) -> Visit:
        token = self.cookies.read(request, FORM_COOKIE) or secrets.token_urlsafe(24)
        return self._visit(request, None, token, Preferences(self._language_of_stranger(request)))

    def _visit(
        self, request: Request, signed_in: SignedIn | None, token: str, preferences: Preferences
    ) -> Visit:
        language = language_of(preferences.language, preferences.digits, self._time_zone)
        return Visit(self, request, signed_in, language, token, preferences)

    async def _signed_in(self, request: Request, token: str) -> SignedIn | None:
        """A notice is for a page that is looked at: neither for a part of one nor for a stream."""
        values = request.header_values
        is_page = b"text/html" in values.get(b"accept", b"") and b"hx-request" not in values
        is_change = request.method not in SAFE
        return await self.signing_in.find(
            token, takes_notice=is_page and not is_change, is_click=is_page or is_change
        )

    def remember_form(self, visit: Visit, response: Response) -> None:
        """So that the form of a stranger is known when it comes back."""
        if visit.signed_in is None:
            self.cookies.set(response, FORM_COOKIE, visit.token)

    def let_in(self, response: Response, token: str) -> None:
        self.cookies.set(response, SESSION_COOKIE, token)
        self.cookies.drop(response, FORM_COOKIE)

    def let_out(self, response: Response) -> None:
        self.cookies.drop(response, SESSION_COOKIE)

    def sent(self, response: Response) -> Response:
        """With what every answer of the back office says, whatever page it is."""
        if self.cookies.is_https:
            response.headers["Strict-Transport-Security"] = _HTTPS_FOR_A_YEAR
        return response

    def speak(self, response: Response, code: str) -> None:
        """To a stranger, from now on."""
        self.cookies.keep(response, LANGUAGE_COOKIE, code)

    def _language_of_stranger(self, request: Request) -> str:
        chosen = self.cookies.read(request, LANGUAGE_COOKIE)
        if chosen in DIRECTIONS:
            return chosen
        return preferred(request.header_values.get(b"accept-language", b"").decode("latin-1"))


class PageResource(PageApp):
    """A path, and what each method shows there. Refusals are told on a page, in the person's language."""

    def __init__(
        self, desk: Desk, path: str, methods: dict[str, Guarded], limit: int, *, is_open: bool
    ) -> None:
        super().__init__(path)
        self.is_open = is_open
        self._desk = desk
        self._methods = methods
        self._limit = limit

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._methods)

    def permission_of(self, method: str) -> Permission | None:
        return self._methods["GET" if method == "HEAD" else method][0]

    async def respond(self, request: Request) -> Response:
        return self._desk.sent(await self._answered(request))

    async def _answered(self, request: Request) -> Response:
        try:
            visit = await self._desk.visit(request)
        except DatabaseAway as away:
            return await refused(self._desk.visit_of_stranger(request), away)
        if visit.signed_in is None and not self.is_open:
            return to_sign_in(visit)
        try:
            return await self._shown(visit)
        except ClientDisconnect:
            raise
        except Exception as failure:  # noqa: BLE001 - every failure becomes a page
            return await refused(visit, failure)

    async def _shown(self, visit: Visit) -> Response:
        request = visit.request
        request.refuse_too_many_parameters()
        guarded = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if guarded is None:
            raise MethodNotAllowed(request.method, self._methods)
        permission, show = guarded
        if permission is not None and not visit.may(permission):
            raise NotYours
        if request.method not in SAFE:
            fields = PUBLIC_FIELDS if self.is_open else SIGNED_IN_FIELDS
            visit.form = await read_form(request, self._limit, fields)
            refuse_foreign(request, visit.form, visit.token)
        return await show(visit)


class Elsewhere(PageApp):
    """Whatever else is asked for below the back office."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(_MISTYPED)
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        return self._desk.sent(await self._answered(request))

    async def _answered(self, request: Request) -> Response:
        if request.path.endswith("/"):
            return without_slash(self._desk.visit_of_stranger(request))
        try:
            visit = await self._desk.visit(request)
        except DatabaseAway as away:
            return await refused(self._desk.visit_of_stranger(request), away)
        if visit.signed_in is None:
            return to_sign_in(visit)
        return await refused(visit, UnknownRoute())


async def refused(visit: Visit, failure: Exception) -> Response:
    """A page that says why, for a person. What comes of a fault of ours is in the log."""
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        log_failure(visit.request.request_id, failure)
    told = translate_refusal(failure, visit.language) if isinstance(failure, Refusal) else None
    if isinstance(failure, DatabaseAway):
        visit.signed_in = None
    page = await visit.render("refused.html", kind.status, told=told, kind=kind)
    add_problem_headers(page, failure)
    return page
