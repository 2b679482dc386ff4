"""One's own account."""

import re
import secrets

import pytest

from holdfast.operations.login import Passwords
from tests.support.second_factor import code_now
from tests.support.sql import Sql
from tests.support.staff import QUICK
from tests.support.staff_client import People, Person

ACCOUNT = "/backoffice/account"
PASSWORD, NEW_PASSWORD = "a horse of lead", "another horse of lead"


@pytest.fixture
def nora(people: People, sql: Sql) -> Person:
    """Somebody with the password ``PASSWORD``, hashed in no time."""
    person = people.signed_in("viewer")
    hashed = sql.run(Passwords(QUICK).hash(PASSWORD))
    sql.execute("update staff set password_hash = $1 where email = $2", hashed, person.email)
    return person


def test_the_name_is_changed(nora: Person) -> None:
    name = f"Nora {secrets.token_hex(4)}"
    page = nora.done(f"{ACCOUNT}/name", {"name": f" {name} "})
    assert "Your name was changed." in page
    assert f'value="{name}"' in page


def test_a_name_that_is_none_is_told_beside_its_field(nora: Person) -> None:
    answer = nora.submit(f"{ACCOUNT}/name", {"name": "x" * 201})
    assert answer.status_code == 422
    assert "A name is printable text of 1 to 200 characters." in answer.text
    assert "x" * 201 in answer.text


def test_language_digits_and_look_are_kept(nora: Person) -> None:
    page = nora.done(f"{ACCOUNT}/preferences", {"language": "ar", "digits": "arab", "theme": "dark"})
    assert 'lang="ar" dir="rtl" data-theme="dark" data-digits="arab"' in page
    assert "حسابك" in page


@pytest.mark.parametrize("wrong", [{"language": "xx"}, {"digits": "x"}, {"theme": "pink"}], ids=str)
def test_a_preference_that_is_none_is_refused(nora: Person, wrong: dict[str, str]) -> None:
    fields = {"language": "ar", "digits": "arab", "theme": "dark", **wrong}
    assert nora.submit(f"{ACCOUNT}/preferences", fields).status_code == 400
    assert 'lang="en"' in nora.see(ACCOUNT)


def test_a_new_password_needs_the_old_one(nora: Person) -> None:
    fields = {"password": "not mine at all", "newPassword": NEW_PASSWORD, "again": NEW_PASSWORD}
    answer = nora.submit(f"{ACCOUNT}/password", fields)
    assert answer.status_code == 422
    assert "This is not your password." in answer.text
    assert NEW_PASSWORD not in answer.text
    fields["password"] = PASSWORD
    assert "Your password was changed." in nora.done(f"{ACCOUNT}/password", fields)


@pytest.mark.parametrize(
    ("new", "again", "told"),
    [("short", "short", "12 to 200"), (NEW_PASSWORD, NEW_PASSWORD + "x", "not the same")],
    ids=["short", "different"],
)
def test_a_new_password_is_long_and_typed_twice(nora: Person, new: str, again: str, told: str) -> None:
    fields = {"password": PASSWORD, "newPassword": new, "again": again}
    answer = nora.submit(f"{ACCOUNT}/password", fields)
    assert answer.status_code == 422
    assert told in answer.text


def test_a_second_factor_is_set_up_confirmed_and_removed(nora: Person) -> None:
    refused = nora.submit(f"{ACCOUNT}/second-factor", {"password": "not mine at all"})
    assert refused.status_code == 422
    assert "This is not your password." in refused.text
    page = nora.done(f"{ACCOUNT}/second-factor", {"password": PASSWORD})
    secret = offered(page)
    assert '<path class="qr-ink" d="M' in page
    wrong = nora.submit(f"{ACCOUNT}/second-factor/confirm", {"code": "000000x"})
    assert wrong.status_code == 422
    assert "This is not the code" in wrong.text
    assert offered(wrong.text) == secret
    page = nora.done(f"{ACCOUNT}/second-factor/confirm", {"code": code_now(secret)})
    assert "From now on you sign in with password and code." in page
    assert secret[:4] + " " not in page
    refused = nora.submit(f"{ACCOUNT}/second-factor/remove", {"password": "not mine at all"})
    assert refused.status_code == 422
    assert "This is not your password." in refused.text
    page = nora.done(f"{ACCOUNT}/second-factor/remove", {"password": PASSWORD})
    assert "The second factor was removed." in page


def test_a_code_before_a_secret_was_made_confirms_nothing(nora: Person) -> None:
    assert nora.submit(f"{ACCOUNT}/second-factor/confirm", {"code": "123456"}).status_code == 422


def offered(page: str) -> str:
    found = re.search(r"(?:[A-Z2-7]{4} ){7}[A-Z2-7]{4}", page)
    assert found is not None
    return found[0].replace(" ", "")


def test_other_sessions_are_listed_and_ended(nora: Person, sql: Sql) -> None:
    sql.execute(
        "insert into staff_session (id, token_hash, staff_id, address, agent)"
        " select gen_random_uuid(), $2, id, '192.0.2.9', 'Mozilla/5.0 (iPhone) Version/18 Safari/604.1'"
        " from staff where email = $1",
        nora.email,
        secrets.token_bytes(32),
    )
    page = nora.see(ACCOUNT)
    assert "192.0.2.9" in page
    assert "iPhone" in page
    page = nora.done(f"{ACCOUNT}/sign-out-elsewhere")
    assert "1 other session was ended." in page
    assert "192.0.2.9" not in page


def test_all_sessions_are_ended_this_one_too(nora: Person) -> None:
    answer = nora.submit(f"{ACCOUNT}/sign-out-everywhere")
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice/sign-in")
    assert "__Host-holdfast_session=" not in nora.sent()["cookie"]
    assert nora.look(ACCOUNT).headers["location"].startswith("/backoffice/sign-in")


def test_a_session_that_was_ended_everywhere_opens_nothing_with_its_old_cookie(nora: Person) -> None:
    cookie = nora.sent()
    nora.submit(f"{ACCOUNT}/sign-out-everywhere")
    assert nora.get(ACCOUNT, headers=cookie).headers["location"].startswith("/backoffice/sign-in")


def test_whoever_reloads_an_answer_finds_the_account(nora: Person) -> None:
    for path in ("name", "password", "preferences", "second-factor", "second-factor/confirm"):
        assert nora.look(f"{ACCOUNT}/{path}").headers["location"] == ACCOUNT


def test_the_account_of_somebody_with_an_odd_browser(nora: Person, sql: Sql) -> None:
    sql.execute(
        "update staff_session set agent = '<script>' where staff_id = $1::uuid",
        nora.staff_id,
    )
    page = nora.see(ACCOUNT)
    assert "<bdi>&lt;script&gt;</bdi>" in page
