"""Requests of buyers: how buyers are recognized, and the paths of the storefront's pages."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.responses import Response

from holdfast.domain.errors import DatabaseUnavailable, DomainError, Fault, TooManyRequests, UnknownBooking
from holdfast.web.errors import HttpError, MalformedBody, UnknownRoute
from holdfast.web.pages.base import PAGE_HEADERS, headers_with
from holdfast.web.pages.forms import is_of_own_site
from holdfast.web.pages.i18n import DIRECTIONS, language_of
from holdfast.web.pages.routes import LANGUAGE_COOKIE, SAFE_METHODS, PageRequest
from holdfast.web.problems import add_problem_headers, problem_type
from holdfast.web.request import Request
from holdfast.web.visitors import VISITOR_COOKIE, read_visitor_cookie

PREFIX = "/p"
BUYER_COOKIE = "holdfast_buyer"
NOT_INDEXED = {"X-Robots-Tag": "noindex, nofollow"}

_SECRET = re.compile(r"[A-Za-z0-9_-]{32}")
_COOKIE_SECONDS = 400 * 86_400
"""As long as browsers keep a cookie at most."""
_PLAIN = re.compile(r"[A-Za-z0-9-]*")
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HAS_PORT = re.compile(r":\d+$")


class BuyerRequest(PageRequest):
    prefix = PREFIX
    template_directory = "storefront"

    visitor: str
    """The value of the visitor's cookie, or of the one that will be set. Live holds are counted by it."""
    buyer_secret: str
    """Opens the buyer's own bookings."""
    is_turned_away = False
    """Then its page does not ask the database."""
    page_path: str
    """The page that the response shows, for links to it in other languages. For a form: the page it is on."""

    async def identify(self) -> None:
        self.buyer_secret = self.csrf_secret = self._cookie_secret() or secrets.token_urlsafe(24)
        self.visitor = read_visitor_cookie(self) or secrets.token_urlsafe(24)
        self.page_path = self.path
        # A language that a link asks for comes before the one that was chosen earlier.
        items = [] if self.query_error else self.query_items()
        requested = next((value for name, value in items if name == "lang"), "")
        code = requested if requested in DIRECTIONS else self.preferred_language()
        self.language = language_of(code, "latn", self.context.time_zone)

    async def admit(self, *, is_public: bool) -> Response | None:
        """Redirect a buyer who came by another loopback name than the public one.

        Cookies are kept for each name, so a buyer must stay with one. Only between names of this machine and
        at the same port: other names belong to a proxy.
        """
        public_url = self.context.public_url
        is_other = self.header(b"host").lower() in _other_loopback_hosts(public_url)
        return self.redirect(public_url + self.full_path, 307) if is_other and _is_navigation(self) else None

    async def layout_values(self) -> dict[str, Any]:
        slug, sellers = self.path_params.get("slug"), self.services.sellers
        if not (self.is_turned_away or self.is_fragment):
            # A page is worth more than its frame.
            with suppress(DomainError):
                return {"seller": await sellers.effective(slug)}
        return {"seller": sellers.last_seen(slug)}

    @property
    def page_headers(self) -> Mapping[str, str]:
        return _page_headers(self.context.payment_url)

    @property
    def has_buyer_cookie(self) -> bool:
        """Return whether the buyer may have bookings: without the cookie there are none."""
        return self.context.cookies.read(self, BUYER_COOKIE) is not None

    @property
    def in_other_languages(self) -> dict[str, str]:
        """The address of this page in each other language, with the same filters."""
        query = self._query_to_keep()
        return {code: f"{self.page_path}?{query}lang={code}" for code in self.language.others}

    def set_cookies(self, response: Response) -> None:
        """Set the cookies that the browser does not have yet."""
        # A browser sends no cookies with a form of another site, or for a part of its page. New ones would
        # replace the buyer's own, and with them the access to their bookings.
        is_opened = is_of_own_site(self) or self.header_values.get(b"sec-fetch-dest") == b"document"
        if self.method not in SAFE_METHODS or not is_opened:
            return
        cookies = self.context.cookies
        if read_visitor_cookie(self) is None:
            # The name has no prefix: the API reads this cookie too, and other shops may set it.
            cookies.set(response, VISITOR_COOKIE, self.visitor, seconds=_COOKIE_SECONDS, prefixed=False)
        if self._cookie_secret() is None:
            cookies.set(response, BUYER_COOKIE, self.buyer_secret, seconds=_COOKIE_SECONDS)
        if self.language.code != cookies.read(self, LANGUAGE_COOKIE):
            cookies.keep(response, LANGUAGE_COOKIE, self.language.code)

    def redirect(self, path: str, status: int = 303) -> Response:
        response = super().redirect(path, status)
        # The others ask for the same page at another address, before the visitor is known.
        if status == 303:
            self.set_cookies(response)
        return response

    def route_for_logs(self, path: str) -> str:
        """A parameter that is neither a slug nor a reference may have a token in it."""
        parameters = [self.path_params[name] for name in ("slug", "reference") if name in self.path_params]
        return path if all(map(_PLAIN.fullmatch, parameters)) else f"{PREFIX}/{{token}}"

    def path_error(self, faults: list[Fault]) -> Exception:
        return UnknownRoute()

    async def render_error(self, error: Exception) -> Response:
        """Tell whoever may not see a booking how to get access, and not whether there is such a booking."""
        self.is_turned_away = isinstance(error, DatabaseUnavailable | HttpError | TooManyRequests)
        if not isinstance(error, UnknownBooking):
            return await super().render_error(error)
        page = await self.render(
            "booking_no_entry.html", problem_type(error).status, slug=self.path_params["slug"]
        )
        page.headers.update(NOT_INDEXED)
        return page

    async def render_for(self, error: Exception, template: str, **values: Any) -> Response:
        """Render a page of its own for an error, with the error's status and headers."""
        page = await self.render(template, problem_type(error).status, **values)
        add_problem_headers(page, error)
        return page

    def _cookie_secret(self) -> str | None:
        value = self.context.cookies.read(self, BUYER_COOKIE)
        return value if value is not None and _SECRET.fullmatch(value) else None

    def _query_to_keep(self) -> str:
        if self.page_path != self.path or self.query_error:
            return ""
        try:
            kept = [(name, value) for name, value in self.query.items() if name != "lang"]
        except MalformedBody:
            return ""
        return urlencode(kept) + "&" if kept else ""


def project_path(slug: str) -> str:
    return f"{PREFIX}/{slug}"


def unit_path(slug: str, code: str) -> str:
    return f"{project_path(slug)}/units/{quote(code, safe='')}"


def booking_path(slug: str, reference: str) -> str:
    return f"{project_path(slug)}/bookings/{reference}"


@cache
def _other_loopback_hosts(public_url: str) -> frozenset[str]:
    host = urlsplit(public_url).netloc.lower()
    name, colon, port = host.rpartition(":") if _HAS_PORT.search(host) else (host, "", "")
    if name not in _LOOPBACK_NAMES:
        return frozenset()
    return frozenset(f"{other}{colon}{port}" for other in _LOOPBACK_NAMES - {name})


def _is_navigation(request: Request) -> bool:
    """Return whether somebody opens a page, not a script a part of one or a stream.

    Nor through a proxy that puts another name of this machine in place of the one that it was asked at.
    """
    headers = request.header_values
    is_opened = headers.get(b"sec-fetch-mode", b"navigate") == b"navigate" and b"hx-request" not in headers
    is_forwarded = b"x-forwarded-host" in headers or b"forwarded" in headers
    is_stream = b"event-stream" in headers.get(b"accept", b"")
    return request.method in SAFE_METHODS and is_opened and not is_stream and not is_forwarded


@cache
def _page_headers(payment_url: str | None) -> Mapping[str, str]:
    """The form of the deposit leads on to the payment page."""
    if payment_url is None:
        return PAGE_HEADERS
    parts = urlsplit(payment_url)
    return headers_with(f"{parts.scheme}://{parts.netloc}")
