"""Staff: operations, schemas, the parameter, examples."""

from __future__ import annotations

import uuid
from typing import Any

from holdfast.domain.access import Scope
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Preferences, Staff
from holdfast.operations.setup_links import GOOD_FOR_HOURS, setup_url
from holdfast.operations.staff_documents import invited_document, staff_document
from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.backoffice.staff_bodies import NEW_STAFF, STAFF
from holdfast.web.openapi.answers import WITH_BODY, WITH_KEY, json_answer, problems
from holdfast.web.openapi.example_unit import NOW, as_json
from holdfast.web.openapi.forms import (
    CODE_PATTERN,
    TEXT,
    TIME,
    UNPRINTABLE,
    UUID,
    Schema,
    body_schema,
    either_or_null,
    page,
    record,
)
from holdfast.web.openapi.operations import Operation, Paths, body_of, key_with, operation

_OF_ADMINS = (*WITH_KEY, "ForbiddenToStaff")
_EMAIL_PATTERN = f"^[^ @{UNPRINTABLE}]+@[^ @{UNPRINTABLE}]+$"
_SARA = Staff(
    uuid.UUID("9e0b7a3c-54d2-4c1e-8f6a-1b2c3d4e5f60"),
    "sara@example.com",
    "Sara Al-Harbi",
    Role.SALES,
    Preferences(),
    has_second_factor=False,
    created_at=NOW,
    disabled_at=None,
    last_signed_in_at=None,
    failures_seen_at=NOW,
    has_password=False,
)
_LINK = setup_url("https://units.example.com", "x" * 43)

_FIELDS = {
    "email": "The address with which the person signs in. Capitals make no difference.",
    "name": "How others see the person.",
    "role": "What the person may do.",
    "disabled": "Whether the person is kept out.",
    "setUp": "Whether the person has chosen a password.",
    "secondFactor": "Whether the person signs in with a code as well.",
    "disabledAt": "Since when the person is kept out; null if they are not.",
    "lastSignedInAt": "When the person last signed in; null if they never did.",
    "setupUrl": f"On this page the person chooses a password: once, within {GOOD_FOR_HOURS} hours. It is "
    "told in this answer and never again.",
}
_ADD = """\
The answer tells a link, this once, to be passed on to the person alone: whoever opens it chooses the
password. Without `name`, the person is called what stands before the @. Keys that are limited to projects
have no access to staff, who see them all; keys that expire may list staff and change nothing.
"""
_CHANGE = """\
Another role, or being disabled, ends the sessions of the person at once. The last admin who can sign in can
neither be disabled nor get another role.
"""
_RESET = "Password and second factor are gone, all sessions end, and a new link is told, this once."


def people_paths() -> Paths:
    return {
        f"{PREFIX}/staff": {"get": _list(), "post": _add()},
        f"{PREFIX}/staff/{{id}}": {"patch": _change()},
        f"{PREFIX}/staff/{{id}}/reset": {"post": _reset()},
    }


def people_schemas() -> dict[str, Schema]:
    person = _person()
    patterns = {"email": _EMAIL_PATTERN, "name": CODE_PATTERN}
    return {
        "Staff": record(person, description="A person of the back office."),
        "StaffList": page("staff", "Staff"),
        "InvitedStaff": record({**person, "setupUrl": _told(TEXT | {"format": "uri"}, "setupUrl")}),
        "NewStaff": body_schema(NEW_STAFF, _FIELDS, patterns),
        "StaffChanges": body_schema(STAFF, _FIELDS, {"name": CODE_PATTERN}),
    }


def _person() -> dict[str, Schema]:
    return {
        "id": UUID,
        "email": _told(TEXT, "email"),
        "name": _told(TEXT, "name"),
        "role": _told(TEXT | {"enum": [*Role]}, "role"),
        "setUp": _told({"type": "boolean"}, "setUp"),
        "secondFactor": _told({"type": "boolean"}, "secondFactor"),
        "createdAt": TIME,
        "disabledAt": _told(either_or_null(TIME), "disabledAt"),
        "lastSignedInAt": _told(either_or_null(TIME), "lastSignedInAt"),
    }


def _told(schema: Schema, name: str) -> Schema:
    return schema | {"description": _FIELDS[name]}


def _of_admins(name: str, summary: str, *parameters: str, **members: Any) -> Operation:
    security = key_with(Scope.ADMIN)
    return operation(name, "Administration", summary, *parameters, security=security, **members)


def _list() -> Operation:
    shown = {"staff": [as_json(staff_document(_SARA))], "nextCursor": None}
    answers = {
        "200": json_answer("A page of staff, the oldest first.", "StaffList", shown),
        **problems(*_OF_ADMINS),
    }
    return _of_admins("listStaff", "List staff", "cursor", "limit", responses=answers)


def _add() -> Operation:
    body = body_of("NewStaff", sales=("For the sales desk", new_person()))
    answers = {
        "201": _invited("Added, with the set-up link."),
        **problems(*_OF_ADMINS, *WITH_BODY, "StaffExists"),
    }
    return _of_admins("addStaff", "Add a person", description=_ADD, requestBody=body, responses=answers)


def _change() -> Operation:
    body = body_of(
        "StaffChanges",
        role=("Another role", {"role": Role.VIEWER}),
        disabled=("Kept out", {"disabled": True}),
    )
    changed = json_answer("The person.", "Staff", as_json(staff_document(_SARA)))
    answers = {"200": changed, **problems(*_OF_ADMINS, *WITH_BODY, "UnknownStaff", "LastAdmin")}
    return _of_admins(
        "changeStaff", "Change a person", "staffId", description=_CHANGE, requestBody=body, responses=answers
    )


def _reset() -> Operation:
    answers = {
        "200": _invited("Reset, with a new set-up link."),
        **problems(*_OF_ADMINS, *WITH_BODY, "UnknownStaff"),
    }
    return _of_admins("resetStaff", "Reset a person", "staffId", description=_RESET, responses=answers)


def _invited(description: str) -> dict[str, Any]:
    return json_answer(description, "InvitedStaff", as_json(invited_document(_SARA, _LINK)), "Cache-Control")


def new_person() -> dict[str, Any]:
    return {"email": _SARA.email, "name": _SARA.name, "role": _SARA.role}
