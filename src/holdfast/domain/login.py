"""Limits on attempts to sign in, and rules for passwords."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container
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
SHORTEST_OWN_WORD, LEAST_OTHERS = 4, 8
_PRODUCT = "holdfast"
_WORD = re.compile(r"[^\W_]+")
_SEPARATORS = re.compile(r"[\s._@'-]+")


def normalize_password(password: str) -> str:
    """Return the same text for every way to write a character.

    The text is cut first: many combining characters take quadratic time.
    """
    return unicodedata.normalize("NFKC", password[: 4 * LONGEST_PASSWORD])


def password_fault(
    password: str, name: str, email: str, common: Container[str], pointer: str = "/password"
) -> Fault | None:
    """``common``: passwords that many people have, in lower case."""
    password = normalize_password(password)
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        message = "A password must have %(least)s to %(most)s characters."
        return Fault(pointer, Message(message, {"least": SHORTEST_PASSWORD, "most": LONGEST_PASSWORD}))
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in password):
        return Fault(pointer, "A password can contain only characters that can be typed.")
    folded = _fold(password)
    others = _own_words(name, email).sub("", folded)
    counted = _SEPARATORS.sub("", others)
    if others != folded and len(counted) < LEAST_OTHERS:
        message = "Besides your name, e-mail address or Holdfast, it needs %(count)s other characters."
        return Fault(pointer, Message(message, {"count": LEAST_OTHERS}))
    if folded in common or counted in common or len(set(others)) < 4:
        return Fault(pointer, "This password is too easy to guess.")
    return None


def _fold(text: str) -> str:
    """Return the text without capitals, and with the digits of every script as 0 to 9."""
    return "".join(str(unicodedata.decimal(sign, sign)) for sign in normalize_password(text).casefold())


def _own_words(name: str, email: str) -> re.Pattern[str]:
    """Match what others know of a person, whole and in parts; a short word may stand in any password."""
    name, email = _fold(name), _fold(email)
    wholes = {name, "".join(name.split()), email, *email.split("@"), _PRODUCT}
    words = {word for word in wholes.union(*map(_WORD.findall, wholes)) if len(word) >= SHORTEST_OWN_WORD}
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))
