"""The door of the storefront's pages: open to whoever comes, who is known again by their cookies."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from functools import cached_property
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdfast.domain.errors import Refusal
from holdfast.web.auth import Guard
from holdfast.web.client_address import ClientAddresses
from holdfast.web.errors import log_failure
from holdfast.web.html.cookies import Cookies
from holdfast.web.html.forms import PUBLIC_FIELDS, read_form
from holdfast.web.html.guarded import HEADERS, headers_with
from holdfast.web.html.language import DIRECTIONS, language_of, preferred
from holdfast.web.html.own_forms import is_of_own_site, refuse_foreign
from holdfast.web.html.translation import translate_refusal
from holdfast.web.page_routes import PageApp, page_route
from holdfast.web.problem_types import INTERNAL_ERROR
from holdfast.web.problems import add_problem_headers, problem_type
from holdfast.web.refusals import ForeignForm, MethodNotAllowed, UnknownRoute
from holdfast.web.request import PUBLIC_BODY_LIMIT, Request
from holdfast.web.storefront.pages.own_host import address_at_home
from holdfast.web.storefront.pages.visits import PREFIX, Visit
from holdfast.web.storefront.visitors import VISITOR_COOKIE, visitor_of

Show = Callable[[Visit], Awaitable[Response]]

LANGUAGE_COOKIE = "holdfast_language"
BUYER_COOKIE = "holdfast_buyer"
_SECRET = re.compile(r"[A-Za-z0-9_-]{32}")
_COOKIE_SECONDS = 400 * 86_400
"""As long as browsers keep a cookie at most."""
_SAFE = frozenset({"GET", "HEAD"})
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
        return preferred(request.header_values.get(b"accept-language", b"").decode("latin-1"))


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
        request.refuse_too_many_parameters()
        if request.method == "POST" and self._is_returned_to:
            # Cookies do not come with a form of another site; with what it leads to they do.
            return self._door.moved(request, request.path, 303)
        show = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if show is None:
            raise MethodNotAllowed(request.method, self._methods)
        if request.method not in _SAFE:
            visit.form = await read_form(request, PUBLIC_BODY_LIMIT, PUBLIC_FIELDS)
            refuse_foreign(request, visit.form, visit.secret)
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
        except Refusal as refusal:
            return refused(visit, refusal)
        if request.path.endswith("/") and request.path.rstrip("/") != PREFIX:
            return visit.go(request.path.rstrip("/"))
        return refused(visit, UnknownRoute())


def refused(visit: Visit, failure: Exception) -> Response:
    """A page that says why. What comes of a fault of ours is in the log."""
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        log_failure(visit.request.request_id, failure)
    told = translate_refusal(failure, visit.language) if isinstance(failure, Refusal) else None
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
        headers = dict(HEADERS)
    else:
        parts = urlsplit(payment_url)
        headers = headers_with(f"{parts.scheme}://{parts.netloc}")
    if cookies.is_https:
        headers["Strict-Transport-Security"] = _HTTPS_FOR_A_YEAR
    return headers
