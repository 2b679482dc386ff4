"""Staff: list, invite, change and reset people of the back office."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from holdfast.domain.api_key import Scope
from holdfast.domain.errors import KeyLimited, LastAdmin, StaffExists, UnknownStaff
from holdfast.domain.permissions import Permission, Role
from holdfast.domain.project import NAME_LENGTH, name_fault
from holdfast.domain.staff import EMAIL_LENGTH, default_name, email_fault
from holdfast.operations import staff as operations
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel
from holdfast.web.api.models import Cursor, Document, page_document
from holdfast.web.api.parameters import Limit, TimeAndIdCursor
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.fields import LEFT_OUT, PRINTABLE_PATTERN, UNPRINTABLE, OneOf, checked_by
from holdfast.web.pagination import creation_cursor
from holdfast.web.request import Request

_admin = key_guard(Permission.ADMINISTER)


async def _check_unlimited_key(request: Request) -> None:
    """Reject limited keys: staff see every project. Keys that expire only read: staff would outlive them."""
    await _admin.check(request)
    key = request.key
    is_reading = request.method in ("GET", "HEAD")
    if key.project_slugs is not None or (key.expires_at is not None and not is_reading):
        raise KeyLimited(Scope.ADMIN)


routes = ApiRoutes(PREFIX, "Administration", replace(_admin, check=_check_unlimited_key))


Email = Annotated[
    str,
    StringConstraints(min_length=EMAIL_LENGTH[0], max_length=EMAIL_LENGTH[1]),
    AfterValidator(checked_by(email_fault)),
    Field(
        json_schema_extra={"pattern": f"^[^ @{UNPRINTABLE}]+@[^ @{UNPRINTABLE}]+$"},
        description="The address with which the person signs in. It is not case-sensitive.",
    ),
]
Name = Annotated[
    str,
    StringConstraints(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1]),
    AfterValidator(checked_by(name_fault)),
    Field(json_schema_extra={"pattern": PRINTABLE_PATTERN}, description="How others see the person."),
]
ChosenRole = Annotated[str, OneOf(Role), Field(description="What the person may do.")]
Disabled = Annotated[bool, Field(description="Whether the account is disabled.")]


class NewStaff(BodyModel):
    example: ClassVar[Any] = {"email": "sara@example.com", "role": "sales", "name": "Sara Al-Harbi"}

    email: Email
    role: ChosenRole
    name: Name = LEFT_OUT


class StaffChanges(BodyModel):
    example: ClassVar[Any] = {"role": "viewer"}

    name: Name = LEFT_OUT
    role: ChosenRole = LEFT_OUT
    disabled: Disabled = LEFT_OUT


class StaffListDocument(Document):
    staff: list[operations.StaffDocument]
    next_cursor: Cursor


@routes.get("/staff", summary="List staff")
async def list_staff(request: Request, *, cursor: TimeAndIdCursor, limit: Limit) -> StaffListDocument:
    """Oldest first, including disabled people."""
    rows = await request.services.staff.page(cursor, limit)
    return page_document(StaffListDocument, rows, limit, operations.staff_document, creation_cursor)


@routes.post("/staff", summary="Add a person", status=201, errors=(StaffExists,))
async def add_staff(request: Request, body: NewStaff) -> operations.InvitedStaffDocument:
    """Returns a set-up link. This is the only time that it is shown. Give it only to this person: anyone who
    opens it chooses the password. Without `name`, the person is named after the part of the e-mail address
    before the @.

    Keys that are limited to projects have no access to staff. Keys that expire can list staff but not change
    them."""
    choices = body.sent()
    name = choices.get("name") or default_name(body.email)
    invited = await request.services.staff.invite(body.email, name, choices["role"], request.author)
    return _invited_document(request, invited)


@routes.patch("/staff/{id}", summary="Change a person", errors=(UnknownStaff, LastAdmin))
async def change_staff(request: Request, staff_id: UUID, body: StaffChanges) -> operations.StaffDocument:
    """Changes only the fields that are sent. Changing the role or disabling the person ends their sessions at
    once. The last admin who can sign in cannot be disabled or given another role."""
    changed = await request.services.staff.change(staff_id, body.sent(), request.author)
    return operations.staff_document(changed)


@routes.post("/staff/{id}/reset", summary="Reset a person", errors=(UnknownStaff,))
async def reset_staff(request: Request, staff_id: UUID) -> operations.InvitedStaffDocument:
    """Removes password and second factor, ends all sessions, and returns a new set-up link. This is the only
    time that it is shown."""
    return _invited_document(request, await request.services.staff.reset(staff_id, request.author))


def _invited_document(request: Request, invited: operations.Invited) -> operations.InvitedStaffDocument:
    url = operations.setup_url(request.context.public_url, invited.token)
    return operations.invited_staff_document(invited.staff, url)
