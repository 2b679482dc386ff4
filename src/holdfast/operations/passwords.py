"""Passwords hashed and checked: argon2id, in threads, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

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
