"""The way in and the way out: sign-in, set-up link, sign-out."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import (
    DomainError,
    InvalidInput,
    InvalidSetupLink,
    LoginFailed,
    SecondFactorNeeded,
    StaffExists,
    TooManyAttempts,
)
from holdfast.domain.login import SHORTEST_PASSWORD
from holdfast.domain.staff import Staff
from holdfast.operations.login import Login, NewSession
from holdfast.operations.staff import Invitation, SetupLinks
from holdfast.web.client_address import ClientAddresses
from holdfast.web.pages.backoffice.base import (
    PREFIX,
    SESSION_COOKIE,
    Desk,
    Visit,
    faults_by_field,
    local_path,
)
from holdfast.web.pages.i18n import DIRECTIONS, translate_error
from holdfast.web.problems import add_problem_headers, problem_type

SIGN_IN = f"{PREFIX}/sign-in"
CODE = f"{SIGN_IN}/code"
LANGUAGE = f"{SIGN_IN}/language"
SIGN_OUT = f"{PREFIX}/sign-out"
SET_UP = PREFIX + "/set-up/{token}"


class SignInPages:
    def __init__(self, login: Login, addresses: ClientAddresses) -> None:
        self._login = login
        self._addresses = addresses

    async def ask(self, visit: Visit) -> Response:
        following = local_path(visit.query.text("next"))
        if visit.signed_in is not None:
            return await visit.go(following)
        return await visit.render("sign_in.html", **_asked(following))

    async def sign_in(self, visit: Visit) -> Response:
        form, following = visit.form, local_path(visit.form.text("next"))
        try:
            opened = await self._login.sign_in(
                form.text("email"), form.raw("password"), None, *self._whence(visit)
            )
        except SecondFactorNeeded as needed:
            return await visit.render("sign_in_code.html", ticket=needed.ticket, following=following)
        except (LoginFailed, TooManyAttempts) as refusal:
            return await _told(visit, "sign_in.html", refusal, **_asked(following, form.text("email")))
        return await let_in(visit, opened, following)

    async def with_code(self, visit: Visit) -> Response:
        form, following = visit.form, local_path(visit.form.text("next"))
        ticket = form.text("ticket")
        try:
            opened = await self._login.sign_in_with_code(ticket, form.text("code"), *self._whence(visit))
        except (LoginFailed, TooManyAttempts) as refusal:
            return await _told(visit, "sign_in_code.html", refusal, ticket=ticket, following=following)
        return await let_in(visit, opened, following)

    async def back(self, visit: Visit) -> Response:
        """Whoever reloads the page of the code begins anew."""
        return await visit.go(SIGN_IN)

    async def speak(self, visit: Visit) -> Response:
        response = await visit.go(local_path(visit.form.text("back")))
        if visit.form.text("language") in DIRECTIONS:
            visit.desk.speak(response, visit.form.text("language"))
        return response

    async def sign_out(self, visit: Visit) -> Response:
        token = visit.desk.cookies.read(visit.request, SESSION_COOKIE)
        if token is not None:
            await self._login.sign_out(token)
        response = await visit.go(SIGN_IN)
        visit.desk.let_out(response)
        visit.desk.speak(response, visit.language.code)
        return response

    def _whence(self, visit: Visit) -> tuple[str, str]:
        return whence(visit, self._addresses)


class SetUpPages:
    def __init__(self, links: SetupLinks, login: Login, addresses: ClientAddresses) -> None:
        self._links = links
        self._login = login
        self._addresses = addresses

    async def ask(self, visit: Visit) -> Response:
        """Nothing is used up: programs that preview links look, too."""
        try:
            invitation = await self._links.find(_token(visit))
        except InvalidSetupLink:
            return await visit.render("sign_in_no_link.html", 404)
        return await self._page(visit, invitation)

    async def set_up(self, visit: Visit) -> Response:
        token = _token(visit)
        try:
            invitation = await self._links.find(token)
            if visit.form.raw("password") != visit.form.raw("again"):
                differ = {"again": visit._("The two passwords are not the same.")}
                return await self._page(visit, invitation, 422, differ)
            person = await self._set_up(visit, token, invitation)
        except InvalidSetupLink:
            return await visit.render("sign_in_no_link.html", 404)
        except InvalidInput as refusal:
            return await self._page(visit, invitation, 422, faults_by_field(visit, refusal))
        except StaffExists as refusal:
            return await self._page(
                visit, invitation, 409, {"email": translate_error(refusal, visit.language)}
            )
        return await let_in(visit, await self._open(visit, person), PREFIX)

    async def _set_up(self, visit: Visit, token: str, invitation: Invitation) -> Staff:
        form, password = visit.form, visit.form.raw("password")
        request_id, language = visit.request.request_id, visit.language.code
        if invitation.staff is not None:
            return await self._links.choose_password(token, password, request_id, language)
        return await self._links.add_first_admin(
            token, form.text("email"), form.text("name"), password, request_id, language
        )

    async def _open(self, visit: Visit, person: Staff) -> NewSession:
        return await self._login.open_session(person.id, *whence(visit, self._addresses))

    async def _page(
        self,
        visit: Visit,
        invitation: Invitation,
        status: int = 200,
        faults: dict[str, str] | None = None,
    ) -> Response:
        return await visit.render(
            "sign_in_set_up.html",
            status,
            person=invitation.staff,
            typed=visit.form,
            faults=faults or {},
            shortest=SHORTEST_PASSWORD,
        )


def sign_in_routes(desk: Desk, login: Login, links: SetupLinks, addresses: ClientAddresses) -> list[Route]:
    pages, set_up = SignInPages(login, addresses), SetUpPages(links, login, addresses)
    return [
        desk.open_page(SIGN_IN, GET=pages.ask, POST=pages.sign_in),
        desk.open_page(CODE, GET=pages.back, POST=pages.with_code),
        desk.open_page(LANGUAGE, GET=pages.back, POST=pages.speak),
        desk.open_page(SET_UP, GET=set_up.ask, POST=set_up.set_up),
        desk.page(SIGN_OUT, None, POST=pages.sign_out),
    ]


async def let_in(visit: Visit, opened: NewSession, following: str) -> Response:
    """Whoever was signed in here before is so no more."""
    if visit.signed_in is not None:
        await visit.desk.login.sign_out(visit.token)
    response = await visit.go(following)
    visit.desk.let_in(response, opened.token)
    return response


def whence(visit: Visit, addresses: ClientAddresses) -> tuple[str, str]:
    """Address and browser."""
    agent = visit.request.header_values.get(b"user-agent", b"").decode("latin-1")
    return addresses.find(visit.request.scope).counted_as, agent


def _asked(following: str, email: str = "") -> dict[str, Any]:
    return {"following": following, "email": email}


def _token(visit: Visit) -> str:
    token = visit.request.path_parameter("token")
    return token if isinstance(token, str) else ""


async def _told(visit: Visit, template: str, refusal: DomainError, **values: Any) -> Response:
    """What was refused, above the form. Nobody learns which part of it was wrong."""
    told = translate_error(refusal, visit.language)
    if isinstance(refusal, TooManyAttempts):
        told = visit._(
            "Too many attempts have failed. Try again in %(time)s.",
            time=visit.language.duration(refusal.retry_after_seconds),
        )
    page = await visit.render(template, problem_type(refusal).status, trouble=told, **values)
    add_problem_headers(page, refusal)
    return page
