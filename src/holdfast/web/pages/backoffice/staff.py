"""The accounts of staff, for admins: listed, invited, changed, disabled and reset."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.responses import Response

from holdfast.domain.errors import InvalidInput, LastAdmin, StaffExists
from holdfast.domain.permissions import Permission, Role
from holdfast.domain.staff import Staff
from holdfast.operations.staff import SETUP_LINK_HOURS, Invited, setup_url
from holdfast.web.http_errors import MalformedBody
from holdfast.web.pages.backoffice.base import (
    PREFIX,
    StaffRequest,
    faults_by_field,
    page_links,
    parse_cursor,
)
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pages.routes import Pages
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

STAFF = f"{PREFIX}/staff"
STAFF_A_PAGE = 100

pages = Pages(StaffRequest)


@pages.get("/staff", Permission.ADMINISTER)
async def list_staff(request: StaffRequest) -> Response:
    after = parse_cursor(request, TIME_AND_ID_CURSOR)
    rows = await request.services.staff.page(after, STAFF_A_PAGE)
    staff, next_cursor = paginate(rows, STAFF_A_PAGE, creation_cursor)
    return await request.render("staff.html", staff=staff, **page_links(request, STAFF, next_cursor))


@pages.get("/staff/new", Permission.ADMINISTER)
async def show_invitation(request: StaffRequest) -> Response:
    return await _render_form(request)


@pages.post("/staff/new", Permission.ADMINISTER)
async def invite(request: StaffRequest) -> Response:
    form, role = request.form, _parse_role(request)
    try:
        invited = await request.services.staff.invite(
            form.text("email"), form.text("name"), role, request.author
        )
    except InvalidInput as error:
        return await _render_form(request, 422, faults_by_field(request, error))
    except StaffExists as error:
        return await _render_form(request, 409, {"email": translate_error(error, request.language)})
    return await _render_with_link(request, invited)


@pages.get("/staff/{id}", Permission.ADMINISTER)
async def show_person(request: StaffRequest, staff_id: UUID) -> Response:
    return await _render_person(request, await request.services.staff.find(staff_id))


@pages.post("/staff/{id}/role", Permission.ADMINISTER, back_to="/staff/{id}")
async def change_role(request: StaffRequest, staff_id: UUID) -> Response:
    return await _change(
        request, staff_id, {"role": _parse_role(request)}, request._("The role was changed.")
    )


@pages.post("/staff/{id}/disable", Permission.ADMINISTER, back_to="/staff/{id}")
async def disable(request: StaffRequest, staff_id: UUID) -> Response:
    notice = request._("The account is disabled, and all its sessions have ended.")
    return await _change(request, staff_id, {"disabled": True}, notice)


@pages.post("/staff/{id}/enable", Permission.ADMINISTER, back_to="/staff/{id}")
async def enable(request: StaffRequest, staff_id: UUID) -> Response:
    return await _change(request, staff_id, {"disabled": False}, request._("The account is enabled again."))


@pages.post("/staff/{id}/reset", Permission.ADMINISTER, back_to="/staff/{id}")
async def reset(request: StaffRequest, staff_id: UUID) -> Response:
    return await _render_with_link(request, await request.services.staff.reset(staff_id, request.author))


async def _change(request: StaffRequest, staff_id: UUID, changes: dict[str, Any], notice: str) -> Response:
    path = f"{STAFF}/{staff_id}"
    try:
        await request.services.staff.change(staff_id, changes, request.author)
    except LastAdmin as error:
        return await request.redirect_with_notice(path, translate_error(error, request.language), "refused")
    return await request.redirect_with_notice(path, notice)


async def _render_form(
    request: StaffRequest, status: int = 200, faults: dict[str, str] | None = None
) -> Response:
    return await request.render(
        "staff_new.html", status, roles=list(Role), typed=request.form, faults=faults or {}
    )


async def _render_with_link(request: StaffRequest, invited: Invited) -> Response:
    """Show the link this once: it is stored as a hash."""
    link = setup_url(request.context.public_url, invited.token)
    return await _render_person(request, invited.staff, link)


async def _render_person(request: StaffRequest, person: Staff, link: str | None = None) -> Response:
    return await request.render(
        "staff_person.html",
        person=person,
        path=f"{STAFF}/{person.id}",
        roles=list(Role),
        link=link,
        hours=SETUP_LINK_HOURS,
        is_self=person.id == request.staff.id,
    )


def _parse_role(request: StaffRequest) -> Role:
    try:
        return Role(request.form.text("role"))
    except ValueError:
        raise MalformedBody("The form does not name a role.") from None
