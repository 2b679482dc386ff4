"""The door of the storefront's pages: open to whoever comes, who is known again by a cookie."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import cached_property
from urllib.parse import urlsplit

from starlette.responses import Response

from holdfast.domain.refusals import Refusal
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.html.cookies import Cookies
from holdfast.web.html.forms import read_form
from holdfast.web.html.guarded import HEADERS, headers_with
from holdfast.web.html.language import DIRECTIONS, language_of, preferred
from holdfast.web.html.own_forms import refuse_foreign
from holdfast.web.html.said import said
from holdfast.web.problem_types import INTERNAL_ERROR
from holdfast.web.problems import problem_headers, problem_type
from holdfast.web.refusals import ClientGone, MethodNotAllowed, UnknownRoute
from holdfast.web.routing import Guard, path_matcher
from holdfast.web.storefront.pages.visits import PREFIX, Visit
from holdfast.web.storefront.visitors import VISITOR_COOKIE, visitor_of

Show = Callable[[Visit], Awaitable[Response]]

LANGUAGE_COOKIE = "holdfast_language"
_VISITOR_SECONDS = 400 * 86_400
"""As long as browsers keep a cookie at most."""
_FORM_LIMIT = 16 * 1024
_SAFE = frozenset({"GET", "HEAD"})
_MISTYPED_LINK = PREFIX + "/{slug}/bookings/{token}"
_HTTPS_FOR_A_YEAR = "max-age=31536000"

logger = logging.getLogger("holdfast.web")


class Door:
    def __init__(
        self,
        addresses: ClientAddresses,
        guard: Guard,
        cookies: Cookies,
        time_zone: str,
        payment_url: str | None = None,
    ) -> None:
        self.cookies = cookies
        self.guard = guard
        self._payment_url = payment_url
        self._addresses = addresses
        self._time_zone = time_zone

    @cached_property
    def headers(self) -> dict[str, str]:
        return _headers(self.cookies, self._payment_url)

    def page(self, path: str, **methods: Show) -> BuyerPage:
        return BuyerPage(self, path, methods)

    def counted_address(self, call: Call) -> str:
        return self._addresses.find(call).counted_as

    def visit(self, call: Call) -> Visit:
        language = language_of(self._language(call), "latn", self._time_zone)
        return Visit(self, call, language, visitor_of(call) or secrets.token_urlsafe(24))

    def remember(self, visit: Visit, response: Response) -> None:
        """Who came and how they are spoken to, for the next time; only what is new."""
        if visitor_of(visit.call) is None:
            # A plain name: the API knows visitors by it too, wherever its pages are.
            response.set_cookie(
                VISITOR_COOKIE,
                visit.visitor,
                max_age=_VISITOR_SECONDS,
                path="/",
                secure=self.cookies.is_secure,
                httponly=True,
                samesite="lax",
            )
        if visit.language.code != self.cookies.read(visit.call, LANGUAGE_COOKIE):
            self.cookies.keep(response, LANGUAGE_COOKIE, visit.language.code)

    def _language(self, call: Call) -> str:
        """As asked for by a link, as chosen before, as the browser is set."""
        asked = next((value for name, value in call.query_items() if name == "lang"), None)
        for code in (asked, self.cookies.read(call, LANGUAGE_COOKIE)):
            if code in DIRECTIONS:
                return str(code)
        return preferred(call.exchange.head.values.get(b"accept-language", b"").decode("latin-1"))


class BuyerPage:
    """A path, and what each method shows there. Refusals are told on a page, in the buyer's language."""

    def __init__(self, door: Door, path: str, methods: dict[str, Show]) -> None:
        self.path = path
        self._door = door
        self._match = path_matcher(path)
        self._methods = methods

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._methods)

    def takes(self, call: Call) -> bool:
        match = self._match(call.path)
        if match is None or call.path.endswith("/"):
            return False
        call.route = self.path
        call.parameters = match
        return True

    async def answer(self, call: Call) -> Response:
        visit = self._door.visit(call)
        try:
            await self._door.guard(call)
            return await self._shown(visit)
        except ClientGone:
            raise
        except Exception as failure:  # noqa: BLE001 - every failure becomes a page
            return refused(visit, failure)

    async def _shown(self, visit: Visit) -> Response:
        call = visit.call
        show = self._methods.get("GET" if call.method == "HEAD" else call.method)
        if show is None:
            raise MethodNotAllowed(call.method, self._methods)
        if call.method not in _SAFE:
            visit.form = await read_form(call, _FORM_LIMIT)
            refuse_foreign(call, visit.form, visit.visitor)
        return await show(visit)


class Elsewhere:
    """Whatever else is asked for below the pages of the storefront."""

    path = PREFIX

    def __init__(self, door: Door) -> None:
        self._door = door

    def takes(self, call: Call) -> bool:
        if call.path != PREFIX and not call.path.startswith(PREFIX + "/"):
            return False
        if "/bookings/" in call.path:
            # A link with something behind it: the token in it is not for the log.
            call.route = _MISTYPED_LINK
        return True

    async def answer(self, call: Call) -> Response:
        visit = self._door.visit(call)
        if call.path.endswith("/") and call.path.rstrip("/") != PREFIX:
            return visit.go(call.path.rstrip("/"))
        return refused(visit, UnknownRoute())


def refused(visit: Visit, failure: Exception) -> Response:
    """A page that says why. What comes of a fault of ours is in the log."""
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        fields = {"requestId": visit.call.request_id}
        logger.error("request failed", exc_info=failure, extra={"fields": fields})
    told = said(failure, visit.language) if isinstance(failure, Refusal) else None
    page = visit.render("refused.html", kind.status, told=told, kind=kind)
    for name, value in problem_headers(failure):
        page.headers[name.decode()] = value.decode()
    return page


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
