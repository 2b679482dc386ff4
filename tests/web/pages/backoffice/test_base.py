"""What every page of the back office has: the frame, forms, announcements, and answers to odd input."""

from html import unescape
from uuid import uuid4

from holdfast.web.pagination import TEXT_CURSOR
from tests.support.bodies import minimal
from tests.support.client import Unit
from tests.support.sql import Sql
from tests.support.staff_client import People, Person, missing
from tests.support.webhooks import Registrar
from tests.web.pages.backoffice.unit_pages import unit_page

SEEN = "/backoffice/announcements/seen"
UP_TO = {"upTo": "2026-01-01T00:00:00+00:00"}
ANY_PAGE = "/backoffice/deliveries"
FAILING = """
    update endpoint set failing_since = now() - interval '1 day 1 minute',
        failing_cause = 'The connection was refused.'
    where id = $1::text::uuid
"""
NO_ADDRESSES = ("http://[::::::]/x", "http://[1.2]/a", "http://ex℀mple.com/a", "http://a／b/")
TOO_LATE = TEXT_CURSOR.encode("999999999999999." + "0" * 32)
LAST = TEXT_CURSOR.encode("253402300799999." + "f" * 32)


def test_whoever_is_not_signed_in_is_sent_to_the_sign_in_page_and_back(people: People) -> None:
    answer = people.stranger().look("/backoffice/projects?x=1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/backoffice/sign-in?next=%2Fbackoffice%2Fprojects%3Fx%3D1"


def test_a_page_that_is_not_there_says_so_in_the_language_of_the_person(admin: Person, arab: Person) -> None:
    assert "Page not found" in admin.see("/backoffice/nowhere", 404)
    page = arab.see("/backoffice/nowhere", 404)
    assert missing(page, "الصفحة غير موجودة", 'lang="ar" dir="rtl"', "٤٠٤") == []


def test_a_slash_at_the_end_of_a_path_is_taken_off(people: People) -> None:
    for path, meant in (
        ("/backoffice/", "/backoffice"),
        ("/backoffice/projects/?q=x", "/backoffice/projects?q=x"),
        ("/backoffice//example.com//", "/backoffice//example.com"),
    ):
        answer = people.stranger().look(path)
        assert (answer.status_code, answer.headers["location"]) == (308, meant)


def test_a_page_is_nobody_elses_business(admin: Person) -> None:
    headers = admin.look("/backoffice/nowhere").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


def test_what_a_page_asks_by_itself_keeps_no_session_open(people: People, sql: Sql) -> None:
    person = people.signed_in()
    own = "where staff_id = $1::text::uuid"
    sql.execute(f"update staff_session set last_seen_at = now() - interval '1 hour' {own}", person.staff_id)
    last_seen = f"select last_seen_at from staff_session {own}"
    before = sql.value(last_seen, person.staff_id)
    person.look("/backoffice/projects", **{"hx-request": "true"})
    assert sql.value(last_seen, person.staff_id) == before
    person.see("/backoffice/projects")
    assert sql.value(last_seen, person.staff_id) > before


def test_a_form_is_taken_with_the_token_of_its_session_from_our_own_pages(admin: Person) -> None:
    for token in ("", "0" * 64):
        answer = admin.post(SEEN, data={**UP_TO, "csrf": token}, headers=admin.sent())
        assert (answer.status_code, "out of date" in answer.text) == (403, True)
    assert admin.submit(SEEN, UP_TO, site="cross-site").status_code == 403
    assert admin.submit(SEEN, UP_TO, on=ANY_PAGE).status_code == 303


def test_a_form_with_nonsense_in_it_is_refused(admin: Person, people: People) -> None:
    for up_to in ("yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        admin.refused(SEEN, {"upTo": up_to}, 400)
    # Only forms with a file have parts.
    parts = {"content-type": "multipart/form-data; boundary=x"}
    answer = people.stranger().post("/backoffice/sign-in", content=b"--x--", headers=parts)
    assert answer.status_code == 415
    for following in ("http://[", "//[::::", "/backoffice/\tx", "https://example.com/backoffice"):
        answer = admin.submit(SEEN, {**UP_TO, "next": following})
        assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice"), "an odd way back"
    answer = admin.request("DELETE", SEEN, headers=admin.sent())
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def told_of(person: Person, name: str) -> bool:
    shown = person.see(ANY_PAGE)
    news = shown.partition('<aside class="announcements"')[2].partition("</aside>")[0]
    assert name not in news, "a name is just a name"
    return f"{name} is failing." in unescape(news)


def test_a_failing_endpoint_is_announced_until_it_was_seen(
    people: People, sql: Sql, registrar: Registrar
) -> None:
    failing = f"<b>ERP {uuid4().hex}</b>"
    sql.execute(FAILING, registrar.add(description=failing)["id"])
    newcomer, one, other = (people.signed_in(role) for role in ("viewer", "viewer", "sales"))
    unseen = "update staff set failures_seen_at = now() - interval '1 hour' where id = $1::text::uuid"
    for person in (one, other):
        sql.execute(unseen, person.staff_id)
    assert not told_of(newcomer, failing), "others have dealt with it"
    assert told_of(one, failing)
    up_to = one.see(ANY_PAGE).partition('name="upTo" value="')[2].partition('"')[0]
    answer = one.submit(SEEN, {"upTo": up_to, "next": ANY_PAGE})
    assert (answer.status_code, answer.headers["location"]) == (303, ANY_PAGE)
    assert not told_of(one, failing)
    assert told_of(other, failing), "each person has to see for themselves"


def test_media_whose_address_is_odd_are_called_by_the_whole_of_it(sales: Person, unit: Unit) -> None:
    unit.create(minimal(images=list(NO_ADDRESSES), files=[{"url": url} for url in NO_ADDRESSES]))
    page = sales.see(unit_page(unit))
    assert [page.count(f"<bdi>{url}</bdi>") for url in NO_ADDRESSES] == [2, 2, 2, 2]


def test_a_cursor_out_of_all_time_or_of_nonsense_is_no_fault_of_ours(admin: Person) -> None:
    for path in ("staff", "deliveries", "settings/api/keys", "bookings", "audit"):
        for cursor in (TOO_LATE, LAST, "nonsense", "%00"):
            assert admin.look(f"/backoffice/{path}?cursor={cursor}").status_code in (200, 400), cursor
