"""Limits on attempts to sign in, and rules for passwords."""

from __future__ import annotations

import hashlib
import unicodedata
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.addresses import counted_networks, shared_network
from holdfast.domain.errors import Fault, Message

FREE_FAILURES = 5
FIRST_WAIT = timedelta(seconds=15)
LONGEST_WAIT = timedelta(minutes=15)
FORGET_AFTER = timedelta(hours=1)

ADDRESS_FAILURES = 30
ADDRESS_WINDOW = timedelta(minutes=15)

_NO_WAIT = timedelta(0)
_DOUBLINGS = 6  # after which the wait is at its longest


class Attempts(NamedTuple):
    """Attempts that failed or are not finished."""

    failures: int
    first_at: datetime
    last_at: datetime


class Subject(NamedTuple):
    """Whose attempts are counted."""

    name: str
    """An account's has a line break, so that no network is counted as one."""
    limit: int | None = None
    """The failures that a network may have in its window. None: an account, whose waits grow."""

    @property
    def hash(self) -> bytes:
        """Under which it is counted: the text that strangers type is not stored."""
        return hashlib.sha256(self.name.encode(errors="surrogatepass")).digest()


def subjects_of_client(account: str, address: str, *, is_code: bool = False) -> list[Subject]:
    """Count an account for each network, so that strangers slow down their own and not the owner's.

    Codes are counted for the whole account: they are asked of those who know the password.
    """
    client = ip_address(address)
    counted_by = "code" if is_code else shared_network(client)
    networks = [Subject(name, ADDRESS_FAILURES * times) for name, times in counted_networks(client)]
    return [Subject(f"{account}\n{counted_by}"), *networks]


def subjects_of_browser(account: str, browser_id: UUID) -> list[Subject]:
    """Count a browser that the account has signed in with alone: nobody else can slow it down."""
    return [Subject(f"{account}\n{browser_id}")]


def current_attempts(subject: Subject, attempts: Attempts, now: datetime) -> Attempts:
    is_account = subject.limit is None
    ends_at = attempts.last_at + FORGET_AFTER if is_account else attempts.first_at + ADDRESS_WINDOW
    return attempts if now < ends_at else Attempts(0, now, now)


def wait_before_next(subject: Subject, attempts: Attempts, now: datetime) -> timedelta:
    """Return how long the next attempt has to wait.

    The waits of an account grow up to a limit, and a set-up link works meanwhile. Many people may share an
    address, so only a flood from there has to wait.
    """
    if subject.limit is not None:
        is_flood = attempts.failures >= subject.limit
        return max(_NO_WAIT, attempts.first_at + ADDRESS_WINDOW - now) if is_flood else _NO_WAIT
    if attempts.failures < FREE_FAILURES:
        return _NO_WAIT
    doubled: timedelta = FIRST_WAIT * 2 ** min(attempts.failures - FREE_FAILURES, _DOUBLINGS)
    return max(_NO_WAIT, attempts.last_at + min(doubled, LONGEST_WAIT) - now)


def add_attempt(attempts: Attempts, now: datetime) -> Attempts:
    return Attempts(attempts.failures + 1, attempts.first_at, now)


# Passwords must be long; there are no rules about signs and capitals.

SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 200

# Common passwords of sufficient length.
_COMMON_PASSWORDS = frozenset(
    {
        "123456789012", "1234567890123", "12345678901234", "123456789012345", "1234567890123456",
        "123123123123", "111111111111", "000000000000", "012345678901", "987654321098", "abcdefghijkl",
        "abcdefghijklm", "abcabcabcabc", "abcd12345678", "abc123abc123", "qwertyuiop12", "qwertyuiop123",
        "qwertyuiopas", "qwertyqwerty", "qwerty123456", "qwerty1234567", "1q2w3e4r5t6y", "1qaz2wsx3edc",
        "asdfghjkl123", "zxcvbnm12345", "passwordpassword", "password1234", "password12345",
        "password123456", "password1234567", "password12345678", "passw0rd1234", "passw0rd12345",
        "mypassword123", "changemechangeme", "changeme1234", "changeme12345", "letmeinletmein",
        "letmein12345", "welcome12345", "welcome123456", "iloveyou1234", "iloveyouiloveyou",
        "administrator", "administrator1", "admin1234567", "admin12345678", "adminadmin12",
        "adminadminadmin", "holdfast1234", "holdfastholdfast", "backoffice12", "riyadh123456",
        "saudiarabia1", "saudiarabia123", "correcthorsebatterystaple",
    }
)  # fmt: skip


def normalize_password(password: str) -> str:
    """Return the same text for every way to write a character.

    The text is cut first: many combining characters take quadratic time.
    """
    return unicodedata.normalize("NFKC", password[: 4 * LONGEST_PASSWORD])


def password_fault(password: str, email: str, pointer: str = "/password") -> Fault | None:
    password = normalize_password(password)
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        message = "A password has %(least)s to %(most)s characters."
        return Fault(pointer, Message(message, {"least": SHORTEST_PASSWORD, "most": LONGEST_PASSWORD}))
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in password):
        return Fault(pointer, "A password is made of characters that can be typed.")
    folded, address = password.casefold(), email.casefold()
    is_guessable = folded in _COMMON_PASSWORDS or len(set(folded)) < 4
    if is_guessable or folded in (address, address.partition("@")[0]):
        return Fault(pointer, "This password is among the first that anybody would try.")
    return None
