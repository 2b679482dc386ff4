"""Admins and their people."""

import re
import secrets
from html import unescape

import pytest

from holdfast.domain.permissions import Role
from tests.support.sql import Sql
from tests.support.staff_client import People, Person

STAFF = "/backoffice/staff"


@pytest.fixture
def newcomer(admin: Person, sql: Sql) -> str:
    """The path of somebody who was just invited."""
    email = f"new-{secrets.token_hex(4)}@example.com"
    assert admin.submit(f"{STAFF}/new", {"email": email, "name": "New One", "role": "sales"}).is_success
    return f"{STAFF}/{sql.value('select id from staff where email = $1', email)}"


def links(page: str) -> list[str]:
    return sorted(set(re.findall(r"/backoffice/set-up/([\w-]{43})", unescape(page))))


def everybody(person: Person) -> str:
    """All pages of the list: other tests have people, too."""
    pages = [person.see(STAFF)]
    while found := re.search(r'href="([^"]+)" rel="next"', pages[-1]):
        pages.append(person.see(unescape(found[1])))
    return "".join(pages)


def test_everybody_is_listed_with_role_and_state(admin: Person, sales: Person) -> None:
    page = everybody(admin)
    assert admin.email in page
    assert sales.email in page
    assert "Invited" in page
    assert "Never" in page


def test_whoever_is_added_gets_a_link_that_is_shown_once(admin: Person) -> None:
    email = f"sara-{secrets.token_hex(4)}@example.com"
    answer = admin.submit(f"{STAFF}/new", {"email": email, "name": "Sara", "role": "viewer"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert len(links(answer.text)) == 1
    assert email in answer.text
    assert links(everybody(admin)) == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"email": "nobody", "name": "X", "role": "sales"}, "An e-mail address has an @"),
        ({"email": "a@b.example", "name": " ", "role": "sales"}, "A name is printable text"),
        ({"email": "", "name": "", "role": "sales"}, "A name is printable text"),
    ],
    ids=["no address", "no name", "nothing"],
)
def test_what_is_wrong_stands_beside_its_field_and_adds_nobody(
    admin: Person, sql: Sql, fields: dict[str, str], told: str
) -> None:
    before = sql.value("select count(*) from staff")
    answer = admin.submit(f"{STAFF}/new", fields)
    assert answer.status_code == 422
    assert told in answer.text
    assert f'value="{fields["email"]}"' in answer.text
    assert sql.value("select count(*) from staff") == before


def test_an_address_that_is_there_already_is_refused(admin: Person, sales: Person) -> None:
    answer = admin.submit(f"{STAFF}/new", {"email": sales.email.upper(), "name": "X", "role": "sales"})
    assert answer.status_code == 409
    assert "There is already a member of staff" in answer.text


@pytest.mark.parametrize("role", ["", "owner", "ADMIN"])
def test_a_role_that_is_none_is_refused(admin: Person, newcomer: str, role: str) -> None:
    assert admin.submit(f"{newcomer}/role", {"role": role}).status_code == 400
    fields = {"email": "x@y.example", "name": "X", "role": role}
    assert admin.submit(f"{STAFF}/new", fields).status_code == 400


def test_another_role_counts_at_once_and_signs_out(admin: Person, people: People) -> None:
    person = people.signed_in("sales")
    page = admin.done(f"{STAFF}/{person.staff_id}/role", {"role": "viewer"})
    assert "The role was changed." in page
    assert person.look("/backoffice/account").status_code == 303


def test_disabled_and_enabled_again(admin: Person, people: People) -> None:
    person = people.signed_in("integrator")
    path = f"{STAFF}/{person.staff_id}"
    assert "Disabled" in admin.done(f"{path}/disable")
    assert person.look("/backoffice/account").status_code == 303
    assert "The account is enabled again." in admin.done(f"{path}/enable")
    assert "Disabled" not in admin.see(path)


def test_a_reset_shows_a_new_link_and_kills_the_last(admin: Person, people: People, newcomer: str) -> None:
    first = links(admin.submit(f"{newcomer}/reset").text)
    second = links(admin.submit(f"{newcomer}/reset").text)
    assert len(first) == len(second) == 1
    people.stranger().see(f"/backoffice/set-up/{first[0]}", 404)
    people.stranger().see(f"/backoffice/set-up/{second[0]}", 200)


def test_whoever_reloads_the_page_with_the_link_finds_the_person(admin: Person, newcomer: str) -> None:
    assert admin.look(f"{newcomer}/reset").headers["location"] == newcomer
    assert links(admin.see(newcomer)) == []


def test_nobody_is_found_under_a_wrong_id(admin: Person) -> None:
    admin.see(f"{STAFF}/3f2c0d6e-0000-4000-8000-000000000000", 404)
    admin.see(f"{STAFF}/nobody", 422)
    assert admin.submit(f"{STAFF}/nobody/reset").status_code == 422


def test_one_does_not_disable_oneself_by_mistake(admin: Person) -> None:
    page = admin.see(f"{STAFF}/{admin.staff_id}")
    assert "This is your own account." in page
    assert f"{admin.staff_id}/disable" not in page


def test_a_name_is_just_a_name(admin: Person) -> None:
    fields = {"email": f"x-{secrets.token_hex(4)}@y.example", "name": "<img onerror=x>", "role": "viewer"}
    page = admin.submit(f"{STAFF}/new", fields).text + everybody(admin)
    assert "<img" not in page
    assert "&lt;img onerror=x&gt;" in page


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.ADMIN}))
def test_staff_are_for_admins_alone(people: People, role: str) -> None:
    person = people.signed_in(role)
    person.see(STAFF, 403)
    assert STAFF not in person.see("/backoffice/account").replace(f"{STAFF}/", "")
    assert person.submit(f"{STAFF}/new", {"email": "a@b", "name": "A", "role": "admin"}).status_code == 403


def test_the_page_in_arabic(arab: Person) -> None:
    page = arab.see(STAFF)
    assert "الموظفون" in page
    assert "مبيعات" in page or "مدير" in page


def test_a_wrong_cursor_leads_to_the_first_page(admin: Person) -> None:
    admin.see(f"{STAFF}?cursor=nonsense")
