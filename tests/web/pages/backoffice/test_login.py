"""The way in: sign-in, code, set-up link, language, sign-out."""

import re
import secrets
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote, urlsplit

import httpx
import pytest

from holdfast.domain.login import FREE_FAILURES, LONGEST_WAIT
from holdfast.operations.login import Passwords
from tests.support.app import InProcessApp
from tests.support.second_factor import code_now, offered_secret
from tests.support.sql import Sql
from tests.support.staff import PASSWORD
from tests.support.staff_client import People, Person, missing

SIGN_IN = "/backoffice/sign-in"
ACCOUNT = "/backoffice/account"


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
    """The e-mail address and the set-up path of somebody new."""
    email = f"sami-{secrets.token_hex(4)}@example.com"
    page = admin.submit("/backoffice/staff/new", {"email": email, "name": "Sami", "role": "sales"}).text
    found = re.search(r"https?://[^\s<\"]+/backoffice/set-up/[\w-]+", unescape(page))
    assert found is not None
    return email, urlsplit(found[0]).path


@pytest.fixture(scope="module")
def hashed(sql: Sql) -> str:
    """``PASSWORD``, hashed as the product does."""
    return sql.run(Passwords().hash(PASSWORD))


@pytest.fixture
def email(people: People, sql: Sql, hashed: str) -> str:
    """Of somebody with the password ``PASSWORD``."""
    person = people.signed_in("sales")
    sql.execute("update staff set password_hash = $1 where email = $2", hashed, person.email)
    return person.email


def sign_in(person: Person, email: str, password: str = PASSWORD, **fields: str) -> httpx.Response:
    return person.submit(SIGN_IN, {"email": email, "password": password, **fields}, on=SIGN_IN)


def test_a_right_password_opens_a_session_until_the_sign_out(stranger: Person, email: str) -> None:
    wanted = stranger.look(ACCOUNT)
    assert f'value="{ACCOUNT}"' in stranger.see(wanted.headers["location"])
    answer = sign_in(stranger, email, next=ACCOUNT)
    assert (answer.status_code, answer.headers["location"]) == (303, ACCOUNT)
    (cookie,) = [line for line in answer.headers.get_list("set-cookie") if "holdfast_session" in line]
    assert cookie.startswith("__Host-holdfast_session=")
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Domain" not in cookie
    assert email in stranger.see(ACCOUNT)
    assert stranger.look(SIGN_IN).headers["location"] == "/backoffice"
    assert stranger.look(f"{SIGN_IN}?next={quote(ACCOUNT, safe='')}").headers["location"] == ACCOUNT
    kept = stranger.sent()
    answer = stranger.submit("/backoffice/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, SIGN_IN)
    assert stranger.look(ACCOUNT).status_code == 303
    assert stranger.get(ACCOUNT, headers=kept).status_code == 303, "the session itself has ended"


@pytest.mark.parametrize(
    ("shown", "back"),
    [
        ("http://here.example/backoffice/deliveries?status=failed", "/backoffice/deliveries?status=failed"),
        ("https://elsewhere.example/bad", ""),
        ("http://[", ""),
        ("", ""),
    ],
)
def test_a_script_is_told_to_take_its_page_to_the_sign_in(stranger: Person, shown: str, back: str) -> None:
    """A redirection it would follow unseen, and put the sign-in where a part of the page belongs."""
    answer = stranger.look("/backoffice/deliveries", **{"hx-request": "true", "hx-current-url": shown})
    assert (answer.status_code, answer.text) == (204, "")
    assert answer.headers["hx-redirect"] == SIGN_IN + (f"?next={quote(back, safe='')}" if back else "")


def test_a_wrong_password_and_an_unknown_account_have_the_same_answer(stranger: Person, email: str) -> None:
    pages = []
    for typed in (email, '"><img onerror=x>@example.com'):
        answer = sign_in(stranger, typed, "not this one")
        assert (answer.status_code, "is incorrect" in answer.text) == (422, True)
        assert missing(answer.text, "not this one", "<img") == ["not this one", "<img"]
        pages.append(unescape(answer.text).replace(typed, "…"))
    # The time, and a token that is another one in each response.
    changing = re.compile(r'data-now="\d+"|name="csrf" value="[0-9a-f]{128}"')
    first, second = (changing.sub("", page) for page in pages)
    assert first == second


def test_after_some_failures_one_is_told_how_long_to_wait(stranger: Person, email: str, sql: Sql) -> None:
    assert sign_in(stranger, email, "x").status_code == 422
    sql.execute("update sign_in_attempts set failures = 4 * $1", FREE_FAILURES)
    answer = sign_in(stranger, email)
    assert (answer.status_code, "Try again in" in answer.text) == (429, True)
    assert 1 <= int(answer.headers["retry-after"]) <= LONGEST_WAIT.total_seconds()


def test_a_browser_that_signed_in_before_passes_when_a_stranger_beside_it_has_to_wait(
    people: People, email: str
) -> None:
    owner, stranger = people.stranger(), people.stranger()
    answer = sign_in(owner, email)
    (cookie,) = [line for line in answer.headers.get_list("set-cookie") if "holdfast_browser" in line]
    assert cookie.startswith("__Host-holdfast_browser=")
    assert {"HttpOnly", "Secure", "SameSite=lax", "Max-Age=31536000"} <= {
        part.strip() for part in cookie.split(";")
    }
    owner.submit("/backoffice/sign-out")
    for _ in range(FREE_FAILURES):
        assert sign_in(stranger, email, "x").status_code == 422
    assert sign_in(stranger, email).status_code == 429
    assert sign_in(owner, email).status_code == 303


def test_nobody_is_sent_to_another_site(people: People, email: str) -> None:
    stranger = people.stranger()
    for elsewhere in (
        "https://evil.example/", "//evil.example", "/\\evil.example", "/v1/backoffice", "javascript:alert(1)",
    ):  # fmt: skip
        assert elsewhere not in unescape(stranger.see(f"{SIGN_IN}?next={quote(elsewhere, safe='')}"))
    assert sign_in(stranger, email, next="//evil.example").headers["location"] == "/backoffice"


def test_a_sign_in_without_the_token_of_its_form_is_refused(stranger: Person, email: str) -> None:
    stranger.see(SIGN_IN)
    fields = {"email": email, "password": PASSWORD, "csrf": "0" * 64}
    assert stranger.post(SIGN_IN, data=fields, headers=stranger.sent()).status_code == 403


def test_a_stranger_reads_the_language_of_the_browser_or_chooses_one(stranger: Person) -> None:
    assert 'lang="ar"' in stranger.see(SIGN_IN, 200, **{"accept-language": "ar-SA,ar;q=0.9,en;q=0.5"})
    assert 'lang="en"' in stranger.see(SIGN_IN)
    answer = stranger.submit(f"{SIGN_IN}/language", {"language": "ar", "back": SIGN_IN}, on=SIGN_IN)
    assert answer.headers["location"] == SIGN_IN
    assert 'lang="ar" dir="rtl"' in stranger.see(SIGN_IN)
    stranger.submit(f"{SIGN_IN}/language", {"language": "xx", "back": "//evil.example"}, on=SIGN_IN)
    assert 'lang="ar"' in stranger.see(SIGN_IN)


def test_with_a_second_factor_the_code_is_asked_for(people: People, email: str) -> None:
    at_work, at_home = people.stranger(), people.stranger()
    sign_in(at_work, email)
    secret = offered_secret(at_work.done(f"{ACCOUNT}/second-factor", {"password": PASSWORD}))
    at_work.done(f"{ACCOUNT}/second-factor/confirm", {"code": code_now(secret)})
    asked = sign_in(at_home, email)
    assert asked.status_code == 200
    assert PASSWORD not in asked.text
    ticket = asked.text.split('name="ticket" value="')[1].split('"')[0]
    for fields in ({"ticket": ticket, "code": "abcdef"}, {"ticket": "x", "code": code_now(secret, 1)}):
        assert fields["ticket"] in at_home.refused(f"{SIGN_IN}/code", fields, on=SIGN_IN)
    assert at_home.look(f"{SIGN_IN}/code").headers["location"] == SIGN_IN
    fields = {"ticket": ticket, "code": code_now(secret, 1), "next": ACCOUNT}
    assert at_home.submit(f"{SIGN_IN}/code", fields, on=SIGN_IN).headers["location"] == ACCOUNT
    assert email in at_home.see(ACCOUNT)


def test_by_a_set_up_link_a_person_chooses_a_password_and_is_in(
    people: People, invited: tuple[str, str], server: InProcessApp
) -> None:
    email, path = invited
    newcomer = people.signed_in("viewer")
    before = newcomer.sent()
    assert "Welcome, Sami" in newcomer.see(path)
    for password, again, told in (
        ("short", "short", "12 to 200 characters"),
        ("password1234", "password1234", "too easy to guess"),
        (PASSWORD, "a horse of leaf", "do not match"),
        ("", "", "12 to 200 characters"),
    ):
        page = newcomer.refused(path, {"password": password, "again": again}, on=path)
        assert told in page
        assert f'value="{PASSWORD}"' not in page
    answer = newcomer.submit(path, {"password": PASSWORD, "again": PASSWORD}, on=path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice")
    assert email in newcomer.see(ACCOUNT)
    assert newcomer.get(ACCOUNT, headers=before).status_code == 303, "who was signed in before is so no more"
    assert "no longer valid" in people.stranger().see(path, 404)
    log = server.log.read_text()
    assert "/backoffice/set-up/{token}" in log
    assert path.rpartition("/")[2] not in log


def test_a_newcomer_keeps_the_language_of_the_page(people: People, invited: tuple[str, str]) -> None:
    newcomer, path = people.stranger(), invited[1]
    page = newcomer.see(path, 200, **{"accept-language": "ar"})
    assert missing(page, 'dir="rtl"', "مرحبًا، Sami") == []
    newcomer.submit(f"{SIGN_IN}/language", {"language": "ar", "back": path}, on=path)
    newcomer.submit(path, {"password": PASSWORD, "again": PASSWORD}, on=path)
    assert 'lang="ar"' in newcomer.see(ACCOUNT)


@pytest.mark.parametrize("token", ["x", "x" * 43, "%FF", "%00", "%D8%B3" * 43, "x" * 3000], ids=range(6))
def test_an_invented_link_is_a_page_that_says_so(stranger: Person, token: str) -> None:
    assert "no longer valid" in stranger.see(f"/backoffice/set-up/{token}", 404)
    answer = stranger.submit(f"/backoffice/set-up/{token}", {"password": PASSWORD}, on=SIGN_IN)
    assert answer.status_code in (404, 422)
