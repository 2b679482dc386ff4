"""One's own account."""

import re
import secrets

import pytest

from holdfast.operations.login import Passwords
from tests.support.second_factor import code_now, offered_secret
from tests.support.sql import Sql
from tests.support.staff import PASSWORD, QUICK
from tests.support.staff_client import People, Person, missing

ACCOUNT = "/backoffice/account"
NEW_PASSWORD = "another horse of lead"
NEW_SESSION = """
    insert into staff_session (id, token_hash, staff_id, address, agent)
    values (gen_random_uuid(), $2, $1::text::uuid, '192.0.2.9', $3)
"""


@pytest.fixture
def nora(people: People, sql: Sql) -> Person:
    """Somebody with the password ``PASSWORD``, hashed in no time."""
    person = people.signed_in("viewer")
    hashed = sql.run(Passwords(QUICK).hash(PASSWORD))
    sql.execute("update staff set password_hash = $1 where email = $2", hashed, person.email)
    return person


def test_a_name_is_changed_or_its_fault_told_beside_its_field(nora: Person) -> None:
    page = nora.done(f"{ACCOUNT}/name", {"name": " Nora Saleh "})
    assert missing(page, "Your name was changed.", 'value="Nora Saleh"') == []
    page = nora.refused(f"{ACCOUNT}/name", {"name": "x" * 201})
    assert missing(page, "A name is printable text of 1 to 200 characters.", "x" * 201) == []


def test_language_digits_and_look_are_kept_unless_one_of_them_is_none(nora: Person) -> None:
    chosen = {"language": "ar", "digits": "arab", "theme": "dark"}
    for wrong in ({"language": "xx"}, {"digits": "x"}, {"theme": "pink"}):
        nora.refused(f"{ACCOUNT}/preferences", {**chosen, **wrong}, 400)
    assert 'lang="en"' in nora.see(ACCOUNT)
    page = nora.done(f"{ACCOUNT}/preferences", chosen)
    assert missing(page, 'lang="ar" dir="rtl" data-theme="dark" data-digits="arab"', "حسابك") == []


def test_a_new_password_needs_the_old_one_is_long_and_typed_twice(nora: Person) -> None:
    fields = {"password": PASSWORD, "newPassword": NEW_PASSWORD, "again": NEW_PASSWORD}
    for wrong, told in (
        ({"newPassword": "short", "again": "short"}, "12 to 200"),
        ({"again": NEW_PASSWORD + "x"}, "do not match"),
        ({"password": "not mine at all"}, "The password is incorrect."),
    ):
        page = nora.refused(f"{ACCOUNT}/password", {**fields, **wrong})
        assert told in page
        assert NEW_PASSWORD not in page
    assert "Your password was changed." in nora.done(f"{ACCOUNT}/password", fields)


def test_a_second_factor_is_set_up_confirmed_and_removed(nora: Person) -> None:
    path, wrong = f"{ACCOUNT}/second-factor", {"password": "not mine at all"}
    nora.refused(f"{path}/confirm", {"code": "123456"})
    assert "The password is incorrect." in nora.refused(path, wrong)
    page = nora.done(path, {"password": PASSWORD})
    secret = offered_secret(page)
    assert '<path class="qr-ink" d="M' in page
    page = nora.refused(f"{path}/confirm", {"code": "000000x"})
    assert "The code is incorrect." in page
    assert offered_secret(page) == secret
    page = nora.done(f"{path}/confirm", {"code": code_now(secret)})
    assert "You now sign in with your password and a code." in page
    assert secret[:4] + " " not in page
    assert "The password is incorrect." in nora.refused(f"{path}/remove", wrong)
    right = {"password": PASSWORD, "code": code_now(secret, 1)}
    page = nora.refused(f"{path}/remove", {**right, "code": code_now(secret)})
    assert "This code is incorrect or was already used." in page
    page = nora.done(f"{path}/remove", right)
    assert "The second factor was removed. All other sessions have ended." in page


def test_staff_of_a_role_that_requires_a_second_factor_set_it_up_before_anything_else(
    strict_people: People, sql: Sql
) -> None:
    assert "Projects" in strict_people.signed_in("viewer").see("/backoffice/projects")
    sami = strict_people.signed_in("sales")
    hashed = sql.run(Passwords(QUICK).hash(PASSWORD))
    sql.execute("update staff set password_hash = $1 where email = $2", hashed, sami.email)
    assert sami.look("/backoffice/projects?q=x").headers["location"] == ACCOUNT
    assert sami.look("/backoffice/projects", **{"hx-request": "true"}).headers["hx-redirect"] == ACCOUNT
    assert sami.look("/backoffice/projects/x/live", accept="text/event-stream").text.startswith(
        "event: ended"
    )
    page = sami.see(ACCOUNT)
    assert missing(page, "Your role requires a second factor.", "Current password", "Sign out") == []
    assert [
        text for text in ("New password", "/backoffice/bookings", "sign-out-elsewhere") if text in page
    ] == []
    page = sami.done(f"{ACCOUNT}/preferences", {"language": "ar", "digits": "latn", "theme": "auto"})
    assert "دورك يتطلب التحقق بخطوتين." in page
    sami.done(f"{ACCOUNT}/preferences", {"language": "en", "digits": "latn", "theme": "auto"})
    assert "The password is incorrect." in sami.refused(f"{ACCOUNT}/second-factor", {"password": "not mine"})
    secret = offered_secret(sami.done(f"{ACCOUNT}/second-factor", {"password": PASSWORD}))
    assert "The code is incorrect." in sami.refused(f"{ACCOUNT}/second-factor/confirm", {"code": "000000x"})
    page = sami.done(f"{ACCOUNT}/second-factor/confirm", {"code": code_now(secret)})
    assert missing(page, "You now sign in with your password and a code.", "/backoffice/bookings") == []
    assert "second-factor/remove" not in page
    sami.see("/backoffice/projects")
    removal = {"password": PASSWORD, "code": code_now(secret, 1)}
    assert "Your role requires a second factor." in sami.refused(f"{ACCOUNT}/second-factor/remove", removal)
    # A session that is open when the second factor goes has it set up again.
    sql.execute("update staff set second_factor_sealed = null where email = $1", sami.email)
    sami.see("/backoffice/projects", 303)
    assert sami.submit("/backoffice/sign-out").headers["location"] == "/backoffice/sign-in"


def test_after_a_reset_a_second_factor_that_the_role_requires_is_set_up_again(
    strict_people: People, sql: Sql
) -> None:
    sami, admin = strict_people.signed_in("sales"), strict_people.signed_in("admin")
    sql.execute("update staff set second_factor_sealed = 'x' where email = $1", sami.email)
    sami.see("/backoffice/projects")
    person = f"/backoffice/staff/{sami.staff_id}"
    page = admin.press(f"{person}/reset", on=person).text
    link = re.search(r"/backoffice/set-up/[\w-]+", page)
    assert link is not None
    chosen = {"password": NEW_PASSWORD, "again": NEW_PASSWORD}
    assert sami.submit(link[0], chosen, on=link[0]).headers["location"] == "/backoffice"
    assert sami.look("/backoffice").headers["location"] == ACCOUNT


def test_sessions_are_listed_and_ended_the_others_or_all(nora: Person, sql: Sql) -> None:
    for agent in ("Mozilla/5.0 (iPhone) Version/18 Safari/604.1", "<script>"):
        sql.execute(NEW_SESSION, nora.staff_id, secrets.token_bytes(32), agent)
    assert missing(nora.see(ACCOUNT), "192.0.2.9", "iPhone", "<bdi>&lt;script&gt;</bdi>") == []
    page = nora.done(f"{ACCOUNT}/sign-out-elsewhere")
    assert "2 other sessions were ended." in page
    assert "192.0.2.9" not in page
    cookie = nora.sent()
    answer = nora.submit(f"{ACCOUNT}/sign-out-everywhere")
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice/sign-in")
    assert "__Host-holdfast_session=" not in nora.sent()["cookie"]
    assert nora.get(ACCOUNT, headers=cookie).headers["location"].startswith("/backoffice/sign-in")


def test_whoever_reloads_an_answer_finds_the_account(nora: Person) -> None:
    for path in ("name", "password", "preferences", "second-factor", "second-factor/confirm"):
        assert nora.look(f"{ACCOUNT}/{path}").headers["location"] == ACCOUNT
