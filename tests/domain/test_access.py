"""API keys, staff, passwords and attempts to sign in, and the names of projects."""

from datetime import UTC, datetime, timedelta
from string import ascii_letters, digits
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import login
from holdfast.domain.api_key import is_well_formed, key_hash, key_hint, new_key_text
from holdfast.domain.login import Attempts, Subject, normalize_password, password_fault
from holdfast.domain.permissions import ROLE_PERMISSIONS, Permission, Role
from holdfast.domain.project import is_within_projects, name_fault, slug_fault
from holdfast.domain.staff import Preferences, Staff, email_fault

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)


def test_a_new_key_is_well_formed_and_never_the_same_twice() -> None:
    keys = {new_key_text() for _ in range(100)}
    assert len(keys) == len({key_hash(key) for key in keys}) == 100
    for key in keys:
        assert is_well_formed(key)
        assert key.startswith(key_hint(key))
        assert len(key_hint(key)) == len("hfk_") + 4


@given(st.integers(0, 45), st.sampled_from(ascii_letters + digits))
def test_a_mistyped_key_is_told_from_a_real_one_by_itself(place: int, typed: str) -> None:
    key = new_key_text()
    mistyped = key[:place] + typed + key[place + 1 :]
    assert is_well_formed(mistyped) == (mistyped == key)


@given(st.text(max_size=60) | st.text(min_size=46, max_size=46).map(lambda text: f"hfk_{text}"[:46]))
def test_any_other_text_is_no_key(text: str) -> None:
    assert not is_well_formed(text)


def test_a_slug_is_of_small_letters_digits_and_single_hyphens() -> None:
    good = ["ab", "a" * 100, "palm-court-2", "0-0"]
    bad = ["", "a", "a" * 101, "Palm", "palm_court", "-palm", "palm-", "a--b", "ab\n", "نخلة"]
    assert [slug for slug in (*good, *bad) if slug_fault(slug) is None] == good


def test_projects_lie_within_those_that_are_allowed() -> None:
    assert is_within_projects(None, None)
    assert is_within_projects(["a"], None)
    assert is_within_projects(["a"], ["a", "b"])
    assert not is_within_projects(None, ["a"])
    assert not is_within_projects(["a", "c"], ["a", "b"])


def test_an_e_mail_address_is_something_at_something() -> None:
    good = ["a@b", "nora@example.com", "نورة@مثال.السعودية", "a+b.c@d-e.f"]
    bad = ["", "@", "a@", "@b", "a b@c", "a@b@c", " a@b", "a@b\n", "a\0@b", "a\u200b\u2028@b", "\ud800@b"]
    faults = {email: email_fault(email) for email in (*good, *bad, "a" * 254 + "@b")}
    assert [email for email, fault in faults.items() if fault is None] == good
    assert {fault.pointer for fault in faults.values() if fault is not None} == {"/email"}


def test_a_name_is_one_line() -> None:
    good = ["N", "Nora Al-Harbi", "نورة الحربي", "n" * 200]
    bad = ["", " ", " Nora", "Nora ", "No\nra", "\0", "\ud800", "n" * 201]
    faults = {name: name_fault(name) for name in (*good, *bad)}
    assert [name for name, fault in faults.items() if fault is None] == good
    assert {fault.pointer for fault in faults.values() if fault is not None} == {"/name"}


@pytest.mark.parametrize("role", Role)
def test_staff_may_do_what_their_role_may(role: Role) -> None:
    person = Staff(uuid4(), "n@x", "N", role, Preferences(), False, NOW, None, None, NOW)
    assert {permission for permission in Permission if person.may(permission)} == ROLE_PERMISSIONS[role]


# Passwords

NAME, EMAIL = "Nura بنت Al-Harbi", "n.alharbi@Narjis-Homes.example"
COMMON = {"password1234", "12345678", "administrator"}
LONG_ENOUGH = (
    "a horse of lead", "ثلاث كلمات طويلة", "Zq!9" * 3, "x1y2" * 50, "🐪🐫🦅🐎🌴🏜🕌🗝🔑🚪🪟🏠",
    # With eight other characters, or a part of three that is no word of theirs.
    "nura likes tea", "holdfast to the rope", "bnt is short, bnt!",
)  # fmt: skip
GUESSABLE = (
    "password1234", "PassWord1234", "ＰＡＳＳＷＯＲＤ1234", "aaaaaaaaaaaaaaa", "abababababab",
    "administrator", "Holdfast12345678", "12345678-Nura", "pass word 1234",
    "password١٢٣٤", "Holdfast۱۲۳۴۵۶۷۸",
)  # fmt: skip
OWN = (
    EMAIL, EMAIL.upper(), "n.alharbi2026", "Nura Al-Harbi 2026", "NuraبنتAl-Harbi1", "harbi-2026-nura",
    "narjis-homes.example", "narjishomes!", "NARJIS 12345", "holdfast2026!", "nura........",
    "HoldfastHoldfast1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("password", "fault"),
    [
        *((password, None) for password in LONG_ENOUGH),
        *((password, "have 12 to 200") for password in ("", "short", "x1y2z3w4v5u", "ab3!" * 50 + "x")),
        *((password, "too easy to guess") for password in GUESSABLE),
        *((password, "Besides your name") for password in OWN),
        *((f"a horse of lead{sign}", "can be typed") for sign in ("\0", "\n", "\ud800", "\x7f")),
    ],
    ids=ascii,
)
def test_a_password_is_long_can_be_typed_and_is_neither_common_nor_made_of_ones_own_words(
    password: str, fault: str | None
) -> None:
    found = password_fault(password, NAME, EMAIL, COMMON, "/newPassword")
    assert (found is None) == (fault is None)
    if found is not None and fault is not None:
        assert fault in str(found.message)
        assert found.pointer == "/newPassword"


@pytest.mark.parametrize(("name", "email"), [("S", "sara1987@x.example"), ("Sara ١٩٨٧", "s@x.example")])
def test_a_digit_is_the_same_in_every_script_when_a_password_is_checked(name: str, email: str) -> None:
    for password in ("sara1987 tea", "sara١٩٨٧ tea", "SARA۱۹۸۷ tea"):
        fault = password_fault(password, name, email, COMMON)
        assert fault is not None, password
        assert "Besides your name" in str(fault.message)


def test_one_password_from_two_keyboards_is_the_same() -> None:
    assert normalize_password("cafe\u0301 ﬁne words") == normalize_password("caf\u00e9 fine words")
    # One that is much too long is not read to its end.
    assert normalize_password("a" * 10_000) == normalize_password("a" * 20_000)


# Attempts to sign in

AGO = timedelta(minutes=3)
A_MOMENT = timedelta(milliseconds=1)
NONE = timedelta(0)
ACCOUNT, NETWORK = Subject("account"), Subject("network", 30)


def account_wait(failures: int, last_at: datetime = NOW) -> timedelta:
    return login.wait_before_next(ACCOUNT, Attempts(failures, last_at - AGO, last_at), NOW)


def address_wait(failures: int, first_at: datetime, times: int = 1) -> timedelta:
    network = Subject("", login.ADDRESS_FAILURES * times)
    return login.wait_before_next(network, Attempts(failures, first_at, NOW), NOW)


def test_after_five_failures_each_wait_is_twice_the_last_up_to_a_quarter_of_an_hour_and_ends() -> None:
    waits = [account_wait(failures).total_seconds() for failures in range(14)]
    assert waits == [0, 0, 0, 0, 0, 15, 30, 60, 120, 240, 480, 900, 900, 900]
    assert account_wait(10**9) == login.LONGEST_WAIT
    assert account_wait(5, NOW - timedelta(seconds=15) + A_MOMENT) == A_MOMENT
    assert account_wait(5, NOW - timedelta(seconds=15)) == account_wait(5, NOW - AGO) == NONE
    assert account_wait(10**9, NOW - login.LONGEST_WAIT) == NONE


def test_an_address_waits_after_many_failures_until_its_window_is_over() -> None:
    assert address_wait(login.ADDRESS_FAILURES - 1, NOW - AGO) == NONE
    assert address_wait(login.ADDRESS_FAILURES, NOW - AGO) == login.ADDRESS_WINDOW - AGO
    assert address_wait(4 * login.ADDRESS_FAILURES - 1, NOW - AGO, times=4) == NONE
    assert address_wait(4 * login.ADDRESS_FAILURES, NOW - AGO, times=4) == login.ADDRESS_WINDOW - AGO
    assert address_wait(login.ADDRESS_FAILURES, NOW - login.ADDRESS_WINDOW) == NONE
    assert address_wait(login.ADDRESS_FAILURES, NOW - 2 * login.ADDRESS_WINDOW) == NONE


@pytest.mark.parametrize(
    ("subject", "first", "last", "forgotten"),
    [
        (ACCOUNT, login.FORGET_AFTER * 2, login.FORGET_AFTER, True),
        (ACCOUNT, login.FORGET_AFTER * 2, login.FORGET_AFTER - A_MOMENT, False),
        (NETWORK, login.ADDRESS_WINDOW, NONE, True),
        (NETWORK, login.ADDRESS_WINDOW - A_MOMENT, NONE, False),
    ],
)
def test_old_attempts_are_forgotten(
    subject: Subject, first: timedelta, last: timedelta, forgotten: bool
) -> None:
    attempts = Attempts(7, NOW - first, NOW - last)
    current = login.current_attempts(subject, attempts, NOW)
    assert current == (Attempts(0, NOW, NOW) if forgotten else attempts)


def test_attempts_are_counted_apart_for_each_account_and_address() -> None:
    assert login.add_attempt(Attempts(3, NOW - AGO, NOW - AGO), NOW) == Attempts(4, NOW - AGO, NOW)
    names = ("a", "b", "\udcff", "", "192.0.2.0/24")
    counted = [login.subjects_of_client(name, address) for name in names for address in ("192.0.2.1", "::1")]
    assert len({subject.hash for subjects in counted for subject in subjects}) == 10 + 1 + 3
