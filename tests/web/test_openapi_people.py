"""The description of staff: answers, problems, members, bodies."""

import json
from typing import Any

import pytest

from holdfast.domain.refusals import InvalidInput
from holdfast.web import strict_json
from holdfast.web.backoffice.staff_bodies import NEW_STAFF, NEW_STAFF_NAMES, STAFF, STAFF_NAMES
from holdfast.web.checking import valid_body
from holdfast.web.openapi.people import new_person
from tests.web.reading import named, schema, told, validator

Document = dict[str, Any]

ADMIN = {"400", "401", "403", "405", "422", "429", "503"}
ANSWERS = {
    "listStaff": ADMIN | {"200"},
    "addStaff": ADMIN | {"201", "409", "413", "415"},
    "changeStaff": ADMIN | {"200", "404", "409", "413", "415"},
    "resetStaff": ADMIN | {"200", "404", "413", "415"},
}
EMAILS = [
    "a@b",
    "A@B.example",
    "سارة@مثال.السعودية",
    "",
    "a",
    "a b@c",
    " a@b",
    "a@b@c",
    "x" * 254 + "@b",
    None,
    5,
]
NAMES = ["A", "سارة", "", " A", "A ", "x" * 200, "x" * 201, None, 5]
ROLES = ["admin", "viewer", "owner", "", None, 5]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_possible_answer_is_described(document: Document, name: str) -> None:
    operation = named(document, name)
    assert set(operation["responses"]) == ANSWERS[name]
    assert operation["security"] == [{"apiKey": ["admin"]}]


@pytest.mark.parametrize(
    ("name", "status", "problems"),
    [
        ("addStaff", "409", {"staff-exists"}),
        ("changeStaff", "409", {"last-admin"}),
        ("changeStaff", "404", {"unknown-staff"}),
        ("resetStaff", "404", {"unknown-staff"}),
    ],
)
def test_what_may_be_refused_is_told(document: Document, name: str, status: str, problems: set[str]) -> None:
    assert set(told(document, named(document, name), status)) == problems


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("email", value) for value in EMAILS),
        *(("name", value) for value in NAMES),
        *(("role", value) for value in ROLES),
        ("password", "x"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_the_description_accepts_who_is_accepted(document: Document, field: str, value: Any) -> None:
    body = {**new_person(), field: value}
    assert validator(document, schema(document, "NewStaff")).is_valid(body) == taken(
        NEW_STAFF, NEW_STAFF_NAMES, body
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"role": "sales"},
        {"role": None},
        {"disabled": True},
        {"disabled": 1},
        {"name": ""},
        {"email": "a@b"},
    ],
    ids=str,
)
def test_the_description_accepts_what_may_be_changed(document: Document, body: dict[str, Any]) -> None:
    assert validator(document, schema(document, "StaffChanges")).is_valid(body) == taken(
        STAFF, STAFF_NAMES, body
    )


def taken(form: Any, names: frozenset[str], body: dict[str, Any]) -> bool:
    try:
        valid_body(form, strict_json.parse(json.dumps(body)), names)
    except InvalidInput:
        return False
    return True
