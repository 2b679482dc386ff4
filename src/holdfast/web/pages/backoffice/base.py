"""One request of a person to the back office: who they are, how they are spoken to, what they see."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from holdfast import __version__
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.booking import Buyer
from holdfast.domain.errors import DatabaseUnavailable, DomainError, InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.domain.staff import Preferences, Staff
from holdfast.domain.status import Caller
from holdfast.operations.deliveries import FailureNotices, UnseenFailures
from holdfast.operations.login import Login, StaffSession
from holdfast.web.api.bodies import BuyerDetails, valid
from holdfast.web.errors import log_failure
from holdfast.web.http_errors import Forbidden, MethodNotAllowed, UnknownRoute
from holdfast.web.pages.base import PageApp, page_route
from holdfast.web.pages.forms import (
    PUBLIC_FIELDS,
    SIGNED_IN_FIELDS,
    Form,
    check_csrf,
    csrf_token,
    parse_fields,
    read_form,
)
from holdfast.web.pages.i18n import (
    DIRECTIONS,
    NAMES,
    Language,
    accepted_language,
    language_of,
    translate,
    translate_error,
)
from holdfast.web.pages.live import EVENT_STREAM, event
from holdfast.web.pages.sessions import PAGE_HEADERS, Cookies, html_response
from holdfast.web.pages.templates import templates
from holdfast.web.problems import INTERNAL_ERROR, add_problem_headers, problem_type
from holdfast.web.request import BODY_LIMIT, PUBLIC_BODY_LIMIT, Request

PREFIX = "/backoffice"
SESSION_COOKIE = "holdfast_session"
FORM_COOKIE = "holdfast_form"
LANGUAGE_COOKIE = "holdfast_language"


class Notice(NamedTuple):
    """What the next page tells first."""

    text: str
    kind: str = "done"
    """``done``, ``warning`` or ``refused``."""


class Visit:
    def __init__(
        self,
        desk: Desk,
        request: Request,
        signed_in: StaffSession | None,
        language: Language,
        token: str,
        preferences: Preferences,
    ) -> None:
        self.desk = desk
        self.request = request
        self.signed_in = signed_in
        self.language = language
        self.preferences = preferences
        self.token = token
        """Of the session, or of the form cookie where nobody is signed in yet."""
        self.form = Form(())
        self.notice = _left(signed_in)

    @property
    def staff(self) -> Staff:
        """For pages behind the sign-in."""
        assert self.signed_in is not None
        return self.signed_in.staff

    @property
    def author(self) -> Author:
        return Author(ActorKind.STAFF, self.staff.email, self.request.request_id)

    @property
    def caller(self) -> Caller:
        return Caller.ADMIN if self.may(Permission.REVOKE_SALE) else Caller.STAFF

    @property
    def is_fragment(self) -> bool:
        """Whether a script asks for a part of a page."""
        return b"hx-request" in self.request.header_values

    @property
    def is_stream(self) -> bool:
        """Whether a script listens for what is to come."""
        return b"text/event-stream" in self.request.header_values.get(b"accept", b"")

    @property
    def csrf(self) -> str:
        return csrf_token(self.token)

    @property
    def query(self) -> Form:
        """The query, read as leniently as a form: a wrong filter filters nothing."""
        return Form(parse_fields(self.request.raw_query))

    @property
    def address(self) -> str:
        """Path and query, to come back to."""
        query = self.request.raw_query.decode("latin-1")
        return f"{self.request.path}?{query}" if query else self.request.path

    def may(self, permission: Permission) -> bool:
        return self.signed_in is not None and self.staff.may(permission)

    def _(self, text: str, /, **values: Any) -> str:
        return self.language.gettext(text, **values)

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        return self.language.ngettext(one, many, num, **values)

    async def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """A whole page, or the part that a script asked for, if the template is one."""
        news = None if self.is_fragment else await self.desk.news_for(self)
        text = (
            templates()
            .get_template(f"backoffice/{template}")
            .render(
                visit=self,
                language=self.language,
                languages=NAMES,
                may=self.may,
                permission=Permission,
                csrf=self.csrf,
                now=None if self.signed_in is None else self.signed_in.at,
                news=news,
                version=__version__,
                **values,
            )
        )
        response = html_response(text, status)
        self.desk.remember_form(self, response)
        return response

    async def go(self, path: str, notice: str | None = None, kind: str = "done") -> Response:
        """On to another page, which tells the notice once."""
        if notice is not None and self.signed_in is not None:
            left = json.dumps([notice, kind])
            await self.desk.login.leave_notice(self.signed_in.session_id, left)
        return RedirectResponse(path, 303, headers=PAGE_HEADERS)


def _left(signed_in: StaffSession | None) -> Notice | None:
    if signed_in is None or signed_in.notice is None:
        return None
    return Notice(*json.loads(signed_in.notice))


# Where whoever asks is sent instead.

SAFE = frozenset({"GET", "HEAD"})


def local_path(path: str) -> str:
    """Where to go on to, if it is one of our pages."""
    is_ours = path.startswith(PREFIX) and "\\" not in path
    return path if is_ours and path.isprintable() else PREFIX


def without_slash(visit: Visit) -> Response:
    """There is no page whose path ends in a slash, but people type one."""
    path, query = visit.address.partition("?")[::2]
    address = path.rstrip("/") + (f"?{query}" if query else "")
    return RedirectResponse(address, 308, headers=PAGE_HEADERS)


def to_sign_in(visit: Visit) -> Response:
    """Only what can be asked for again is gone back to. A script would follow a redirection unseen, and take
    the sign-in for what it has asked for: it is told in its own way."""
    if visit.is_stream:
        return Response(event("ended", b"{}"), headers={**PAGE_HEADERS, "Content-Type": EVENT_STREAM})
    back = visit.address if visit.request.method in SAFE else PREFIX
    if visit.is_fragment:
        back = _page_of_script(visit)
    address = f"{PREFIX}/sign-in" + ("" if back == PREFIX else f"?next={quote(back, safe='')}")
    if visit.is_fragment:
        return Response(status_code=204, headers={**PAGE_HEADERS, "HX-Redirect": address})
    return RedirectResponse(address, 303, headers=PAGE_HEADERS)


def _page_of_script(visit: Visit) -> str:
    """The page on which the script runs, not the part of it that it asks for."""
    told = visit.request.header_values.get(b"hx-current-url", b"").decode("latin-1")
    try:
        page = urlsplit(told)
    except ValueError:
        return PREFIX
    return local_path(f"{page.path}?{page.query}" if page.query else page.path)


# The door of the back office: who comes in, what they may, and that a form is one of ours.

Show = Callable[[Visit], Awaitable[Response]]
Guarded = tuple[Permission | None, Show]

_MISTYPED = PREFIX + "/{token}"
"""The route of what may be a set-up link with a slip in it: the token in it is not for the log."""
_HTTPS_FOR_A_YEAR = "max-age=31536000"


class Desk:
    def __init__(self, login: Login, announcing: FailureNotices, cookies: Cookies, time_zone: str) -> None:
        self.login = login
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

    async def news_for(self, visit: Visit) -> UnseenFailures | None:
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
        self, request: Request, signed_in: StaffSession | None, token: str, preferences: Preferences
    ) -> Visit:
        language = language_of(preferences.language, preferences.digits, self._time_zone)
        return Visit(self, request, signed_in, language, token, preferences)

    async def _signed_in(self, request: Request, token: str) -> StaffSession | None:
        """A notice is for a page that is looked at: neither for a part of one nor for a stream."""
        values = request.header_values
        is_page = b"text/html" in values.get(b"accept", b"") and b"hx-request" not in values
        is_change = request.method not in SAFE
        return await self.login.find(
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
        return accepted_language(request.header_values.get(b"accept-language", b"").decode("latin-1"))


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
        except DatabaseUnavailable as away:
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
            raise Forbidden
        if request.method not in SAFE:
            fields = PUBLIC_FIELDS if self.is_open else SIGNED_IN_FIELDS
            visit.form = await read_form(request, self._limit, fields)
            check_csrf(request, visit.form, visit.token)
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
        except DatabaseUnavailable as away:
            return await refused(self._desk.visit_of_stranger(request), away)
        if visit.signed_in is None:
            return to_sign_in(visit)
        return await refused(visit, UnknownRoute())


async def refused(visit: Visit, failure: Exception) -> Response:
    """A page that says why, for a person. What comes of a fault of ours is in the log."""
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        log_failure(visit.request.request_id, failure)
    told = translate_error(failure, visit.language) if isinstance(failure, DomainError) else None
    if isinstance(failure, DatabaseUnavailable):
        visit.signed_in = None
    page = await visit.render("refused.html", kind.status, told=told, kind=kind)
    add_problem_headers(page, failure)
    return page


# What staff fill in when they sell: a buyer, an end.

BUYER_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")
_NO_TIME = "This must be a date and a time."


def named_buyer(visit: Visit) -> Buyer:
    """What was left empty is missing, not too short."""
    sent = {name: visit.form.raw(name) for name in BUYER_FIELDS if visit.form.text(name)}
    return valid(BuyerDetails, sent).buyer()


def chosen_end(visit: Visit) -> datetime | None:
    """None: one period later, as was left open. A browser knows no seconds."""
    text = visit.form.text("until")
    if not text:
        return None
    try:
        return visit.language.at(text).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise InvalidInput.at("/until", _NO_TIME) from None


def faults_by_field(visit: Visit, refusal: InvalidInput) -> dict[str, str]:
    return {fault.pointer.strip("/"): translate(fault.message, visit.language) for fault in refusal.faults}
