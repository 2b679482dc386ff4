"""The way in: sign-in, code, set-up link, language, sign-out."""

import re
import secrets
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote, urlsplit

import pytest

from holdfast.domain.login import FREE_FAILURES
from tests.support import commands
from tests.support.app import InProcessApp
from tests.support.second_factor import code_now
from tests.support.sql import Sql
from tests.support.staff_client import People, Person

PASSWORD = "a horse of lead"
SIGN_IN = "/backoffice/sign-in"


@pytest.fixture(autouse=True)
def forgiven(sql: Sql) -> Iterator[None]:
    """All tests come from one address, and some fail to sign in on purpose."""
    yield
    sql.execute("delete from sign_in_attempts")


@pytest.fixture
def stranger(people: People) -> Person:
    return people.stranger()


@pytest.fixture
def invited(admin: Person) -> tuple[str, str]:
    """The address and the set-up path of somebody new."""
    email = f"sami-{secrets.token_hex(4)}@example.com"
    fields = {"email": email, "name": "Sami", "role": "sales"}
    return email, setup_path(admin.submit("/backoffice/staff/new", fields).text)


@pytest.fixture
def email(invited: tuple[str, str], people: People) -> str:
    """Of somebody with the password ``PASSWORD``."""
    email, path = invited
    set_up = people.stranger().submit(path, {"password": PASSWORD, "again": PASSWORD}, on=path)
    assert set_up.status_code == 303
    return email


def setup_path(page: str) -> str:
    found = re.search(r"https?://[^\s<\"]+/backoffice/set-up/[\w-]+", unescape(page))
    assert found is not None
    return urlsplit(found[0]).path


def test_a_right_password_leads_to_where_one_wanted_to_go(stranger: Person, email: str) -> None:
    wanted = stranger.look("/backoffice/account")
    page = stranger.see(wanted.headers["location"])
    assert 'value="/backoffice/account"' in page
    answer = stranger.submit(
        SIGN_IN, {"email": email, "password": PASSWORD, "next": "/backoffice/account"}, on=SIGN_IN
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice/account")
    assert email in stranger.see("/backoffice/account")


@pytest.mark.parametrize(
    ("shown", "back"),
    [
        (
            "http://here.example/backoffice/deliveries?status=failed",
            "%2Fbackoffice%2Fdeliveries%3Fstatus%3Dfailed",
        ),
        ("https://elsewhere.example/bad", ""),
        ("http://[", ""),
        ("", ""),
    ],
)
def test_a_script_is_told_to_take_its_page_to_the_sign_in(stranger: Person, shown: str, back: str) -> None:
    """A redirection it would follow unseen, and put the sign-in where a part of the page belongs."""
    answer = stranger.look("/backoffice/deliveries", **{"hx-request": "true", "hx-current-url": shown})
    assert (answer.status_code, answer.text) == (204, "")
    assert answer.headers["hx-redirect"] == SIGN_IN + (f"?next={back}" if back else "")


def test_the_session_is_in_a_cookie_for_this_host_that_no_script_reads(stranger: Person, email: str) -> None:
    answer = stranger.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    (cookie,) = [line for line in answer.headers.get_list("set-cookie") if "holdfast_session" in line]
    assert cookie.startswith("__Host-holdfast_session=")
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Domain" not in cookie


def test_a_wrong_password_and_an_unknown_account_have_the_same_answer(stranger: Person, email: str) -> None:
    pages = []
    for typed in (email, "nobody@example.com"):
        answer = stranger.submit(SIGN_IN, {"email": typed, "password": "not this one"}, on=SIGN_IN)
        assert answer.status_code == 422
        assert "is not right" in answer.text
        assert "not this one" not in answer.text
        pages.append(answer.text.replace(typed, "…"))
    # The time, and a token that is another one in each response.
    changing = re.compile(r'data-now="\d+"|name="csrf" value="[0-9a-f]{128}"')
    first, second = (changing.sub("", page) for page in pages)
    assert first == second


def test_what_was_typed_is_just_text(stranger: Person) -> None:
    answer = stranger.submit(SIGN_IN, {"email": '"><img onerror=x>', "password": "x"}, on=SIGN_IN)
    assert "<img" not in answer.text
    assert "&lt;img" in answer.text


def test_after_some_failures_one_is_told_how_long_to_wait(stranger: Person, email: str) -> None:
    for _ in range(FREE_FAILURES):
        assert stranger.submit(SIGN_IN, {"email": email, "password": "x"}, on=SIGN_IN).status_code == 422
    answer = stranger.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 15
    assert "Try again in" in answer.text


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "/v1/backoffice", "javascript:alert(1)"],
)
def test_nobody_is_sent_to_another_site(stranger: Person, email: str, elsewhere: str) -> None:
    assert "evil" not in stranger.see(f"{SIGN_IN}?next={quote(elsewhere, safe='')}")
    answer = stranger.submit(SIGN_IN, {"email": email, "password": PASSWORD, "next": elsewhere}, on=SIGN_IN)
    assert answer.headers["location"] == "/backoffice"


def test_who_is_signed_in_is_sent_on(viewer: Person) -> None:
    assert viewer.look(SIGN_IN).headers["location"] == "/backoffice"
    answer = viewer.look(f"{SIGN_IN}?next=%2Fbackoffice%2Faccount")
    assert answer.headers["location"] == "/backoffice/account"


def test_a_sign_in_without_the_token_of_its_form_is_refused(stranger: Person, email: str) -> None:
    stranger.see(SIGN_IN)
    fields = {"email": email, "password": PASSWORD, "csrf": "0" * 64}
    assert stranger.post(SIGN_IN, data=fields, headers=stranger.sent()).status_code == 403


def test_sign_out_ends_the_session_itself(stranger: Person, email: str) -> None:
    stranger.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    kept = stranger.sent()
    answer = stranger.submit("/backoffice/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, SIGN_IN)
    assert stranger.look("/backoffice/account").status_code == 303
    assert stranger.get("/backoffice/account", headers=kept).status_code == 303


def test_a_stranger_chooses_the_language(stranger: Person) -> None:
    assert 'lang="en"' in stranger.see(SIGN_IN)
    answer = stranger.submit(f"{SIGN_IN}/language", {"language": "ar", "back": SIGN_IN}, on=SIGN_IN)
    assert answer.headers["location"] == SIGN_IN
    assert 'lang="ar" dir="rtl"' in stranger.see(SIGN_IN)
    stranger.submit(f"{SIGN_IN}/language", {"language": "xx", "back": "//evil.example"}, on=SIGN_IN)
    assert 'lang="ar"' in stranger.see(SIGN_IN)


def test_the_browser_says_which_language_a_stranger_reads(stranger: Person) -> None:
    assert 'lang="ar"' in stranger.see(SIGN_IN, 200, **{"accept-language": "ar-SA,ar;q=0.9,en;q=0.5"})


def test_with_a_second_factor_the_code_is_asked_for(people: People, email: str) -> None:
    at_work, at_home = people.stranger(), people.stranger()
    at_work.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    at_work.done("/backoffice/account/second-factor", {"password": PASSWORD})
    secret = offered_secret(at_work)
    at_work.done("/backoffice/account/second-factor/confirm", {"code": code_now(secret)})

    asked = at_home.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    assert asked.status_code == 200
    assert PASSWORD not in asked.text
    ticket = re.search(r'name="ticket" value="([^"]+)"', asked.text)
    assert ticket is not None
    wrong = at_home.submit(f"{SIGN_IN}/code", {"ticket": ticket[1], "code": "abcdef"}, on=SIGN_IN)
    assert wrong.status_code == 422
    assert ticket[1] in wrong.text
    fields = {"ticket": ticket[1], "code": code_now(secret, 1), "next": "/backoffice/account"}
    opened = at_home.submit(f"{SIGN_IN}/code", fields, on=SIGN_IN)
    assert opened.headers["location"] == "/backoffice/account"
    assert email in at_home.see("/backoffice/account")


def offered_secret(person: Person) -> str:
    found = re.search(r"(?:[A-Z2-7]{4} ){7}[A-Z2-7]{4}", person.see("/backoffice/account"))
    assert found is not None
    return found[0].replace(" ", "")


def test_a_code_without_its_ticket_opens_nothing(stranger: Person) -> None:
    answer = stranger.submit(f"{SIGN_IN}/code", {"ticket": "x", "code": "123456"}, on=SIGN_IN)
    assert answer.status_code == 422
    assert stranger.look(f"{SIGN_IN}/code").headers["location"] == SIGN_IN


def test_by_a_set_up_link_a_person_chooses_a_password_and_is_in(
    people: People, invited: tuple[str, str]
) -> None:
    email, path = invited
    newcomer = people.stranger()
    for _ in range(3):
        assert "Welcome, Sami" in newcomer.see(path)
    answer = newcomer.submit(path, {"password": PASSWORD, "again": PASSWORD}, on=path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice")
    assert email in newcomer.see("/backoffice/account")
    assert "no longer valid" in people.stranger().see(path, 404)


@pytest.mark.parametrize(
    ("password", "again", "told"),
    [
        ("short", "short", "12 to 200 characters"),
        ("password1234", "password1234", "anybody would try"),
        (PASSWORD, "a horse of leaf", "not the same"),
        ("", "", "12 to 200 characters"),
    ],
)
def test_a_bad_password_uses_no_link_up(
    people: People, invited: tuple[str, str], password: str, again: str, told: str
) -> None:
    newcomer, path = people.stranger(), invited[1]
    answer = newcomer.submit(path, {"password": password, "again": again}, on=path)
    assert answer.status_code == 422
    assert told in answer.text
    assert f'value="{PASSWORD}"' not in answer.text
    assert "Welcome, Sami" in newcomer.see(path)


@pytest.mark.parametrize("token", ["x", "x" * 43, "%FF", "%00", "%D8%B3" * 43, "x" * 3000], ids=range(6))
def test_an_invented_link_is_a_page_that_says_so(stranger: Person, token: str) -> None:
    assert "no longer valid" in stranger.see(f"/backoffice/set-up/{token}", 404)
    answer = stranger.submit(f"/backoffice/set-up/{token}", {"password": PASSWORD}, on=SIGN_IN)
    assert answer.status_code in (404, 422)


def test_a_set_up_link_is_in_no_log(people: People, invited: tuple[str, str], server: InProcessApp) -> None:
    people.stranger().see(invited[1])
    log = server.log.read_text()
    assert "/backoffice/set-up/{token}" in log
    assert invited[1].rpartition("/")[2] not in log


def test_the_page_of_a_link_for_somebody_who_reads_arabic(people: People, invited: tuple[str, str]) -> None:
    newcomer = people.stranger()
    page = newcomer.see(invited[1], 200, **{"accept-language": "ar"})
    assert 'dir="rtl"' in page
    assert "مرحبًا، Sami" in page


def test_a_newcomer_is_spoken_to_in_the_language_of_the_page(
    people: People, invited: tuple[str, str]
) -> None:
    newcomer, path = people.stranger(), invited[1]
    newcomer.submit(f"{SIGN_IN}/language", {"language": "ar", "back": path}, on=path)
    newcomer.submit(path, {"password": PASSWORD, "again": PASSWORD}, on=path)
    assert 'lang="ar"' in newcomer.see("/backoffice/account")


def test_whoever_was_signed_in_before_is_so_no_more(people: People, invited: tuple[str, str]) -> None:
    person, path = people.signed_in("viewer"), invited[1]
    before = person.sent()
    assert person.submit(path, {"password": PASSWORD, "again": PASSWORD}, on=path).status_code == 303
    assert invited[0] in person.see("/backoffice/account")
    assert person.get("/backoffice/account", headers=before).status_code == 303


def test_a_member_of_staff_who_is_disabled_is_out_at_once(
    admin: Person, stranger: Person, email: str, database_url: str
) -> None:
    stranger.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    commands.run({"HOLDFAST_DATABASE_URL": database_url}, "staff", "disable", email)
    assert stranger.look("/backoffice/account").status_code == 303
    answer = stranger.submit(SIGN_IN, {"email": email, "password": PASSWORD}, on=SIGN_IN)
    assert answer.status_code == 422
