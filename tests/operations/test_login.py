"""Staff sign in, stay signed in for a time, and are signed out."""

import asyncio
import base64
import logging
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp
import pytest
from argon2 import PasswordHasher

from holdfast.domain import login as domain
from holdfast.domain.audit import COMMAND
from holdfast.domain.errors import LoginFailed, SecondFactorNeeded, TooManyAttempts
from holdfast.domain.login import FREE_FAILURES
from holdfast.domain.permissions import Role
from holdfast.domain.staff import SessionTimes
from holdfast.operations import login as operation
from holdfast.operations.login import (
    KnownBrowser,
    Login,
    LoginClient,
    Passwords,
    accepted_step,
    common_passwords,
    issue_ticket,
    read_browser,
    remember_account,
)
from holdfast.storage import login, staff
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox, new_encryption_key
from tests.operations.scene import until_somebody_waits
from tests.support.sql import execute, rows, value
from tests.support.staff import ADDRESS, AGENT, CLIENT, PASSWORD, Office, open_office

UNKNOWN = "nobody@example.com"
NORA = "nora@example.com"
SAMI = "sami@example.com"
ELSEWHERE, SAME_NETWORK = "198.51.100.1", "192.0.2.200"


@pytest.fixture
async def office(office: Office) -> Office:
    await office.add()
    return office


async def fails(
    office: Office,
    email: str = NORA,
    password: str = "wrong wrong wrong",
    *,
    address: str = ADDRESS,
) -> None:
    with pytest.raises(LoginFailed):
        await office.login.sign_in(email, password, LoginClient(address, AGENT))


async def must_wait(office: Office, email: str = NORA, address: str = ADDRESS) -> float:
    with pytest.raises(TooManyAttempts) as refused:
        await office.login.sign_in(email, PASSWORD, LoginClient(address, AGENT))
    return refused.value.retry_after_seconds


async def test_a_session_is_found_by_its_token_alone_which_is_nowhere_in_the_database(office: Office) -> None:
    opened = await office.sign_in()
    found = await office.login.find(opened.token)
    assert found is not None
    assert (found.staff.id, found.notice) == (opened.staff.id, None)
    assert found.staff.last_signed_in_at is not None
    for other in ("", "x" * 43, "é" * 43, opened.token[:-1], opened.token + "x", opened.token.swapcase()):
        assert await office.login.find(other) is None
        await office.login.sign_out(other)
    assert await office.is_signed_in(opened)
    everything = "select staff_session::text, staff::text from staff_session, staff"
    stored = str(await rows(office.database, everything))
    assert (opened.token in stored, PASSWORD in stored) == (False, False)
    for email in ("NORA@example.com", "  nora@example.com "):
        assert (await office.sign_in(email)).staff.email == NORA


async def test_whatever_is_wrong_has_one_answer(office: Office) -> None:
    for email, password in (
        (NORA, "a horse of leaf"),
        (NORA, ""),
        (NORA, PASSWORD + " "),
        (NORA, "\ud800" * 5),
        (UNKNOWN, PASSWORD),
        ("", PASSWORD),
        ("nora\0@example.com", PASSWORD),
        ("\ud800@example.com", PASSWORD),
        ("x" * 100_000, PASSWORD),
    ):
        await fails(office, email, password)
    await office.sign_in()
    await fails(office, NORA, "x" * 100_000)


async def test_who_is_disabled_or_has_no_password_yet_is_refused(office: Office) -> None:
    person = await office.add("sami@example.com", Role.SALES)
    invited, _ = await office.staff.invite("new@example.com", "New", Role.SALES, COMMAND)
    await office.staff.change(person.id, {"disabled": True}, COMMAND)
    await fails(office, "sami@example.com", PASSWORD)
    await fails(office, "new@example.com", PASSWORD)
    with pytest.raises(LoginFailed):
        await office.login.open_session(person.id, CLIENT)
    assert await office.is_signed_in(await office.login.open_session(invited.id, CLIENT))


async def test_who_is_disabled_meanwhile_is_refused(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    is_right = Passwords.is_right

    async def disable_meanwhile(passwords: Passwords, password_hash: str | None, password: str) -> bool:
        await execute(office.database, "update staff set disabled_at = now()")
        return await is_right(passwords, password_hash, password)

    monkeypatch.setattr(Passwords, "is_right", disable_meanwhile)
    await fails(office, NORA, PASSWORD)
    assert await office.login.list_sessions((await office.staff.find_by_email(NORA)).id) == []


async def test_the_log_tells_who_signed_in(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.operations.login")
    await office.sign_in()
    for email in (NORA, *[UNKNOWN] * FREE_FAILURES):
        await fails(office, email)
    await must_wait(office, UNKNOWN)
    told = [(one.levelname, one.__dict__["fields"]) for one in caplog.records]
    assert told == [
        ("INFO", {"staff": NORA, "address": ADDRESS}),
        ("WARNING", {"staff": NORA, "address": ADDRESS}),
        *[("WARNING", {"staff": None, "address": ADDRESS})] * FREE_FAILURES,
        ("WARNING", {"address": ADDRESS}),
    ]
    assert caplog.messages[-1] == "a sign-in was put off"


async def test_a_notice_is_told_once_and_only_to_who_shows_it(office: Office) -> None:
    opened = await office.sign_in()
    await office.login.leave_notice((await office.oneself(opened)).session_id, "Done.")
    stream = await office.login.find(opened.token, takes_notice=False)
    page, next_page = [await office.login.find(opened.token) for _ in range(2)]
    assert None not in (stream, page, next_page)
    assert (page and page.notice, next_page and next_page.notice) == ("Done.", None)


async def test_a_session_ends_when_nobody_has_used_it_for_long_or_at_an_age(office: Office) -> None:
    opened = await office.sign_in()
    for column, ago, lives in (
        ("last_seen_at", "119 minutes", True),
        ("last_seen_at", "119 minutes", True),
        ("created_at", "11.9 hours", True),
        ("created_at", "0.2 hours", False),
    ):
        await execute(office.database, f"update staff_session set {column} = {column} - interval '{ago}'")
        assert await office.is_signed_in(opened) is lives
    opened = await office.sign_in()
    # Those that were too old have been deleted.
    assert await value(office.database, "select count(*) from staff_session") == 1
    await execute(office.database, "update staff_session set last_seen_at = now() - interval '121 minutes'")
    assert not await office.is_signed_in(opened)
    assert await office.login.list_sessions(opened.staff.id) == []


async def test_who_is_there_is_written_down_only_so_often(office: Office, database: Database) -> None:
    opened = await office.sign_in()
    await execute(database, "update staff_session set last_seen_at = now() + interval '10 minutes'")
    row = "select xmin::text from staff_session"
    before = await value(database, row)
    for _ in range(3):
        assert await office.is_signed_in(opened)
    assert await value(database, row) == before
    short = open_office(database, SessionTimes(timedelta(seconds=40), timedelta(hours=1)))
    for _ in range(3):
        await execute(database, "update staff_session set last_seen_at = now() - interval '20 seconds'")
        assert await short.is_signed_in(opened)
        assert await value(database, "select last_seen_at > now() - interval '19 seconds' from staff_session")


async def test_sign_out_ends_one_session_and_everywhere_ends_all_but_one(office: Office) -> None:
    first, second, third, fourth = [await office.sign_in() for _ in range(4)]
    await office.login.sign_out(first.token)
    assert not await office.is_signed_in(first)
    mine = await office.oneself(second)
    assert await office.login.sign_out_everywhere(mine.staff.id, mine.session_id) == 2
    assert [await office.is_signed_in(one) for one in (second, third, fourth)] == [True, False, False]
    assert await office.login.sign_out_everywhere(mine.staff.id) == 1
    assert not await office.is_signed_in(second)


async def test_sessions_are_listed_with_where_they_come_from(office: Office) -> None:
    opened = await office.login.sign_in(
        NORA, PASSWORD, LoginClient("2001:db8::7", "An\0agent\n" + "x" * 1000)
    )
    await office.sign_in()
    newest, oldest = await office.login.list_sessions(opened.staff.id)
    assert (newest.address, newest.agent) == (ADDRESS, AGENT)
    assert oldest.address == "2001:db8::7"
    assert oldest.agent.startswith("An agent x")
    assert len(oldest.agent) == 300


@pytest.mark.parametrize("email", [NORA, UNKNOWN])
async def test_after_some_failures_any_account_waits(office: Office, email: str) -> None:
    opened = await office.sign_in()
    for _ in range(FREE_FAILURES):
        await fails(office, email)
    assert 0 < await must_wait(office, email) <= 300
    assert await must_wait(office, email.upper(), SAME_NETWORK)
    assert await office.is_signed_in(opened)


async def test_a_stranger_slows_down_his_own_network_and_neither_others_nor_a_browser_that_is_known(
    office: Office,
) -> None:
    browser = (await office.sign_in()).browser
    for _ in range(FREE_FAILURES):
        await fails(office)
    await must_wait(office)
    # The owner elsewhere, and beside the stranger with a browser of theirs.
    assert await office.login.sign_in(NORA, PASSWORD, LoginClient(ELSEWHERE, AGENT))
    again = await office.login.sign_in(NORA, PASSWORD, CLIENT._replace(browser=browser))
    assert again.staff.email == NORA
    # Neither counts for the stranger, who still waits.
    await must_wait(office)
    # The browser is known by this account alone, and for as many guesses as anybody has.
    await office.add(SAMI)
    for _ in range(FREE_FAILURES):
        await fails(office, SAMI, address=SAME_NETWORK)
    with pytest.raises(TooManyAttempts):
        await office.login.sign_in(SAMI, PASSWORD, CLIENT._replace(browser=browser))
    known = CLIENT._replace(address=ELSEWHERE, browser=browser)
    for _ in range(FREE_FAILURES):
        with pytest.raises(LoginFailed):
            await office.login.sign_in(NORA, "wrong wrong wrong", known)
    with pytest.raises(TooManyAttempts):
        await office.login.sign_in(NORA, PASSWORD, known)
    assert await office.login.sign_in(NORA, PASSWORD, LoginClient(ELSEWHERE, AGENT))


def test_a_browser_is_known_by_the_five_accounts_that_signed_in_last_and_by_our_cookie_alone() -> None:
    box, strange = (SecretBox([new_encryption_key()]) for _ in range(2))
    first = remember_account(box, None, NORA.upper())
    both = remember_account(box, first, SAMI)
    assert read_browser(box, both) == KnownBrowser(read_browser(box, first).id, [SAMI, NORA])
    longest = [f"{letter * 125}@{letter * 123}.السعودية"[:254] for letter in "ابتث"]
    for email in longest:
        both = remember_account(box, both, email)
    assert read_browser(box, both).accounts == [*reversed(longest), SAMI]
    # Browsers keep no more of a cookie, its name included.
    assert len(f"__Host-holdfast_browser={both}") < 4096
    for cookie in (None, "", "é", "x" * 9999, first[:-2], remember_account(strange, None, NORA)):
        assert read_browser(box, cookie).accounts == []
        assert read_browser(box, remember_account(box, cookie, NORA)).accounts == [NORA]


async def test_the_wait_ends_grows_and_is_forgotten_after_a_success(office: Office) -> None:
    for _ in range(FREE_FAILURES):
        await fails(office)
    ended = "update sign_in_attempts set last_at = last_at - interval '5 minutes'"
    await execute(office.database, ended)
    await fails(office)
    assert 300 < await must_wait(office) <= 600
    await execute(office.database, ended, ended)
    await office.sign_in()
    for _ in range(FREE_FAILURES):
        await fails(office)


async def test_an_address_that_tries_many_waits(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "ADDRESS_FAILURES", 4)
    for _ in range(6):
        await office.sign_in()
    browser = (await office.sign_in()).browser
    for number in range(4):
        await fails(office, f"{number}@example.com")
    assert 600 < await must_wait(office) <= 900
    assert await office.login.sign_in(NORA, PASSWORD, CLIENT._replace(browser=browser))
    # A /56 has twice and a /48 four times as many.
    for wider, limit in ("", 8), ("0", 16):
        for number in range(limit):
            await fails(office, f"{number}@example.com", address=f"2001:db8:{limit}:{number:x}{wider}0::1")
        assert await must_wait(office, address=f"2001:db8:{limit}:f{wider}0::1")
    assert await office.login.sign_in(NORA, PASSWORD, LoginClient(ELSEWHERE, AGENT))


async def test_many_attempts_at_the_same_time_are_all_counted(office: Office) -> None:
    wrong = [office.sign_in(password=f"wrong wrong {number}") for number in range(12)]
    outcomes = await asyncio.gather(*wrong, return_exceptions=True)
    kinds = sorted(type(outcome).__name__ for outcome in outcomes)
    assert kinds == ["LoginFailed"] * FREE_FAILURES + ["TooManyAttempts"] * 7


async def test_nobody_waits_for_the_rows_of_others_that_an_attempt_deletes(office: Office) -> None:
    await fails(office)
    await fails(office, address=ELSEWHERE)
    await execute(office.database, "update sign_in_attempts set last_at = last_at - interval '2 hours'")
    (own, *_) = domain.subjects_of_client(NORA, ADDRESS)
    async with office.database.writing() as connection:
        await login.lock_attempts(connection, own.hash)
        waiting = asyncio.create_task(fails(office))
        await until_somebody_waits(office.database)
        await fails(office, address=ELSEWHERE)
    await waiting
    assert await value(office.database, "select min(failures) from sign_in_attempts") == 1


async def test_an_unchecked_attempt_does_not_count(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as flood:
        flood.setattr(Passwords, "most_waiting", 0)
        for _ in range(FREE_FAILURES + 1):
            await must_wait(office)
    for _ in range(FREE_FAILURES - 1):
        await fails(office)
    assert await office.sign_in()


async def test_a_password_hashed_in_a_weaker_way_is_hashed_anew(office: Office) -> None:
    stronger = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
    careful = Login(office.database, office.box, SessionTimes(), Passwords(stronger))
    for _ in range(2):
        await careful.sign_in(NORA, PASSWORD, CLIENT)
        stored = await value(office.database, "select password_hash from staff")
        assert not stronger.check_needs_rehash(stored)
        assert stored.startswith("$argon2id$")


def test_the_vendored_list_has_ten_thousand_passwords_of_sufficient_length() -> None:
    common = common_passwords()
    assert sum(len(password) >= domain.SHORTEST_PASSWORD for password in common) >= 10_000
    assert {"password123456", "1qaz2wsx3edc", "123456789012", "12345678", "iloveyouiloveyou"} <= common
    assert [one for one in common if len(one) < domain.LEAST_OTHERS or one != one.casefold()] == []


# The second factor


async def test_with_a_second_factor_the_password_alone_opens_nothing(office: Office) -> None:
    own = await office.oneself(await office.sign_in())
    secret = await office.set_up_factor(own)
    with pytest.raises(SecondFactorNeeded) as needed:
        await office.sign_in()
    with pytest.raises(LoginFailed):
        await office.login.open_session(own.staff.id, CLIENT)
    await fails(office)
    with pytest.raises(LoginFailed):
        await office.sign_in(code="000000x")
    code = await office.code(secret)
    opened = await office.login.sign_in_with_code(needed.value.ticket, code, CLIENT)
    assert await office.is_signed_in(opened)
    with pytest.raises(LoginFailed):
        await office.sign_in(code=code)


async def test_a_code_that_several_use_at_the_same_time_opens_for_one(office: Office) -> None:
    secret = await office.set_up_factor(await office.oneself(await office.sign_in()))
    code = await office.code(secret)
    tries = [office.sign_in(code=code) for _ in range(4)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(outcome, LoginFailed) for outcome in outcomes) == 3


async def test_codes_are_counted_for_the_whole_account_but_for_its_own_browsers(office: Office) -> None:
    opened = await office.sign_in()
    secret = await office.set_up_factor(await office.oneself(opened))
    for number in range(FREE_FAILURES):
        with pytest.raises(LoginFailed):
            await office.sign_in(code="000000x", client=LoginClient(f"198.51.{number}.1", AGENT))
    right = pyotp.TOTP(secret).at(int(await office.now()), 1)
    with pytest.raises(TooManyAttempts):
        await office.sign_in(code=right, client=LoginClient("203.0.113.1", AGENT))
    assert await office.sign_in(code=right, client=CLIENT._replace(browser=opened.browser))


async def test_right_passwords_between_wrong_codes_forgive_nothing(office: Office) -> None:
    await office.set_up_factor(await office.oneself(await office.sign_in()))
    for _ in range(FREE_FAILURES):
        with pytest.raises(SecondFactorNeeded) as needed:
            await office.sign_in()
        with pytest.raises(LoginFailed):
            await office.login.sign_in_with_code(needed.value.ticket, "000000x", CLIENT)
    with pytest.raises(TooManyAttempts):
        await office.sign_in(code="000000x")


async def test_a_ticket_is_worth_nothing_if_it_is_invented_or_with_another_password(office: Office) -> None:
    own = await office.oneself(await office.sign_in())
    secret = await office.set_up_factor(own)
    with pytest.raises(SecondFactorNeeded) as needed:
        await office.sign_in()
    await office.accounts.change_password(own, PASSWORD, "another horse of lead")
    code = await office.code(secret)
    for ticket in ("", "x", "é", "gAAAAA==", "x" * 5000, needed.value.ticket):
        with pytest.raises(LoginFailed):
            await office.login.sign_in_with_code(ticket, code, CLIENT)


async def test_a_ticket_is_good_for_five_minutes(office: Office) -> None:
    own = await office.oneself(await office.sign_in())
    secret = await office.set_up_factor(own)
    account = await office.database.read(staff.find_account, own.staff.id)
    assert account is not None
    earlier = [account._replace(read_at=account.read_at - timedelta(minutes=minutes)) for minutes in (5, 4)]
    expired, good = [issue_ticket(office.box, one) for one in earlier]
    # One that is longer than ours is not even opened.
    longer = office.box.seal(office.box.open(good.encode()) + " " * 4000).decode()
    code = await office.code(secret)
    for ticket in (expired, longer):
        with pytest.raises(LoginFailed):
            await office.login.sign_in_with_code(ticket, code, CLIENT)
    assert await office.login.sign_in_with_code(good, code, CLIENT)


# Codes of the second factor are those of RFC 6238; in its appendix B they have two digits more in front.
SECRET = base64.b32encode(b"12345678901234567890").decode()
STEP_SECONDS = 30
NOW = datetime.fromtimestamp(1111111109, UTC)
HERE = 1111111109 // STEP_SECONDS


def code_at(step: int) -> str:
    return pyotp.TOTP(SECRET).generate_otp(step)


def test_the_codes_are_those_of_the_rfc_as_people_type_them() -> None:
    for second, code in ((59, "94287082"), (1111111109, "07081804"), (20000000000, "65353130")):
        now = datetime.fromtimestamp(second, UTC)
        assert accepted_step(SECRET, code[-6:], now, used_step=0) == second // STEP_SECONDS
    for typed in ("081804", "081 804", " 081804\n", "٠٨١٨٠٤", "۰۸۱۸۰۴"):
        assert accepted_step(SECRET, typed, NOW, used_step=0) == HERE
    for typed in ("", "81804", "0818041", "08180x", "-81804", "²81804", "\0", "x" * 9999):
        assert accepted_step(SECRET, typed, NOW, used_step=0) is None


def test_a_clock_may_be_a_step_off_and_no_used_step_is_accepted_again_nor_one_before_it() -> None:
    accepted = [accepted_step(SECRET, code_at(HERE + apart), NOW, used_step=0) for apart in range(-2, 3)]
    assert accepted == [None, HERE - 1, HERE, HERE + 1, None]
    accepted = [accepted_step(SECRET, code_at(HERE + apart), NOW, used_step=HERE) for apart in (-1, 0, 1)]
    assert accepted == [None, None, HERE + 1]


def test_secrets_are_new_and_long_enough_and_the_qr_code_names_the_account() -> None:
    made = {operation.new_secret() for _ in range(5)}
    assert len(made) == 5
    assert {len(base64.b32decode(secret)) for secret in made} == {20}
    assert operation.format_secret(SECRET).replace(" ", "") == SECRET
    parts = urlsplit(operation.enrolment_url(SECRET, "nora+1@example.com"))
    assert (parts.scheme, parts.netloc) == ("otpauth", "totp")
    assert unquote(parts.path) == "/Holdfast:nora+1@example.com"
    assert parse_qs(parts.query) == {"secret": [SECRET], "issuer": ["Holdfast"]}
