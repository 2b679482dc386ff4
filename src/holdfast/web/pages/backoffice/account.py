"""What a browser says of itself, in two words."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import InvalidInput, TooManyAttempts
from holdfast.domain.staff import DIGITS, LANGUAGES, OpenSession, Preferences, Theme
from holdfast.operations.login import Login, enrolment_url, format_secret
from holdfast.operations.staff import Accounts, OwnAccount
from holdfast.web.client_address import ClientAddresses
from holdfast.web.http_errors import MalformedBody
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit, faults_by_field
from holdfast.web.pages.backoffice.login import SIGN_IN, whence
from holdfast.web.pages.templates import qr_code
from holdfast.web.problems import problem_type

# The first that is found counts: each says that it is most of the others, too.
_BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
)  # fmt: skip
_SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"),
    ("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
_SHOWN = 40


class Browser(NamedTuple):
    name: str
    system: str


def browser_of(agent: str) -> Browser:
    """Names that are names in every language; of what is unknown its own first words."""
    name = next((name for sign, name in _BROWSERS if sign in agent), agent[:_SHOWN])
    return Browser(name, next((name for sign, name in _SYSTEMS if sign in agent), ""))


# One's own account: name, language and look, password, second factor, sessions.

ACCOUNT = f"{PREFIX}/account"


class AccountPages:
    def __init__(self, accounts: Accounts, login: Login, addresses: ClientAddresses) -> None:
        self._accounts = accounts
        self._login = login
        self._addresses = addresses

    async def show(self, visit: Visit) -> Response:
        return await self._page(visit)

    async def back(self, visit: Visit) -> Response:
        return await visit.go(ACCOUNT)

    async def rename(self, visit: Visit) -> Response:
        try:
            await self._accounts.rename(self._oneself(visit), visit.form.text("name"))
        except InvalidInput as refusal:
            return await self._refused(visit, "name", refusal)
        return await visit.go(ACCOUNT, visit._("Your name was changed."))

    async def prefer(self, visit: Visit) -> Response:
        await self._accounts.set_preferences(visit.staff.id, _preferences(visit))
        return await visit.go(ACCOUNT)

    async def change_password(self, visit: Visit) -> Response:
        form = visit.form
        if form.raw("newPassword") != form.raw("again"):
            differ = {"again": visit._("The two passwords are not the same.")}
            return await self._page(visit, 422, asked="password", faults=differ)
        try:
            await self._accounts.change_password(
                self._oneself(visit), form.raw("password"), form.raw("newPassword")
            )
        except (InvalidInput, TooManyAttempts) as refusal:
            return await self._refused(visit, "password", refusal)
        return await visit.go(ACCOUNT, visit._("Your password was changed. All other sessions have ended."))

    async def offer_factor(self, visit: Visit) -> Response:
        try:
            await self._accounts.offer_factor(self._oneself(visit), visit.form.raw("password"))
        except (InvalidInput, TooManyAttempts) as refusal:
            return await self._refused(visit, "offer", refusal)
        return await visit.go(f"{ACCOUNT}#second-factor")

    async def confirm_factor(self, visit: Visit) -> Response:
        try:
            await self._accounts.confirm_factor(self._oneself(visit), visit.form.text("code"))
        except InvalidInput as refusal:
            return await self._refused(visit, "confirm", refusal)
        told = visit._("From now on you sign in with password and code. All other sessions have ended.")
        return await visit.go(ACCOUNT, told)

    async def remove_factor(self, visit: Visit) -> Response:
        try:
            await self._accounts.remove_factor(self._oneself(visit), visit.form.raw("password"))
        except (InvalidInput, TooManyAttempts) as refusal:
            return await self._refused(visit, "remove", refusal)
        return await visit.go(ACCOUNT, visit._("The second factor was removed."))

    async def sign_out_elsewhere(self, visit: Visit) -> Response:
        who = self._oneself(visit)
        ended = await self._login.sign_out_everywhere(who.staff.id, who.session_id)
        told = visit.ngettext("%(num)s other session was ended.", "%(num)s other sessions were ended.", ended)
        return await visit.go(ACCOUNT, told)

    async def sign_out_everywhere(self, visit: Visit) -> Response:
        """Here too."""
        await self._login.sign_out_everywhere(visit.staff.id)
        response = await visit.go(SIGN_IN)
        visit.desk.let_out(response)
        visit.desk.speak(response, visit.language.code)
        return response

    async def _refused(self, visit: Visit, asked: str, refusal: InvalidInput | TooManyAttempts) -> Response:
        if isinstance(refusal, InvalidInput):
            return await self._page(visit, 422, asked=asked, faults=faults_by_field(visit, refusal))
        wait = visit.language.duration(refusal.retry_after_seconds)
        told = visit._("Too many attempts have failed. Try again in %(time)s.", time=wait)
        return await self._page(visit, problem_type(refusal).status, asked=asked, faults={"password": told})

    async def _page(self, visit: Visit, status: int = 200, **asked: Any) -> Response:
        person = visit.staff
        secret = await self._accounts.offered_factor(person.id)
        sessions = await self._login.list_sessions(person.id)
        return await visit.render(
            "account.html",
            status,
            person=person,
            secret=secret and format_secret(secret),
            qr=secret and qr_code(enrolment_url(secret, person.email)),
            sessions=[_shown(visit, session) for session in sessions],
            typed=visit.form,
            **{"asked": "", "faults": {}, **asked},
        )

    def _oneself(self, visit: Visit) -> OwnAccount:
        assert visit.signed_in is not None
        address, _ = whence(visit, self._addresses)
        return OwnAccount(visit.staff, visit.signed_in.session_id, address, visit.author)


def account_routes(desk: Desk, accounts: Accounts, login: Login, addresses: ClientAddresses) -> list[Route]:
    pages = AccountPages(accounts, login, addresses)
    acts = {
        "name": pages.rename,
        "preferences": pages.prefer,
        "password": pages.change_password,
        "second-factor": pages.offer_factor,
        "second-factor/confirm": pages.confirm_factor,
        "second-factor/remove": pages.remove_factor,
        "sign-out-elsewhere": pages.sign_out_elsewhere,
        "sign-out-everywhere": pages.sign_out_everywhere,
    }
    return [
        desk.page(ACCOUNT, None, GET=pages.show),
        *(desk.page(f"{ACCOUNT}/{path}", None, GET=pages.back, POST=act) for path, act in acts.items()),
    ]


def _shown(visit: Visit, session: OpenSession) -> dict[str, Any]:
    assert visit.signed_in is not None
    is_this = session.id == visit.signed_in.session_id
    return {"session": session, "browser": browser_of(session.agent), "is_this": is_this}


def _preferences(visit: Visit) -> Preferences:
    language, digits, theme = (visit.form.text(name) for name in Preferences._fields)
    if language not in LANGUAGES or digits not in DIGITS or theme not in tuple(Theme):
        raise MalformedBody("The form does not say what is preferred.")
    return Preferences(language, digits, Theme(theme))
