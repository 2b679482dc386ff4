"""The account of the person who is signed in: name, preferences, password, second factor, sessions."""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.responses import Response

from holdfast.domain.errors import InvalidInput, TooManyAttempts
from holdfast.domain.staff import DIGITS, LANGUAGES, Preferences, Theme
from holdfast.operations.login import enrolment_url, format_secret
from holdfast.operations.staff import OwnAccount
from holdfast.web.errors import MalformedBody
from holdfast.web.pages.backoffice.base import ACCOUNT, StaffRequest, pages
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
_UNKNOWN_BROWSER_LENGTH = 40


@pages.get("/account")
async def show_account(
    request: StaffRequest, status: int = 200, failed_form: str = "", faults: dict[str, str] | None = None
) -> Response:
    """Show only how to set up a second factor, while the role requires one that is missing."""
    staff, accounts = request.staff, request.services.accounts
    secret = await accounts.offered_factor(staff.id)
    return await request.render(
        "account.html" if request.is_admitted else "second_factor.html",
        status,
        person=staff,
        requires_factor=accounts.requires_factor(staff),
        secret=secret and format_secret(secret),
        qr=secret and qr_code(enrolment_url(secret, staff.email)),
        sessions=await request.services.login.list_sessions(staff.id),
        own_session_id=_own_account(request).session_id,
        parse_user_agent=parse_user_agent,
        typed=request.form,
        failed_form=failed_form,
        faults=faults or {},
    )


@pages.post("/account/name", back_to="/account")
async def rename(request: StaffRequest) -> Response:
    change = request.services.accounts.rename(_own_account(request), request.form.text("name"))
    return await _change(request, "name", change, request._("Your name was changed."))


@pages.post("/account/preferences", back_to="/account")
async def set_preferences(request: StaffRequest) -> Response:
    language, digits, theme = (request.form.text(name) for name in Preferences._fields)
    if language not in LANGUAGES or digits not in DIGITS or theme not in tuple(Theme):
        raise MalformedBody("The form has no preferences.")
    preferences = Preferences(language, digits, Theme(theme))
    await request.services.accounts.set_preferences(request.staff.id, preferences)
    return request.redirect(ACCOUNT)


@pages.post("/account/password", back_to="/account")
async def change_password(request: StaffRequest) -> Response:
    form = request.form
    if form.raw("newPassword") != form.raw("again"):
        faults = {"again": request._("The passwords do not match.")}
        return await show_account(request, 422, failed_form="password", faults=faults)
    change = request.services.accounts.change_password(
        _own_account(request), form.raw("password"), form.raw("newPassword")
    )
    notice = request._("Your password was changed. All other sessions have ended.")
    return await _change(request, "password", change, notice)


@pages.post("/account/second-factor", back_to="/account")
async def offer_second_factor(request: StaffRequest) -> Response:
    change = request.services.accounts.offer_factor(_own_account(request), request.form.raw("password"))
    return await _change(request, "offer", change)


@pages.post("/account/second-factor/confirm", back_to="/account")
async def confirm_second_factor(request: StaffRequest) -> Response:
    change = request.services.accounts.confirm_factor(_own_account(request), request.form.text("code"))
    notice = request._("You now sign in with your password and a code. All other sessions have ended.")
    return await _change(request, "confirm", change, notice)


@pages.post("/account/second-factor/remove", back_to="/account")
async def remove_second_factor(request: StaffRequest) -> Response:
    own, form = _own_account(request), request.form
    change = request.services.accounts.remove_factor(own, form.raw("password"), form.text("code"))
    notice = request._("The second factor was removed. All other sessions have ended.")
    return await _change(request, "remove", change, notice)


@pages.post("/account/sign-out-elsewhere", back_to="/account")
async def end_other_sessions(request: StaffRequest) -> Response:
    own_session_id = _own_account(request).session_id
    ended = await request.services.login.sign_out_everywhere(request.staff.id, own_session_id)
    notice = request.ngettext("%(num)s other session was ended.", "%(num)s other sessions were ended.", ended)
    return await request.redirect_with_notice(ACCOUNT, notice)


@pages.post("/account/sign-out-everywhere", back_to="/account")
async def end_all_sessions(request: StaffRequest) -> Response:
    await request.services.login.sign_out_everywhere(request.staff.id)
    return request.end_session()


async def _change(
    request: StaffRequest, form_name: str, change: Awaitable[object], notice: str | None = None
) -> Response:
    try:
        await change
    except (InvalidInput, TooManyAttempts) as error:
        faults = request.faults(error)
        if isinstance(error, TooManyAttempts):
            faults = {"password": request.too_many_attempts_text(error)}
        return await show_account(request, problem_type(error).status, failed_form=form_name, faults=faults)
    if notice is None:
        return request.redirect(f"{ACCOUNT}#second-factor")
    return await request.redirect_with_notice(ACCOUNT, notice)


def _own_account(request: StaffRequest) -> OwnAccount:
    assert request.staff_session is not None
    return OwnAccount(request.staff, request.staff_session.session_id, request.author)


def parse_user_agent(agent: str) -> tuple[str, str]:
    """Return browser and system, the same in every language; of an unknown browser its own first words."""
    name = next((name for sign, name in _BROWSERS if sign in agent), agent[:_UNKNOWN_BROWSER_LENGTH])
    return name, next((name for sign, name in _SYSTEMS if sign in agent), "")
