"""The door of the back office: who comes in, what they may, and that a form is one of ours."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable

from starlette.responses import Response

from holdfast.domain.permissions import Permission
from holdfast.domain.refusals import DatabaseAway, Refusal
from holdfast.domain.staff import Preferences
from holdfast.operations.announcing import Announcing, News
from holdfast.operations.signing_in import SignedIn, SigningIn
from holdfast.web.backoffice.visits import (
    FORM_COOKIE,
    LANGUAGE_COOKIE,
    PREFIX,
    SESSION_COOKIE,
    Visit,
)
from holdfast.web.backoffice.ways import SAFE, to_sign_in, without_slash
from holdfast.web.call import BODY_LIMIT, Call
from holdfast.web.html.cookies import Cookies
from holdfast.web.html.forms import read_form
from holdfast.web.html.language import DIRECTIONS, language_of, preferred
from holdfast.web.html.own_forms import refuse_foreign
from holdfast.web.html.translation import translate_refusal
from holdfast.web.problem_types import INTERNAL_ERROR
from holdfast.web.problems import add_problem_headers, problem_type
from holdfast.web.refusals import ClientGone, MethodNotAllowed, NotYours, UnknownRoute
from holdfast.web.routing import path_matcher

Show = Callable[[Visit], Awaitable[Response]]
Guarded = tuple[Permission | None, Show]

_HTTPS_FOR_A_YEAR = "max-age=31536000"

logger = logging.getLogger("holdfast.web")


class Desk:
    def __init__(
        self, signing_in: SigningIn, announcing: Announcing, cookies: Cookies, time_zone: str
    ) -> None:
        self.signing_in = signing_in
        self.cookies = cookies
        self._announcing = announcing
        self._time_zone = time_zone

    def page(
        self, path: str, permission: Permission | None, *, limit: int = BODY_LIMIT, **methods: Show | Guarded
    ) -> PageResource:
        """Behind the sign-in. A method may need another permission than the page: ``POST=(SELL, act)``.

        None: whoever is signed in.
        """
        guarded = {
            name: shown if isinstance(shown, tuple) else (permission, shown)
            for name, shown in methods.items()
        }
        return PageResource(self, path, guarded, limit, is_open=False)

    def open_page(self, path: str, **methods: Show) -> PageResource:
        """For whoever comes."""
        guarded: dict[str, Guarded] = {name: (None, show) for name, show in methods.items()}
        return PageResource(self, path, guarded, BODY_LIMIT, is_open=True)

    async def news_for(self, visit: Visit) -> News | None:
        if not visit.may(Permission.SEE_WEBHOOKS):
            return None
        return await self._announcing.news(visit.staff.failures_seen_at)

    async def visit(self, call: Call) -> Visit:
        token = self.cookies.read(call, SESSION_COOKIE)
        signed_in = None if token is None else await self._signed_in(call, token)
        if token is None or signed_in is None:
            return self.visit_of_stranger(call)
        return self._visit(call, signed_in, token, signed_in.staff.preferences)

    def visit_of_stranger(self, call: Call) -> Visit:
        token = self.cookies.read(call, FORM_COOKIE) or secrets.token_urlsafe(24)
        return self._visit(call, None, token, Preferences(self._language_of_stranger(call)))

    def _visit(self, call: Call, signed_in: SignedIn | None, token: str, preferences: Preferences) -> Visit:
        language = language_of(preferences.language, preferences.digits, self._time_zone)
        return Visit(self, call, signed_in, language, token, preferences)

    async def _signed_in(self, call: Call, token: str) -> SignedIn | None:
        """A notice is for a page that is looked at: neither for a part of one nor for a stream."""
        values = call.exchange.head.values
        is_page = b"text/html" in values.get(b"accept", b"") and b"hx-request" not in values
        is_change = call.method not in SAFE
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

    def _language_of_stranger(self, call: Call) -> str:
        chosen = self.cookies.read(call, LANGUAGE_COOKIE)
        if chosen in DIRECTIONS:
            return chosen
        return preferred(call.exchange.head.values.get(b"accept-language", b"").decode("latin-1"))


class PageResource:
    """A path, and what each method shows there. Refusals are told on a page, in the person's language."""

    def __init__(
        self, desk: Desk, path: str, methods: dict[str, Guarded], limit: int, *, is_open: bool
    ) -> None:
        self.path = path
        self.is_open = is_open
        self._desk = desk
        self._match = path_matcher(path)
        self._methods = methods
        self._limit = limit

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._methods)

    def permission_of(self, method: str) -> Permission | None:
        return self._methods["GET" if method == "HEAD" else method][0]

    def takes(self, call: Call) -> bool:
        match = self._match(call.path)
        # With nothing behind the last slash, it is one too many.
        if match is None or call.path.endswith("/"):
            return False
        call.route = self.path
        call.parameters = match
        return True

    async def answer(self, call: Call) -> Response:
        return self._desk.sent(await self._answered(call))

    async def _answered(self, call: Call) -> Response:
        try:
            visit = await self._desk.visit(call)
        except DatabaseAway as away:
            return await refused(self._desk.visit_of_stranger(call), away)
        if visit.signed_in is None and not self.is_open:
            return to_sign_in(visit)
        try:
            return await self._shown(visit)
        except ClientGone:
            raise
        except Exception as failure:  # noqa: BLE001 - every failure becomes a page
            return await refused(visit, failure)

    async def _shown(self, visit: Visit) -> Response:
        call = visit.call
        guarded = self._methods.get("GET" if call.method == "HEAD" else call.method)
        if guarded is None:
            raise MethodNotAllowed(call.method, self._methods)
        permission, show = guarded
        if permission is not None and not visit.may(permission):
            raise NotYours
        if call.method not in SAFE:
            visit.form = await read_form(call, self._limit)
            refuse_foreign(call, visit.form, visit.token)
        return await show(visit)


class Elsewhere:
    """Whatever else is asked for below the back office."""

    path = PREFIX

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def takes(self, call: Call) -> bool:
        return call.path == PREFIX or call.path.startswith(PREFIX + "/")

    async def answer(self, call: Call) -> Response:
        return self._desk.sent(await self._answered(call))

    async def _answered(self, call: Call) -> Response:
        if call.path.endswith("/"):
            return without_slash(self._desk.visit_of_stranger(call))
        try:
            visit = await self._desk.visit(call)
        except DatabaseAway as away:
            return await refused(self._desk.visit_of_stranger(call), away)
        if visit.signed_in is None:
            return to_sign_in(visit)
        return await refused(visit, UnknownRoute())


async def refused(visit: Visit, failure: Exception) -> Response:
    """A page that says why, for a person. What comes of a fault of ours is in the log."""
    kind = problem_type(failure)
    if kind is INTERNAL_ERROR:
        fields = {"requestId": visit.call.request_id}
        logger.error("request failed", exc_info=failure, extra={"fields": fields})
    told = translate_refusal(failure, visit.language) if isinstance(failure, Refusal) else None
    if isinstance(failure, DatabaseAway):
        visit.signed_in = None
    page = await visit.render("refused.html", kind.status, told=told, kind=kind)
    add_problem_headers(page, failure)
    return page
