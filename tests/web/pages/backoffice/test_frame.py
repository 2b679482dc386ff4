"""What every page of the back office has."""

import pytest

from tests.support.sql import Sql
from tests.support.staff_client import People, Person


def test_whoever_is_not_signed_in_is_sent_to_the_sign_in_page_and_back(people: People) -> None:
    answer = people.stranger().look("/backoffice/projects?x=1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/backoffice/sign-in?next=%2Fbackoffice%2Fprojects%3Fx%3D1"


def test_a_page_that_is_not_there_says_so_in_the_language_of_the_person(admin: Person, arab: Person) -> None:
    assert "There is nothing here" in admin.see("/backoffice/nowhere", 404)
    shown = arab.see("/backoffice/nowhere", 404)
    assert "لا يوجد شيء هنا" in shown
    assert 'lang="ar" dir="rtl"' in shown
    assert "٤٠٤" in shown


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/backoffice/", "/backoffice"),
        ("/backoffice/projects/?q=x", "/backoffice/projects?q=x"),
        ("/backoffice//example.com//", "/backoffice//example.com"),
    ],
)
def test_a_slash_at_the_end_of_a_path_is_taken_off(people: People, path: str, meant: str) -> None:
    answer = people.stranger().look(path)
    assert (answer.status_code, answer.headers["location"]) == (308, meant)


def test_a_page_is_nobody_elses_business(admin: Person) -> None:
    headers = admin.look("/backoffice/nowhere").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("token", ["", "0" * 64])
def test_a_form_without_the_token_of_its_session_is_refused(admin: Person, token: str) -> None:
    fields = {"csrf": token, "upTo": "2026-01-01T00:00:00+00:00"}
    answer = admin.post("/backoffice/announcements/seen", data=fields, headers=admin.sent())
    assert answer.status_code == 403
    assert "out of date" in answer.text


def test_a_form_that_another_site_sends_is_refused(admin: Person) -> None:
    answer = admin.submit("/backoffice/announcements/seen", {"upTo": "2026-01-01"}, site="cross-site")
    assert answer.status_code == 403


def test_a_form_with_nonsense_in_it_is_refused_and_no_fault_of_ours(admin: Person) -> None:
    assert admin.submit("/backoffice/announcements/seen", {"upTo": "yesterday"}).status_code == 400


def test_a_method_that_a_page_does_not_have_is_refused(admin: Person) -> None:
    answer = admin.request("DELETE", "/backoffice/announcements/seen", headers=admin.sent())
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_what_a_page_asks_by_itself_keeps_no_session_open(people: People, sql: Sql) -> None:
    person = people.signed_in()
    sql.execute("update staff_session set last_seen_at = last_seen_at - interval '1 hour'")
    last_seen = "select last_seen_at from staff_session where staff_id = $1::text::uuid"
    before = sql.value(last_seen, person.staff_id)
    person.look("/backoffice/projects", **{"hx-request": "true"})
    assert sql.value(last_seen, person.staff_id) == before
    person.see("/backoffice/projects")
    assert sql.value(last_seen, person.staff_id) > before
