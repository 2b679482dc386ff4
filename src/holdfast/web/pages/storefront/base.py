"""One request of a buyer: how they are known, how they are spoken to, what they see."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from holdfast import __version__
from holdfast.domain.errors import DomainError, Fault
from holdfast.domain.project import slug_fault
from holdfast.domain.unit import code_fault
from holdfast.web.auth import Guard
from holdfast.web.client_address import ClientAddresses
from holdfast.web.errors import log_failure
from holdfast.web.http_errors import ForeignForm, MalformedBody, MethodNotAllowed, UnknownRoute
from holdfast.web.pages.base import PageApp, page_route
from holdfast.web.pages.forms import (
    PUBLIC_FIELDS,
    Form,
    check_csrf,
    csrf_token,
    is_of_own_site,
    parse_fields,
    read_form,
)
from holdfast.web.pages.i18n import (
    DIRECTIONS,
    NAMES,
    Language,
    accepted_language,
    language_of,
    translate_error,
)
from holdfast.web.pages.sessions import PAGE_HEADERS, Cookies, headers_with
from holdfast.web.pages.storefront.visitors import VISITOR_COOKIE, visitor_of
from holdfast.web.pages.templates import templates
from holdfast.web.problems import INTERNAL_ERROR, add_problem_headers, problem_type
from holdfast.web.request import PUBLIC_BODY_LIMIT, Request

PREFIX = "/p"


class Visit:
    def __init__(self, door: Door, request: Request, language: Language, visitor: str, secret: str) -> None:
        self.door = door
        self.request = request
        self.language = language
        self.visitor = visitor
        """By which holds are counted: what its cookie says, or will say after this answer."""
        self.secret = secret
        """By which the buyer's own bookings open, and their forms are known to be theirs."""
        self.form = Form(())
        self.stands_at = request.path
        """Where a reader of this page should come back to; of a form, the page that it stood on."""

    @property
    def csrf(self) -> str:
        return csrf_token(self.secret)

    @property
    def network_address(self) -> str:
        """By which live holds are counted."""
        return self.door.counted_address(self.request)

    @property
    def is_fragment(self) -> bool:
        """Whether a script asks for a part of a page."""
        return b"hx-request" in self.request.header_values

    @property
    def query(self) -> Form:
        """Read as leniently as a form: a wrong filter filters nothing."""
        return Form(parse_fields(self.request.raw_query))

    @property
    def in_other_languages(self) -> dict[str, str]:
        """The address of this page in each other language, with the same filters."""
        kept = self._kept_query
        return {code: f"{self.stands_at}?{kept}lang={code}" for code in self.language.others}

    @property
    def _kept_query(self) -> str:
        """Nothing of the address of a form, nor of what no page could read."""
        if self.stands_at != self.request.path:
            return ""
        try:
            kept = [(name, value) for name, value in self.query.items() if name != "lang"]
        except MalformedBody:
            return ""
        return urlencode(kept) + "&" if kept else ""

    def _(self, text: str, /, **values: Any) -> str:
        return self.language.gettext(text, **values)

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        return self.language.ngettext(one, many, num, **values)

    def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """A whole page, or the part that a script asked for, if the template is one."""
        text = (
            templates()
            .get_template(f"storefront/{template}")
            .render(
                visit=self,
                language=self.language,
                languages=NAMES,
                csrf=self.csrf,
                version=__version__,
                **values,
            )
        )
        response = HTMLResponse(text, status, headers=self.door.headers)
        self.door.remember(self, response)
        return response

    def go(self, path: str) -> Response:
        """On to another page, which is asked for anew: a reload repeats nothing."""
        response = RedirectResponse(path, 303, headers=self.door.headers)
        self.door.remember(self, response)
        return response


def project_path(slug: str) -> str:
    return f"{PREFIX}/{slug}"


def unit_path(slug: str, code: str) -> str:
    return f"{project_path(slug)}/units/{quote(code, safe='')}"


def booking_path(slug: str, reference: str) -> str:
    return f"{project_path(slug)}/bookings/{reference}"


# The host that a buyer stays with: this machine has several names, and cookies are kept for each apart.

_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SAFE = frozenset({"GET", "HEAD"})
_HAS_PORT = re.compile(r":\d+$")


def address_at_home(request: Request, public_url: str) -> str | None:
    """Where the page is under the public address; None if the buyer is there, or is to stay where they are.

    Only between names of this machine, and at the same port: whatever else comes here by another name does so
    through a proxy, which knows better.
    """
    asked_at = request.header_values.get(b"host", b"").decode("latin-1").lower()
    if asked_at not in _other_names(public_url) or not _is_opened(request):
        return None
    return f"{public_url}{request.path}"


@cache
def _other_names(public_url: str) -> frozenset[str]:
    """By which the same machine is asked, if it is this one."""
    home = urlsplit(public_url).netloc.lower()
    name, colon, port = home.rpartition(":") if _HAS_PORT.search(home) else (home, "", "")
    if name not in _OWN_NAMES:
        return frozenset()
    return frozenset(f"{own}{colon}{port}" for own in _OWN_NAMES - {name})


def _is_opened(request: Request) -> bool:
    """By somebody, as a page; not by a script as a part of one, or to be told what changes. Nor through a
    proxy that has put its own name for us in place of the one that it was asked at."""
    head = request.header_values
    is_opened = head.get(b"sec-fetch-mode", b"navigate") == b"navigate" and b"hx-request" not in head
    is_forwarded = b"x-forwarded-host" in head or b"forwarded" in head
    is_stream = b"event-stream" in head.get(b"accept", b"")
    return request.method in _SAFE and is_opened and not is_stream and not is_forwarded


# Which unit or booking the address of a page names.


def project_in_path(visit: Visit) -> str:
    """What can be no slug is nobody's fault but the address's: there is nothing there."""
    slug = _part(visit, "slug")
    if slug_fault(slug) is not None:
        raise UnknownRoute
    return slug


def unit_in_path(visit: Visit) -> tuple[str, str]:
    slug, code = project_in_path(visit), _part(visit, "code")
    if code_fault(code) is not None:
        raise UnknownRoute
    return slug, code


def booking_in_path(visit: Visit) -> tuple[str, str]:
    """Slug and reference, as it was typed."""
    return project_in_path(visit), _part(visit, "reference")


def token_in_path(visit: Visit) -> str:
    return _part(visit, "token")


def _part(visit: Visit, name: str) -> str:
    part = visit.request.path_parameter(name)
    if isinstance(part, Fault):
        raise UnknownRoute
    return part


# The door of the storefront's pages: open to whoever comes, who is known again by their cookies.

Show = Callable[[Visit], Awaitable[Response]]

LANGUAGE_COOKIE = "holdfast_language"
BUYER_COOKIE = "holdfast_buyer"
_SECRET = re.compile(r"[A-Za-z0-9_-]{32}")
_COOKIE_SECONDS = 400 * 86_400
"""As long as browsers keep a cookie at most."""
_MISTYPED = PREFIX + "/{token}"
"""The route of what may be a link with a slip in it: the token in it is not for the log."""
_PLAIN = re.compile(r"[A-Za-z0-9-]*")
_HTTPS_FOR_A_YEAR = "max-age=31536000"


class Door:
    def __init__(
        self,
        addresses: ClientAddresses,
        guard: Guard,
        cookies: Cookies,
        time_zone: str,
        payment_url: str | None = None,
        public_url: str = "",
    ) -> None:
        self.cookies = cookies
        self.guard = guard
        self._payment_url = payment_url
        self._addresses = addresses
        self._time_zone = time_zone
        self._public_url = public_url

    @cached_property
    def headers(self) -> dict[str, str]:
        return _headers(self.cookies, self._payment_url)

    def page(self, path: str, *, is_returned_to: bool = False, **methods: Show) -> Route:
        """``is_returned_to``: payment pages send buyers back to it, some of them by a form of their own."""
        return page_route(PREFIX, path, BuyerPage(self, path, methods, is_returned_to))

    def counted_address(self, request: Request) -> str:
        return self._addresses.find(request.scope).counted_as

    def visit(self, request: Request) -> Visit:
        language = language_of(self._language(request), "latn", self._time_zone)
        visitor = visitor_of(request) or secrets.token_urlsafe(24)
        return Visit(self, request, language, visitor, self._secret(request) or secrets.token_urlsafe(24))

    def moved(self, request: Request, address: str, status: int) -> Response:
        """To be asked for there, as it is: nobody is known or remembered by this."""
        query = request.raw_query.decode("latin-1")
        return RedirectResponse(f"{address}?{query}" if query else address, status, headers=self.headers)

    def sent_home(self, request: Request) -> Response | None:
        """To the host whose cookies the buyer will come back to, if they came by another name of it."""
        address = address_at_home(request, self._public_url)
        return None if address is None else self.moved(request, address, 307)

    def remember(self, visit: Visit, response: Response) -> None:
        """Who came and how they are spoken to, for the next time; only what is new."""
        if not _brings_its_cookies(visit.request):
            return
        if visitor_of(visit.request) is None:
            _set_visitor(response, visit.visitor, is_secure=self.cookies.is_secure)
        if self._secret(visit.request) is None:
            self.cookies.set(response, BUYER_COOKIE, visit.secret, seconds=_COOKIE_SECONDS)
        if visit.language.code != self.cookies.read(visit.request, LANGUAGE_COOKIE):
            self.cookies.keep(response, LANGUAGE_COOKIE, visit.language.code)

    def _secret(self, request: Request) -> str | None:
        """What is not of our making counts as none."""
        value = self.cookies.read(request, BUYER_COOKIE)
        return value if value is not None and _SECRET.fullmatch(value) else None

    def _language(self, request: Request) -> str:
        """As asked for by a link, as chosen before, as the browser is set."""
        items = [] if request.has_too_many_parameters else request.query_items()
        asked = next((value for name, value in items if name == "lang"), None)
        for code in (asked, self.cookies.read(request, LANGUAGE_COOKIE)):
            if code in DIRECTIONS:
                return str(code)
        return accepted_language(request.header_values.get(b"accept-language", b"").decode("latin-1"))


class BuyerPage(PageApp):
    """A path, and what each method shows there. Refusals are told on a page, in the buyer's language."""

    def __init__(self, door: Door, path: str, methods: dict[str, Show], is_returned_to: bool) -> None:
        super().__init__(path)
        self._is_returned_to = is_returned_to
        self._door = door
        self._methods = methods

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._methods)

    def route_of(self, request: Request) -> str:
        return self.path if _is_plain(request) else _MISTYPED

    async def respond(self, request: Request) -> Response:
        visit = self._door.visit(request)
        try:
            await self._door.guard(request)
            return self._door.sent_home(request) or await self._shown(visit)
        except ClientDisconnect:
            raise
        except Exception as failure:  # noqa: BLE001 - every failure becomes a page
            return refused(visit, failure)

    async def _shown(self, visit: Visit) -> Response:
        request = visit.request
        request.check_parameter_count()
        if request.method == "POST" and self._is_returned_to:
            # Cookies do not come with a form of another site; with what it leads to they do.
            return self._door.moved(request, request.path, 303)
        show = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if show is None:
            raise MethodNotAllowed(request.method, self._methods)
        if request.method not in _SAFE:
            visit.form = await read_form(request, PUBLIC_BODY_LIMIT, PUBLIC_FIELDS)
            check_csrf(request, visit.form, visit.secret)
        return await show(visit)


class Elsewhere(PageApp):
    """Whatever else is asked for below the pages of the storefront."""

    def __init__(self, door: Door) -> None:
        super().__init__(_MISTYPED)
        self._door = door

    async def respond(self, request: Request) -> Response:
        visit = self._door.visit(request)
        try:
            await self._door.guard(request)
        except DomainError as refusal:
            return refused(visit, refusal)
        if request.path.endswith("/") and request.path.rstrip("/") != PREFIX:
            return visit.go(request.path.rstrip("/"))
        return refused(visit, UnknownRoute())


def refused(visit: Visit, failure: Exception) -> Response:
    """A page that says why. What comes of a fault of ours is in the log."""
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        log_failure(visit.request.request_id, failure)
    told = translate_error(failure, visit.language) if isinstance(failure, DomainError) else None
    back = visit.request.path.rpartition("/")[0] if isinstance(failure, ForeignForm) else None
    page = visit.render("refused.html", kind.status, told=told, kind=kind, back=back)
    add_problem_headers(page, failure)
    return page


def _brings_its_cookies(request: Request) -> bool:
    """Whether a browser that has cookies of ours has sent them.

    With a form of another site, or for a part of its page, it keeps them back, and would take new ones in
    their place: the buyer's bookings were gone.
    """
    if request.method not in _SAFE:
        return False
    return is_of_own_site(request) or request.header_values.get(b"sec-fetch-dest") == b"document"


def _set_visitor(response: Response, visitor: str, *, is_secure: bool) -> None:
    """With a plain name: the API knows visitors by it too, wherever its pages are."""
    response.set_cookie(
        VISITOR_COOKIE, visitor, _COOKIE_SECONDS, path="/", secure=is_secure, httponly=True, samesite="lax"
    )


def _is_plain(request: Request) -> bool:
    """What is neither slug nor reference may have a token in it."""
    sent = request.path_params
    return all(_PLAIN.fullmatch(sent[name]) for name in ("slug", "reference") if name in sent)


def _headers(cookies: Cookies, payment_url: str | None) -> dict[str, str]:
    """The form of the deposit leads on to the payment page."""
    if payment_url is None:
        headers = dict(PAGE_HEADERS)
    else:
        parts = urlsplit(payment_url)
        headers = headers_with(f"{parts.scheme}://{parts.netloc}")
    if cookies.is_https:
        headers["Strict-Transport-Security"] = _HTTPS_FOR_A_YEAR
    return headers


# Who has been here before: nobody else can have something of their own.


def has_buyer_cookie(visit: Visit) -> bool:
    """Of whoever brings no cookie nothing need be looked for: theirs is made for this very answer."""
    return visit.door.cookies.read(visit.request, BUYER_COOKIE) is not None
