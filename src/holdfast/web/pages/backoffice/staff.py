"""The people of the back office, for admins: who they are, what they may, how they get in."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import InvalidInput, LastAdmin, StaffExists
from holdfast.domain.permissions import Permission, Role
from holdfast.domain.staff import Staff
from holdfast.operations.staff import SETUP_LINK_HOURS, Invited, StaffAccounts, setup_url
from holdfast.web.api.parameters import id_in_path
from holdfast.web.http_errors import MalformedBody
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit, faults_by_field
from holdfast.web.pages.i18n import translate_error
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

STAFF = f"{PREFIX}/staff"
A_PAGE = 100


class StaffPages:
    def __init__(self, staff: StaffAccounts, public_url: str) -> None:
        self._staff = staff
        self._public_url = public_url

    async def list(self, visit: Visit) -> Response:
        after = _position(visit)
        page = await self._staff.page(after, A_PAGE)
        has_more = len(page) > A_PAGE
        return await visit.render(
            "staff.html",
            people=page[:A_PAGE],
            first=STAFF if after else None,
            next=f"{STAFF}?cursor={creation_cursor(page[A_PAGE - 1])}" if has_more else None,
        )

    async def ask(self, visit: Visit) -> Response:
        return await self._new(visit)

    async def invite(self, visit: Visit) -> Response:
        form, role = visit.form, _role(visit)
        try:
            invited = await self._staff.invite(form.text("email"), form.text("name"), role, visit.author)
        except InvalidInput as refusal:
            return await self._new(visit, 422, faults_by_field(visit, refusal))
        except StaffExists as refusal:
            return await self._new(visit, 409, {"email": translate_error(refusal, visit.language)})
        return await self._with_link(visit, invited)

    async def show(self, visit: Visit) -> Response:
        return await self._person(visit, await self._staff.find(_named(visit)))

    async def back(self, visit: Visit) -> Response:
        return await visit.go(_path(_named(visit)))

    async def change_role(self, visit: Visit) -> Response:
        role = _role(visit)
        return await self._change(visit, {"role": role}, visit._("The role was changed."))

    async def disable(self, visit: Visit) -> Response:
        told = visit._("The account is disabled, and all its sessions have ended.")
        return await self._change(visit, {"disabled": True}, told)

    async def enable(self, visit: Visit) -> Response:
        return await self._change(visit, {"disabled": False}, visit._("The account is enabled again."))

    async def reset(self, visit: Visit) -> Response:
        return await self._with_link(visit, await self._staff.reset(_named(visit), visit.author))

    async def _change(self, visit: Visit, changes: dict[str, Any], told: str) -> Response:
        staff_id = _named(visit)
        try:
            await self._staff.change(staff_id, changes, visit.author)
        except LastAdmin as refusal:
            return await visit.go(_path(staff_id), translate_error(refusal, visit.language), "refused")
        return await visit.go(_path(staff_id), told)

    async def _new(self, visit: Visit, status: int = 200, faults: dict[str, str] | None = None) -> Response:
        return await visit.render(
            "staff_new.html", status, roles=list(Role), typed=visit.form, faults=faults or {}
        )

    async def _with_link(self, visit: Visit, invited: Invited) -> Response:
        """This once: the link is stored as a hash."""
        return await self._person(visit, invited.staff, setup_url(self._public_url, invited.token))

    async def _person(self, visit: Visit, person: Staff, link: str | None = None) -> Response:
        return await visit.render(
            "staff_person.html",
            person=person,
            path=_path(person.id),
            roles=list(Role),
            link=link,
            hours=SETUP_LINK_HOURS,
            is_self=person.id == visit.staff.id,
        )


def staff_page_routes(desk: Desk, staff: StaffAccounts, public_url: str) -> list[Route]:
    pages, person, admins = StaffPages(staff, public_url), STAFF + "/{id}", Permission.ADMINISTER
    acts = {
        "role": pages.change_role,
        "disable": pages.disable,
        "enable": pages.enable,
        "reset": pages.reset,
    }
    return [
        desk.page(STAFF, admins, GET=pages.list),
        desk.page(f"{STAFF}/new", admins, GET=pages.ask, POST=pages.invite),
        desk.page(person, admins, GET=pages.show),
        *(desk.page(f"{person}/{path}", admins, GET=pages.back, POST=act) for path, act in acts.items()),
    ]


def _path(staff_id: UUID) -> str:
    return f"{STAFF}/{staff_id}"


def _named(visit: Visit) -> UUID:
    return id_in_path(visit.request)


def _role(visit: Visit) -> Role:
    try:
        return Role(visit.form.text("role"))
    except ValueError:
        raise MalformedBody("The form does not name a role.") from None


def _position(visit: Visit) -> tuple[datetime, UUID] | None:
    """A cursor that is none leads to the first page."""
    try:
        return TIME_AND_ID_CURSOR.decode(visit.query.text("cursor"))
    except ValueError:
        return None
