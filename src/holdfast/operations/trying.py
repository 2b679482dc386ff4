"""Attempts to sign in are counted before they are made, and taken back when they succeed."""

from __future__ import annotations

from holdfast.domain.errors import TooManyAttempts
from holdfast.domain.login import FORGOTTEN_AFTER, Counted, remembered, wait_before_next, with_one_more
from holdfast.storage import login
from holdfast.storage.database import Connection, Database

Subjects = tuple[bytes, bytes]
"""An account and an address, always in this order: so nobody waits for one who waits for them."""


async def count(database: Database, subjects: Subjects) -> None:
    """An attempt that is refused is not counted: who only waits is let in at the end of the wait."""
    async with database.writing() as connection:
        await login.forget_old_attempts(connection, FORGOTTEN_AFTER)
        found = [await login.lock_attempts(connection, subject) for subject in subjects]
        now = found[-1].now
        standing = [remembered(kind, one.attempts, now) for kind, one in zip(Counted, found, strict=True)]
        wait = max(wait_before_next(kind, one, now) for kind, one in zip(Counted, standing, strict=True))
        if wait:
            raise TooManyAttempts(wait.total_seconds())
        for subject, one in zip(subjects, standing, strict=True):
            await login.store_attempts(connection, subject, with_one_more(one, now))


async def take_back(database: Database, subjects: Subjects) -> None:
    """Half a success: what failed before is not forgiven."""
    async with database.writing() as connection:
        await login.take_back_attempt(connection, subjects)


async def forgive(connection: Connection, subjects: Subjects) -> None:
    """The account starts anew. The address does not: its other accounts may be under attack."""
    account, address = subjects
    await login.forget_attempts(connection, account)
    await login.take_back_attempt(connection, [address])
