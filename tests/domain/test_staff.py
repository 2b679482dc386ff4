"""The people of the back office: names, addresses, what they may."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from holdfast.domain.permissions import ROLE_PERMISSIONS, Permission, Role
from holdfast.domain.project import name_fault
from holdfast.domain.staff import Preferences, Staff, email_fault, email_key

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("email", ["a@b", "nora@example.com", "نورة@مثال.السعودية", "a+b.c@d-e.f"], ids=ascii)
def test_an_address_is_something_at_something(email: str) -> None:
    assert email_fault(email) is None


@pytest.mark.parametrize(
    "email",
    [
        "",
        "@",
        "a@",
        "@b",
        "a b@c",
        "a@b@c",
        " a@b",
        "a@b\n",
        "a\0@b",
        "a\u200b\u2028@b",
        "\ud800@b",
        "a" * 254 + "@b",
    ],
    ids=ascii,
)
def test_anything_else_is_no_address(email: str) -> None:
    fault = email_fault(email)
    assert fault is not None
    assert fault.pointer == "/email"


def test_addresses_are_compared_without_capitals_and_spaces_around_them() -> None:
    assert email_key(" Nora@Example.COM ") == email_key("nora@example.com")
    assert email_key("nora@example.com") != email_key("noura@example.com")


@pytest.mark.parametrize("name", ["", " ", " Nora", "Nora ", "No\nra", "\0", "\ud800", "n" * 201], ids=ascii)
def test_a_name_is_one_line(name: str) -> None:
    fault = name_fault(name)
    assert fault is not None
    assert fault.pointer == "/name"


@pytest.mark.parametrize("name", ["N", "Nora Al-Harbi", "نورة الحربي", "n" * 200], ids=ascii)
def test_a_name_is_whatever_people_are_called(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize("role", Role)
def test_a_person_may_what_their_role_may(role: Role) -> None:
    person = Staff(uuid4(), "n@x", "N", role, Preferences(), False, NOW, None, None, NOW)
    assert {permission for permission in Permission if person.may(permission)} == ROLE_PERMISSIONS[role]
