"""Admins and their people."""

import re
import secrets
from html import unescape
from uuid import UUID

import pytest

from tests.support.sql import Sql
from tests.support.staff_client import People, Person, missing

STAFF = "/backoffice/staff"


def links(page: str) -> list[str]:
    return sorted(set(re.findall(r"/backoffice/set-up/([\w-]{43})", unescape(page))))


def everybody(person: Person) -> str:
    """All pages of the list: other tests have people, too."""
    return "".join(person.all_pages(STAFF))


@pytest.fixture
def newcomer(admin: Person, sql: Sql) -> str:
    """The path of somebody who was just invited."""
    email = f"new-{secrets.token_hex(4)}@example.com"
    assert admin.submit(f"{STAFF}/new", {"email": email, "name": "New One", "role": "sales"}).is_success
    return f"{STAFF}/{sql.value('select id from staff where email = $1', email)}"


def test_whoever_is_added_is_listed_and_gets_a_link_that_is_shown_once(admin: Person, arab: Person) -> None:
    email = f"sara-{secrets.token_hex(4)}@example.com"
    answer = admin.submit(f"{STAFF}/new", {"email": email, "name": "<img onerror=x>", "role": "viewer"})
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert len(links(answer.text)) == 1
    page = everybody(admin)
    assert missing(page, admin.email, email, "&lt;img onerror=x&gt;", "Invited", "Never") == []
    assert links(page) == []
    assert "<img" not in answer.text + page
    assert missing(arab.see(STAFF), "الموظفون") == []


def test_what_is_wrong_stands_beside_its_field_and_adds_nobody(
    admin: Person, sales: Person, sql: Sql
) -> None:
    before = sql.value("select count(*) from staff")
    for email, name, status, told in (
        ("nobody", "X", 422, "An e-mail address must have an @"),
        ("a@b.example", " ", 422, "A name is printable text"),
        (sales.email.upper(), "X", 409, "There is already a member of staff"),
    ):
        page = admin.refused(f"{STAFF}/new", {"email": email, "name": name, "role": "sales"}, status)
        assert missing(page, told, f'value="{email}"') == []
    assert sql.value("select count(*) from staff") == before


@pytest.mark.parametrize("role", ["", "owner", "ADMIN"])
def test_a_role_that_is_none_is_refused(admin: Person, newcomer: str, role: str) -> None:
    admin.refused(f"{newcomer}/role", {"role": role}, 400)
    admin.refused(f"{STAFF}/new", {"email": "x@y.example", "name": "X", "role": role}, 400)


def test_another_role_counts_at_once_and_signs_out(admin: Person, people: People) -> None:
    person = people.signed_in("sales")
    page = admin.done(f"{STAFF}/{person.staff_id}/role", {"role": "viewer"})
    assert "The role was changed." in page
    person.see("/backoffice/account", 303)


def test_disabled_and_enabled_again(admin: Person, people: People) -> None:
    person = people.signed_in("integrator")
    path = f"{STAFF}/{person.staff_id}"
    assert "Disabled" in admin.done(f"{path}/disable")
    person.see("/backoffice/account", 303)
    assert "The account is enabled again." in admin.done(f"{path}/enable")
    assert "Disabled" not in admin.see(path)
    own = admin.see(f"{STAFF}/{admin.staff_id}")
    assert "This is your own account." in own
    assert f"{admin.staff_id}/disable" not in own


def test_a_reset_shows_a_new_link_and_kills_the_last(admin: Person, people: People, newcomer: str) -> None:
    (first,), (second,) = (links(admin.press(f"{newcomer}/reset", on=newcomer).text) for _ in range(2))
    people.stranger().see(f"/backoffice/set-up/{first}", 404)
    people.stranger().see(f"/backoffice/set-up/{second}", 200)
    assert admin.look(f"{newcomer}/reset").headers["location"] == newcomer
    assert links(admin.see(newcomer)) == []


def test_nobody_resets_their_own_account_because_that_asks_for_no_code(admin: Person) -> None:
    path = f"{STAFF}/{admin.staff_id}"
    assert f"{path}/reset" not in admin.see(path)
    answer = admin.submit(f"{path}/reset")
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice/account")
    admin.see("/backoffice/account")


def test_nobody_is_found_under_a_wrong_id(admin: Person) -> None:
    admin.see(f"{STAFF}/{UUID(int=1)}", 404)
    admin.see(f"{STAFF}/nobody", 422)
    admin.refused(f"{STAFF}/nobody/reset")
