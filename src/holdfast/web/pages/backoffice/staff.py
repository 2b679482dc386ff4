"""The accounts of staff, for admins: listed, invited, changed, disabled and reset."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.responses import Response

from holdfast.domain.errors import InvalidInput, StaffExists
from holdfast.domain.permissions import Permission, Role
from holdfast.domain.staff import Staff
from holdfast.operations.staff import SETUP_LINK_HOURS, setup_url
from holdfast.web.errors import MalformedBody
from holdfast.web.pages.backoffice.base import ACCOUNT, PREFIX, StaffRequest, pages
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

STAFF = f"{PREFIX}/staff"
STAFF_A_PAGE = 100


@pages.get("/staff", Permission.ADMINISTER)
async def list_staff(request: StaffRequest) -> Response:
    after = request.parse_cursor(TIME_AND_ID_CURSOR)
    rows = await request.services.staff.page(after, STAFF_A_PAGE)
    staff, next_cursor = paginate(rows, STAFF_A_PAGE, creation_cursor)
    return await request.render("staff.html", staff=staff, **request.page_links(STAFF, next_cursor))


@pages.get("/staff/new", Permission.ADMINISTER)
async def show_invitation(
    request: StaffRequest, status: int = 200, faults: dict[str, str] | None = None
) -> Response:
    return await request.render(
        "staff_new.html", status, roles=list(Role), typed=request.form, faults=faults or {}
    )


@pages.post("/staff/new", Permission.ADMINISTER)
async def invite(request: StaffRequest) -> Response:
    form, role = request.form, _parse_role(request)
    try:
        invited = await request.services.staff.invite(
            form.text("email"), form.text("name"), role, request.author, request.form_id
        )
    except InvalidInput as error:
        return await show_invitation(request, 422, request.faults(error))
    except StaffExists as error:
        return await show_invitation(request, 409, {"email": request.error_text(error)})
    return await _render_person(request, invited.staff, invited.token)


@pages.get("/staff/{id}", Permission.ADMINISTER)
async def show_person(request: StaffRequest, staff_id: UUID) -> Response:
    return await _render_person(request, await request.services.staff.find(staff_id))


@pages.post("/staff/{id}/role", Permission.ADMINISTER, back_to="/staff/{id}")
async def change_role(request: StaffRequest, staff_id: UUID) -> Response:
    role, notice = _parse_role(request), request._("The role was changed.")
    return await _change(request, staff_id, {"role": role}, notice)


@pages.post("/staff/{id}/disable", Permission.ADMINISTER, back_to="/staff/{id}")
async def disable(request: StaffRequest, staff_id: UUID) -> Response:
    notice = request._("The account is disabled, and all its sessions have ended.")
    return await _change(request, staff_id, {"disabled": True}, notice)


@pages.post("/staff/{id}/enable", Permission.ADMINISTER, back_to="/staff/{id}")
async def enable(request: StaffRequest, staff_id: UUID) -> Response:
    return await _change(request, staff_id, {"disabled": False}, request._("The account is enabled again."))


@pages.post("/staff/{id}/reset", Permission.ADMINISTER, back_to="/staff/{id}")
async def reset(request: StaffRequest, staff_id: UUID) -> Response:
    if staff_id == request.staff.id:
        return request.redirect(ACCOUNT)  # where removing the second factor asks for a code
    invited = await request.services.staff.reset(staff_id, request.author, request.form.text("seen"))
    return await _render_person(request, invited.staff, invited.token)


async def _change(request: StaffRequest, staff_id: UUID, changes: dict[str, Any], notice: str) -> Response:
    await request.services.staff.change(staff_id, changes, request.author)
    return await request.redirect_with_notice(f"{STAFF}/{staff_id}", notice)


async def _render_person(request: StaffRequest, person: Staff, token: str | None = None) -> Response:
    """Show the set-up link of a token this once: it is stored as a hash."""
    return await request.render(
        "staff_person.html",
        person=person,
        path=f"{STAFF}/{person.id}",
        roles=list(Role),
        credentials_version=await request.services.staff.credentials_version(person.id),
        link=token and setup_url(request.context.public_url, token),
        hours=SETUP_LINK_HOURS,
        is_self=person.id == request.staff.id,
    )


def _parse_role(request: StaffRequest) -> Role:
    try:
        return Role(request.form.text("role"))
    except ValueError:
        raise MalformedBody("The form has no role.") from None
