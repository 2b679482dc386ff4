"""The bodies of staff: who is to be added, and what is to be changed."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, StringConstraints, TypeAdapter, WithJsonSchema, with_config
from typing_extensions import TypedDict

from holdfast.domain.permissions import Role
from holdfast.domain.staff import EMAIL_LENGTH, NAME_LENGTH, email_fault, staff_name_fault
from holdfast.web.checking import names_of
from holdfast.web.fields import STRICT, field_error, not_one_of


def _email(value: str) -> str:
    fault = email_fault(value)
    if fault is not None:
        raise field_error(fault.message)
    return value


def _name(value: str) -> str:
    fault = staff_name_fault(value)
    if fault is not None:
        raise field_error(fault.message)
    return value


def _role(value: str) -> Role:
    if value not in tuple(Role):
        raise not_one_of(Role)
    return Role(value)


Email = Annotated[
    str, StringConstraints(min_length=EMAIL_LENGTH[0], max_length=EMAIL_LENGTH[1]), AfterValidator(_email)
]
Name = Annotated[
    str, StringConstraints(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1]), AfterValidator(_name)
]
ChosenRole = Annotated[
    str, AfterValidator(_role), WithJsonSchema({"type": "string", "enum": [str(role) for role in Role]})
]


@with_config(STRICT)
class NewStaffBody(TypedDict):
    email: Email
    role: ChosenRole
    name: NotRequired[Name]


@with_config(STRICT)
class StaffBody(TypedDict, total=False):
    name: Name
    role: ChosenRole
    disabled: bool


NEW_STAFF: TypeAdapter[Any] = TypeAdapter(NewStaffBody)
STAFF: TypeAdapter[Any] = TypeAdapter(StaffBody)

NEW_STAFF_NAMES = names_of(NewStaffBody)
STAFF_NAMES = names_of(StaffBody)
