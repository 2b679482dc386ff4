"""Sign-in, set-up links, sign-out, and the start page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

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
from holdfast.domain.permissions import Permission
from holdfast.domain.staff import Staff
from holdfast.operations.staff import Invitation
from holdfast.web.http_errors import MalformedBody
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, faults_by_field, local_path
from holdfast.web.pages.i18n import DIRECTIONS, translate_error
from holdfast.web.pages.routes import Pages
from holdfast.web.problems import add_problem_headers, problem_type

pages = Pages(StaffRequest)


@pages.get("")
async def show_start(request: StaffRequest) -> Response:
    """Everybody may see units."""
    return request.redirect(f"{PREFIX}/projects")


@pages.get("/settings")
async def show_settings(request: StaffRequest) -> Response:
    return await request.render("settings.html")


@pages.post("/news/seen", Permission.SEE_WEBHOOKS)
async def mark_failures_seen(request: StaffRequest) -> Response:
    """Mark as seen up to the newest that was shown: what failed since then is still news."""
    try:
        seen_at = datetime.fromisoformat(request.form.text("upTo"))
        if seen_at.tzinfo is None:
            raise ValueError
        seen_at = seen_at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MalformedBody("The form does not say what was seen.") from None
    await request.services.announcing.mark_seen(request.staff.id, seen_at)
    return request.redirect(local_path(request.form.text("next")))


@pages.get("/sign-in", is_public=True)
async def show_sign_in(request: StaffRequest) -> Response:
    next_path = local_path(request.query.text("next"))
    if request.staff_session is not None:
        return request.redirect(next_path)
    return await request.render("sign_in.html", next_path=next_path, email="")


@pages.post("/sign-in", is_public=True)
async def sign_in(request: StaffRequest) -> Response:
    form, next_path = request.form, local_path(request.form.text("next"))
    email = form.text("email")
    try:
        opened = await request.services.login.sign_in(email, form.raw("password"), None, *_client(request))
    except SecondFactorNeeded as needed:
        return await request.render("sign_in_code.html", ticket=needed.ticket, next_path=next_path)
    except (LoginFailed, TooManyAttempts) as error:
        return await _render_error(request, "sign_in.html", error, next_path=next_path, email=email)
    return await request.start_session(opened.token, next_path)


@pages.post("/sign-in/code", is_public=True, back_to="/sign-in")
async def sign_in_with_code(request: StaffRequest) -> Response:
    form, next_path = request.form, local_path(request.form.text("next"))
    ticket = form.text("ticket")
    try:
        opened = await request.services.login.sign_in_with_code(ticket, form.text("code"), *_client(request))
    except (LoginFailed, TooManyAttempts) as error:
        return await _render_error(request, "sign_in_code.html", error, ticket=ticket, next_path=next_path)
    return await request.start_session(opened.token, next_path)


@pages.post("/sign-in/language", is_public=True, back_to="/sign-in")
async def choose_language(request: StaffRequest) -> Response:
    response = request.redirect(local_path(request.form.text("back")))
    if request.form.text("language") in DIRECTIONS:
        request.keep_language(response, request.form.text("language"))
    return response


@pages.post("/sign-out")
async def sign_out(request: StaffRequest) -> Response:
    await request.services.login.sign_out(request.csrf_secret)
    return request.end_session()


@pages.get("/set-up/{token}", is_public=True)
async def show_set_up(request: StaffRequest, token: str) -> Response:
    """Show the form. The link is not used up: programs that preview links open it, too."""
    try:
        invitation = await request.services.setup_links.find(token)
    except InvalidSetupLink:
        return await request.render("sign_in_no_link.html", 404)
    return await _render_set_up(request, invitation)


@pages.post("/set-up/{token}", is_public=True)
async def set_up(request: StaffRequest, token: str) -> Response:
    try:
        invitation = await request.services.setup_links.find(token)
        if request.form.raw("password") != request.form.raw("again"):
            faults = {"again": request._("The two passwords are not the same.")}
            return await _render_set_up(request, invitation, 422, faults)
        staff = await _use_link(request, token, invitation)
    except InvalidSetupLink:
        return await request.render("sign_in_no_link.html", 404)
    except InvalidInput as error:
        return await _render_set_up(request, invitation, 422, faults_by_field(request, error))
    except StaffExists as error:
        faults = {"email": translate_error(error, request.language)}
        return await _render_set_up(request, invitation, 409, faults)
    opened = await request.services.login.open_session(staff.id, *_client(request))
    return await request.start_session(opened.token, PREFIX)


async def _use_link(request: StaffRequest, token: str, invitation: Invitation) -> Staff:
    links, form, password = request.services.setup_links, request.form, request.form.raw("password")
    request_id, language = request.request_id, request.language.code
    if invitation.staff is not None:
        return await links.choose_password(token, password, request_id, language)
    return await links.add_first_admin(
        token, form.text("email"), form.text("name"), password, request_id, language
    )


async def _render_set_up(
    request: StaffRequest, invitation: Invitation, status: int = 200, faults: dict[str, str] | None = None
) -> Response:
    return await request.render(
        "sign_in_set_up.html",
        status,
        person=invitation.staff,
        typed=request.form,
        faults=faults or {},
        shortest=SHORTEST_PASSWORD,
    )


async def _render_error(request: StaffRequest, template: str, error: DomainError, **values: Any) -> Response:
    """Render the form with the error above it, which does not say which field was wrong."""
    message = translate_error(error, request.language)
    if isinstance(error, TooManyAttempts):
        message = request._(
            "Too many attempts have failed. Try again in %(time)s.",
            time=request.language.duration(error.retry_after_seconds),
        )
    page = await request.render(template, problem_type(error).status, message=message, **values)
    add_problem_headers(page, error)
    return page


def _client(request: StaffRequest) -> tuple[str, str]:
    """Return the address and the browser of the client."""
    return request.client_address.counted_as, request.header(b"user-agent")
