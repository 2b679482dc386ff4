"""Staff sign in, stay signed in for a time, and are signed out."""

import asyncio
import logging
from datetime import timedelta

import pytest
from argon2 import PasswordHasher

from holdfast.domain.audit import COMMAND
from holdfast.domain.errors import LoginFailed, SecondFactorNeeded, TooManyAttempts
from holdfast.domain.login import ADDRESS_FAILURES, FREE_FAILURES
from holdfast.domain.permissions import Role
from holdfast.domain.staff import SessionTimes
from holdfast.operations.login import Login, Tickets
from holdfast.storage import staff
from holdfast.storage.database import Database
from tests.support.staff import ADDRESS, AGENT, PASSWORD, Office, open_office

UNKNOWN = "nobody@example.com"
NORA = "nora@example.com"


@pytest.fixture
def office(database: Database) -> Office:
    return open_office(database)


async def execute(office: Office, statement: str, *arguments: object) -> None:
    async with office.database.writing() as connection:
        await connection.execute(statement, *arguments)


async def fails(
    office: Office, email: str, password: str = "wrong wrong wrong", address: str = ADDRESS
) -> None:
    with pytest.raises(LoginFailed):
        await office.login.sign_in(email, password, None, address, AGENT)


async def test_a_session_is_found_by_its_token_alone(office: Office) -> None:
    person = await office.add()
    opened = await office.sign_in()
    found = await office.login.find(opened.token)
    assert found is not None
    assert (found.staff.id, found.notice) == (person.id, None)
    assert found.staff.last_signed_in_at is not None
    for other in ("", "x" * 43, opened.token[:-1], opened.token + "x", opened.token.swapcase()):
        assert await office.login.find(other) is None


async def test_the_token_is_nowhere_in_the_database(office: Office) -> None:
    await office.add()
    opened = await office.sign_in()
    async with office.database.reading() as connection:
        row = await connection.fetchrow("select staff_session::text, staff::text from staff_session, staff")
    assert opened.token not in str(row)
    assert PASSWORD not in str(row)


@pytest.mark.parametrize("email", ["NORA@example.com", "  nora@example.com "])
async def test_capitals_and_spaces_in_the_address_make_no_difference(office: Office, email: str) -> None:
    await office.add()
    assert (await office.sign_in(email)).staff.email == NORA


@pytest.mark.parametrize(
    ("email", "password"),
    [
        (NORA, "a horse of leaf"),
        (NORA, ""),
        (NORA, PASSWORD + " "),
        (NORA, "\ud800" * 5),
        (NORA, "x" * 100_000),
        (UNKNOWN, PASSWORD),
        ("", PASSWORD),
        ("nora\0@example.com", PASSWORD),
        ("\ud800@example.com", PASSWORD),
        ("x" * 100_000, PASSWORD),
    ],
    ids=range(10),
)
async def test_whatever_is_wrong_has_one_answer(office: Office, email: str, password: str) -> None:
    await office.add()
    with pytest.raises(LoginFailed):
        await office.sign_in(email, password=password)


async def test_who_is_disabled_or_has_no_password_yet_is_refused(office: Office) -> None:
    await office.add("boss@example.com")
    person = await office.add(role=Role.SALES)
    await office.staff.invite("new@example.com", "New", Role.SALES, COMMAND)
    await office.staff.change(person.id, {"disabled": True}, COMMAND)
    await fails(office, NORA, PASSWORD)
    await fails(office, "new@example.com", PASSWORD)


async def test_the_log_tells_who_was_let_in_and_who_was_not_and_never_what_was_typed(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdfast.operations.login")
    await office.add()
    await office.sign_in()
    await fails(office, NORA)
    await fails(office, UNKNOWN)
    told = [(one.levelname, one.__dict__["fields"]) for one in caplog.records]
    assert told == [
        ("INFO", {"staff": NORA, "address": ADDRESS}),
        ("WARNING", {"staff": NORA, "address": ADDRESS}),
        ("WARNING", {"staff": None, "address": ADDRESS}),
    ]


async def test_who_has_to_wait_is_in_the_log_by_address(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(FREE_FAILURES):
        await fails(office, UNKNOWN)
    with pytest.raises(TooManyAttempts):
        await office.login.sign_in(UNKNOWN, PASSWORD, None, ADDRESS, AGENT)
    assert caplog.messages[-1] == "a sign-in was put off"
    assert caplog.records[-1].__dict__["fields"] == {"address": ADDRESS}


async def test_a_notice_is_told_once_and_only_to_who_shows_it(office: Office) -> None:
    await office.add()
    opened = await office.sign_in()
    who = await office.oneself(opened)
    await office.login.leave_notice(who.session_id, "Done.")
    stream = await office.login.find(opened.token, takes_notice=False)
    page = await office.login.find(opened.token)
    next_page = await office.login.find(opened.token)
    assert stream is not None
    assert page is not None
    assert next_page is not None
    assert (page.notice, next_page.notice) == ("Done.", None)


async def test_a_session_ends_when_nobody_has_used_it_for_long(office: Office) -> None:
    await office.add()
    opened = await office.sign_in()
    await execute(office, "update staff_session set last_seen_at = last_seen_at - interval '119 minutes'")
    assert await office.is_signed_in(opened)
    await execute(office, "update staff_session set last_seen_at = last_seen_at - interval '119 minutes'")
    assert await office.is_signed_in(opened)
    await execute(office, "update staff_session set last_seen_at = last_seen_at - interval '121 minutes'")
    assert not await office.is_signed_in(opened)
    assert await office.login.list_sessions(opened.staff.id) == []


async def test_a_session_ends_at_an_age_however_much_it_is_used(office: Office) -> None:
    await office.add()
    opened = await office.sign_in()
    await execute(office, "update staff_session set created_at = created_at - interval '11.9 hours'")
    assert await office.is_signed_in(opened)
    await execute(office, "update staff_session set created_at = created_at - interval '0.2 hours'")
    assert not await office.is_signed_in(opened)


async def test_where_the_times_are_short_so_is_what_is_noted(database: Database) -> None:
    office = open_office(database, SessionTimes(timedelta(seconds=40), timedelta(hours=1)))
    await office.add()
    opened = await office.sign_in()
    for _ in range(3):
        await execute(office, "update staff_session set last_seen_at = last_seen_at - interval '20 seconds'")
        assert await office.is_signed_in(opened)


async def test_who_is_there_is_written_down_once_a_minute(office: Office) -> None:
    await office.add()
    opened = await office.sign_in()
    async with office.database.reading() as connection:
        statement = "select xmin::text from staff_session"
        before = await connection.fetchval(statement)
        for _ in range(5):
            assert await office.is_signed_in(opened)
        assert await connection.fetchval(statement) == before


async def test_sessions_that_are_too_old_are_deleted_by_the_next_sign_in(office: Office) -> None:
    await office.add()
    await office.sign_in()
    await execute(office, "update staff_session set created_at = created_at - interval '13 hours'")
    await office.sign_in()
    async with office.database.reading() as connection:
        assert await connection.fetchval("select count(*) from staff_session") == 1


async def test_sign_out_ends_one_session_and_everywhere_ends_all_but_one(office: Office) -> None:
    await office.add()
    first, second, third, fourth = [await office.sign_in() for _ in range(4)]
    await office.login.sign_out(first.token)
    assert not await office.is_signed_in(first)
    mine = await office.oneself(second)
    assert await office.login.sign_out_everywhere(mine.staff.id, mine.session_id) == 2
    assert [await office.is_signed_in(one) for one in (second, third, fourth)] == [True, False, False]
    assert await office.login.sign_out_everywhere(mine.staff.id) == 1
    assert not await office.is_signed_in(second)


async def test_sessions_are_listed_with_where_they_come_from(office: Office) -> None:
    person = await office.add()
    await office.login.sign_in(NORA, PASSWORD, None, "2001:db8::7", "An\0agent\n" + "x" * 1000)
    await office.sign_in()
    newest, oldest = await office.login.list_sessions(person.id)
    assert (newest.address, newest.agent) == (ADDRESS, AGENT)
    assert oldest.address == "2001:db8::7"
    assert oldest.agent.startswith("An agent x")
    assert len(oldest.agent) == 300


@pytest.mark.parametrize("email", [NORA, UNKNOWN])
async def test_after_some_failures_an_account_waits_whether_it_is_there_or_not(
    office: Office, email: str
) -> None:
    await office.add()
    for _ in range(FREE_FAILURES):
        await fails(office, email)
    with pytest.raises(TooManyAttempts) as refused:
        await office.sign_in(email)
    assert 13 < refused.value.retry_after_seconds <= 15
    with pytest.raises(TooManyAttempts):
        await office.login.sign_in(email.upper(), PASSWORD, None, "198.51.100.1", AGENT)


async def test_the_wait_ends_grows_and_is_forgotten_after_a_success(office: Office) -> None:
    await office.add()
    for _ in range(FREE_FAILURES):
        await fails(office, NORA)
    ended = "update sign_in_attempts set last_at = last_at - interval '15 seconds'"
    await execute(office, ended)
    await fails(office, NORA)
    with pytest.raises(TooManyAttempts) as refused:
        await office.sign_in()
    assert 28 < refused.value.retry_after_seconds <= 30
    await execute(office, ended)
    await execute(office, ended)
    await office.sign_in()
    for _ in range(FREE_FAILURES):
        await fails(office, NORA)


async def test_who_is_signed_in_stays_so_while_others_try_the_account(office: Office) -> None:
    await office.add()
    opened = await office.sign_in()
    for _ in range(FREE_FAILURES):
        await fails(office, NORA, address="198.51.100.1")
    assert await office.is_signed_in(opened)


async def test_an_address_that_tries_many_accounts_waits(office: Office) -> None:
    await office.add()
    for number in range(ADDRESS_FAILURES):
        await fails(office, f"{number}@example.com")
    with pytest.raises(TooManyAttempts) as refused:
        await office.sign_in()
    assert 800 < refused.value.retry_after_seconds <= 900
    assert await office.login.sign_in(NORA, PASSWORD, None, "198.51.100.1", AGENT)


async def test_many_attempts_at_the_same_time_are_all_counted(office: Office) -> None:
    await office.add()
    wrong = [office.sign_in(password=f"wrong wrong {number}") for number in range(20)]
    outcomes = await asyncio.gather(*wrong, return_exceptions=True)
    kinds = sorted(type(outcome).__name__ for outcome in outcomes)
    assert kinds == ["LoginFailed"] * FREE_FAILURES + ["TooManyAttempts"] * 15


async def test_whoever_is_sent_away_because_too_many_wait_has_not_failed(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.add()
    with monkeypatch.context() as flood:
        flood.setattr("holdfast.operations.login.Passwords.most_waiting", 0)
        for _ in range(FREE_FAILURES + 1):
            with pytest.raises(TooManyAttempts):
                await office.sign_in()
    for _ in range(FREE_FAILURES - 1):
        await fails(office, NORA)
    assert await office.sign_in()


async def test_good_sign_ins_from_one_address_are_no_flood(office: Office) -> None:
    await office.add()
    for _ in range(ADDRESS_FAILURES + 2):
        await office.sign_in()


async def test_with_a_second_factor_the_password_alone_opens_nothing(office: Office) -> None:
    await office.add()
    secret = await office.set_up_factor(await office.oneself(await office.sign_in()))
    with pytest.raises(SecondFactorNeeded) as needed:
        await office.sign_in()
    with pytest.raises(LoginFailed):
        await office.sign_in(password="wrong wrong wrong")
    with pytest.raises(LoginFailed):
        await office.sign_in(code="000000x")
    opened = await office.login.sign_in_with_code(
        needed.value.ticket, await office.code(secret), ADDRESS, AGENT
    )
    assert await office.is_signed_in(opened)


async def test_a_code_opens_once(office: Office) -> None:
    await office.add()
    secret = await office.set_up_factor(await office.oneself(await office.sign_in()))
    code = await office.code(secret, 1)
    await office.sign_in(code=code)
    with pytest.raises(LoginFailed):
        await office.sign_in(code=code)


async def test_a_code_that_several_use_at_the_same_time_opens_for_one(office: Office) -> None:
    await office.add()
    secret = await office.set_up_factor(await office.oneself(await office.sign_in()))
    code = await office.code(secret, 1)
    tries = [office.sign_in(code=code) for _ in range(4)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(outcome, LoginFailed) for outcome in outcomes) == 3


async def test_wrong_codes_are_counted_and_right_passwords_between_them_forgive_nothing(
    office: Office,
) -> None:
    await office.add()
    await office.set_up_factor(await office.oneself(await office.sign_in()))
    for _ in range(FREE_FAILURES):
        with pytest.raises(SecondFactorNeeded) as needed:
            await office.sign_in()
        with pytest.raises(LoginFailed):
            await office.login.sign_in_with_code(needed.value.ticket, "000000x", ADDRESS, AGENT)
    with pytest.raises(TooManyAttempts):
        await office.sign_in()


@pytest.mark.parametrize("ticket", ["", "x", "é", "gAAAAA==", "x" * 5000], ids=ascii)
async def test_an_invented_ticket_opens_nothing(office: Office, ticket: str) -> None:
    await office.add()
    with pytest.raises(LoginFailed):
        await office.login.sign_in_with_code(ticket, "000000", ADDRESS, AGENT)


async def test_a_ticket_is_worth_nothing_with_another_password(office: Office) -> None:
    await office.add()
    who = await office.oneself(await office.sign_in())
    secret = await office.set_up_factor(who)
    with pytest.raises(SecondFactorNeeded) as needed:
        await office.sign_in()
    await office.accounts.change_password(who, PASSWORD, "another horse of lead")
    code = await office.code(secret)
    with pytest.raises(LoginFailed):
        await office.login.sign_in_with_code(needed.value.ticket, code, ADDRESS, AGENT)


@pytest.mark.parametrize(("minutes", "is_good"), [(4, True), (5, False)])
async def test_a_ticket_is_good_for_five_minutes(office: Office, minutes: int, is_good: bool) -> None:
    person = await office.add()
    async with office.database.reading() as connection:
        account = await staff.find_account(connection, person.id)
    assert account is not None
    earlier = account._replace(read_at=account.read_at - timedelta(minutes=minutes))
    tickets = Tickets(office.box)
    assert tickets.is_for(tickets.issue(earlier), account) is is_good


async def test_a_password_hashed_in_a_weaker_way_is_hashed_anew(office: Office) -> None:
    await office.add()
    careful = Login(office.database, office.box, SessionTimes())
    for _ in range(2):
        await careful.sign_in(NORA, PASSWORD, None, ADDRESS, AGENT)
    async with office.database.reading() as connection:
        stored = await connection.fetchval("select password_hash from staff")
    assert not PasswordHasher().check_needs_rehash(stored)
    assert stored.startswith("$argon2id$")
