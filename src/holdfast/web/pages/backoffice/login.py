"""Sign-in, set-up links, sign-out, and the start page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from holdfast.domain import errors
from holdfast.domain.login import SHORTEST_PASSWORD
from holdfast.domain.permissions import Permission
from holdfast.domain.staff import Staff
from holdfast.web.errors import MalformedBody
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, local_path, pages
from holdfast.web.pages.i18n import DIRECTIONS
from holdfast.web.problems import add_problem_headers, problem_type


@pages.get("")
async def show_start(request: StaffRequest) -> Response:
    """Everybody may see units."""
    return request.redirect(f"{PREFIX}/projects")


@pages.get("/settings")
async def show_settings(request: StaffRequest) -> Response:
    return await request.render("settings.html", sends_email=request.services.bookings.sends_email)


@pages.post("/announcements/seen", Permission.SEE_WEBHOOKS)
async def mark_failures_seen(request: StaffRequest) -> Response:
    """Mark as seen up to the newest that was shown: what failed since then is shown again."""
    try:
        seen_at = datetime.fromisoformat(request.form.text("upTo"))
        if seen_at.tzinfo is None:
            raise ValueError
        seen_at = seen_at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MalformedBody("The form does not say what was seen.") from None
    await request.services.delivery_search.mark_failures_seen(request.staff.id, seen_at)
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
        opened = await request.services.login.sign_in(email, form.raw("password"), request.login_client)
    except errors.SecondFactorNeeded as needed:
        return await request.render("sign_in_code.html", ticket=needed.ticket, next_path=next_path)
    except (errors.LoginFailed, errors.TooManyAttempts) as error:
        return await _render_error(request, "sign_in.html", error, next_path=next_path, email=email)
    return await request.start_session(opened, next_path)


@pages.post("/sign-in/code", is_public=True, back_to="/sign-in")
async def sign_in_with_code(request: StaffRequest) -> Response:
    form, next_path = request.form, local_path(request.form.text("next"))
    ticket = form.text("ticket")
    try:
        opened = await request.services.login.sign_in_with_code(
            ticket, form.text("code"), request.login_client
        )
    except (errors.LoginFailed, errors.TooManyAttempts) as error:
        return await _render_error(request, "sign_in_code.html", error, ticket=ticket, next_path=next_path)
    return await request.start_session(opened, next_path)


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
        person = await request.services.staff.find_invited(token)
    except errors.InvalidSetupLink:
        return await request.render("sign_in_no_link.html", 404)
    return await _render_set_up(request, person)


@pages.post("/set-up/{token}", is_public=True)
async def set_up(request: StaffRequest, token: str) -> Response:
    accounts, form, password = request.services.staff, request.form, request.form.raw("password")
    request_id, language = request.request_id, request.language.code
    try:
        person = await accounts.find_invited(token)
        if password != form.raw("again"):
            faults = {"again": request._("The passwords do not match.")}
            return await _render_set_up(request, person, 422, faults)
        if person is not None:
            staff = await accounts.choose_password(token, password, request_id, language)
        else:
            staff = await accounts.add_first_admin(
                token, form.text("email"), form.text("name"), password, request_id, language
            )
    except errors.InvalidSetupLink:
        return await request.render("sign_in_no_link.html", 404)
    except errors.InvalidInput as error:
        return await _render_set_up(request, person, 422, request.faults(error))
    except errors.StaffExists as error:
        return await _render_set_up(request, person, 409, {"email": request.error_text(error)})
    opened = await request.services.login.open_session(staff.id, request.login_client)
    return await request.start_session(opened, PREFIX)


async def _render_set_up(
    request: StaffRequest, person: Staff | None, status: int = 200, faults: dict[str, str] | None = None
) -> Response:
    return await request.render(
        "sign_in_set_up.html",
        status,
        person=person,
        typed=request.form,
        faults=faults or {},
        shortest=SHORTEST_PASSWORD,
    )


async def _render_error(
    request: StaffRequest, template: str, error: errors.DomainError, **values: Any
) -> Response:
    """Render the form with the error above it, which does not say which field was wrong."""
    message = request.error_text(error)
    if isinstance(error, errors.TooManyAttempts):
        message = request.too_many_attempts_text(error)
    page = await request.render(template, problem_type(error).status, message=message, **values)
    add_problem_headers(page, error)
    return page
