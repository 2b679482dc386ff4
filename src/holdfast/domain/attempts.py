"""How often somebody may try to sign in: few times for one account, more for one address. Pure."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

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
