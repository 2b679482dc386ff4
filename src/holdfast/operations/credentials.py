"""Passwords hashed and checked: argon2id, in threads, a few at a time."""

from __future__ import annotations

import asyncio
import hmac
import unicodedata
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import pyotp
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.domain.errors import TooManyAttempts
from holdfast.domain.login import LONGEST, normal_form

Result = TypeVar("Result")

# Each takes 64 MiB and up to four processors while it lasts, on purpose.
_AT_A_TIME = 2
_AT_MOST = 64
_TRY_AGAIN_SECONDS = 5.0


class Passwords:
    """A flood of sign-ins waits here, and at last is sent away; it takes neither memory nor threads."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._nobodys_hash = cache(lambda: self._hasher.hash("the password of nobody"))
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def hash(self, password: str) -> str:
        return await self._in_turn(lambda: self._hasher.hash(normal_form(password)))

    async def is_right(self, password_hash: str | None, password: str) -> bool:
        """Where there is no hash, the time is taken all the same: nobody learns that an account is not there.

        What no password can be is not hashed at length.
        """
        typed = normal_form(password)[: LONGEST + 1]
        return await self._in_turn(lambda: self._check(password_hash, typed))

    def is_outdated(self, password_hash: str) -> bool:
        return self._hasher.check_needs_rehash(password_hash)

    def _check(self, password_hash: str | None, typed: str) -> bool:
        nobodys = self._nobodys_hash()
        try:
            self._hasher.verify(password_hash or nobodys, typed.encode(errors="replace"))
        except (VerificationError, InvalidHashError):
            return False
        return password_hash is not None

    async def _in_turn(self, work: Callable[[], Result]) -> Result:
        """To its end, also when the caller has left: a thread cannot be stopped, and so has to be counted."""
        if len(self._tasks) >= _AT_MOST:
            raise TooManyAttempts(_TRY_AGAIN_SECONDS)
        task = asyncio.create_task(self._turn(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _turn(self, work: Callable[[], Result]) -> Result:
        async with self._turns:
            return await asyncio.to_thread(work)


# The second factor: codes from an authenticator app (TOTP, RFC 6238).

_STEPS_APART = 1
"""How far the clock of the phone may be off."""
_DIGITS = 6
_SECRET_LENGTH = 32  # in base32: 20 bytes
_ISSUER = "Holdfast"


def new_secret() -> str:
    return pyotp.random_base32(_SECRET_LENGTH)


def accepted_step(secret: str, typed: str, now: datetime, used_step: int) -> int | None:
    """Return the time step of a right code, or None; no step up to ``used_step`` is accepted again."""
    totp, code = pyotp.TOTP(secret, digits=_DIGITS), _ascii_digits(typed)
    current = totp.timecode(now)
    for step in range(current - _STEPS_APART, current + _STEPS_APART + 1):
        if step > used_step and hmac.compare_digest(totp.generate_otp(step), code):
            return step
    return None


def enrolment_url(secret: str, email: str) -> str:
    """Return the address that the QR code contains."""
    return pyotp.TOTP(secret, digits=_DIGITS).provisioning_uri(email, _ISSUER)


def format_secret(secret: str) -> str:
    """Write the secret in groups, for those who type it."""
    return " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))


def _ascii_digits(typed: str) -> str:
    """Read a code with or without spaces, in whatever digits the keyboard has."""
    found = [unicodedata.decimal(sign, None) for sign in "".join(typed.split())[: _DIGITS + 1]]
    return "".join("x" if digit is None else str(digit) for digit in found)
