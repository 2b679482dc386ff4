"""How often somebody may try to sign in: few times for one account, more for one address. Pure."""

from __future__ import annotations

import hashlib
import unicodedata
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.errors import Fault
from holdfast.domain.message import AnyMessage, Message

FREE_FAILURES = 5
FIRST_WAIT = timedelta(seconds=15)
LONGEST_WAIT = timedelta(minutes=15)
FORGOTTEN_AFTER = timedelta(hours=1)

FAILURES_OF_ADDRESS = 30
WINDOW_OF_ADDRESS = timedelta(minutes=15)

_NO_WAIT = timedelta(0)
_DOUBLINGS = 6
"""After which the wait is at its longest."""


class Counted(StrEnum):
    ACCOUNT = "account"
    ADDRESS = "address"


class Attempts(NamedTuple):
    """Those that failed, and those that are on their way: who tries a thousand at once is counted, too."""

    failures: int
    first_at: datetime
    last_at: datetime


def subject(kind: Counted, name: str) -> bytes:
    """Under which a name is counted. What strangers type into the form of the sign-in is not kept."""
    return hashlib.sha256(f"{kind}:{name}".encode(errors="surrogatepass")).digest()


def remembered(kind: Counted, attempts: Attempts, now: datetime) -> Attempts:
    """An account is forgiven after an hour of peace, an address once its quarter of an hour is over."""
    if kind is Counted.ACCOUNT:
        is_over = now - attempts.last_at >= FORGOTTEN_AFTER
    else:
        is_over = now - attempts.first_at >= WINDOW_OF_ADDRESS
    return Attempts(0, now, now) if is_over else attempts


def wait_before_next(kind: Counted, attempts: Attempts, now: datetime) -> timedelta:
    """Of an account the waits grow, and end. Whoever keeps at it keeps its owner waiting, but for as long as
    that lasts; a set-up link gets in meanwhile.

    Many people may share an address, so there only a flood is held up.
    """
    if kind is Counted.ADDRESS:
        is_flood = attempts.failures >= FAILURES_OF_ADDRESS
        return max(_NO_WAIT, attempts.first_at + WINDOW_OF_ADDRESS - now) if is_flood else _NO_WAIT
    if attempts.failures < FREE_FAILURES:
        return _NO_WAIT
    doubled: timedelta = FIRST_WAIT * 2 ** min(attempts.failures - FREE_FAILURES, _DOUBLINGS)
    return max(_NO_WAIT, attempts.last_at + min(doubled, LONGEST_WAIT) - now)


def with_one_more(attempts: Attempts, now: datetime) -> Attempts:
    return Attempts(attempts.failures + 1, attempts.first_at, now)


# What a password may be. Long is strong: there are no rules about signs and capitals.

SHORTEST, LONGEST = 12, 200

# Of those that are long enough, what people try first.
_SILLY = frozenset(
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


def normal_form(password: str) -> str:
    """The same password from every keyboard: one character may be written in several ways."""
    return unicodedata.normalize("NFKC", password)


def password_fault(password: str, email: str, pointer: str = "/password") -> Fault | None:
    told = _fault(normal_form(password), email)
    return None if told is None else Fault(pointer, told)


def _fault(password: str, email: str) -> AnyMessage | None:
    if not SHORTEST <= len(password) <= LONGEST:
        message = "A password has %(least)s to %(most)s characters."
        return Message(message, {"least": SHORTEST, "most": LONGEST})
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in password):
        return "A password is made of characters that can be typed."
    if _is_silly(password.casefold(), email.casefold()):
        return "This password is among the first that anybody would try."
    return None


def _is_silly(password: str, email: str) -> bool:
    return password in _SILLY or len(set(password)) < 4 or password in (email, email.partition("@")[0])
