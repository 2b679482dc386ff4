"""Attempts to sign in, counted for all processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.domain.login import Attempts
from holdfast.storage.database import Connection

_MAKE = """
    insert into sign_in_attempts (subject, failures, first_at, last_at)
    values ($1, 0, clock_timestamp(), clock_timestamp())
    on conflict (subject) do nothing
"""
_LOCK = """
    select failures, first_at, last_at, clock_timestamp() as now from sign_in_attempts
    where subject = $1 for no key update
"""
_STORE = "update sign_in_attempts set failures = $2, first_at = $3, last_at = $4 where subject = $1"
_TAKE_BACK = "update sign_in_attempts set failures = greatest(failures - 1, 0) where subject = $1"
_FORGET = "delete from sign_in_attempts where subject = $1"
_FORGET_OLD = """
    delete from sign_in_attempts where subject in (
        select subject from sign_in_attempts where last_at < clock_timestamp() - $1::interval
        order by last_at limit 100 for update skip locked
    )
"""


class Standing(NamedTuple):
    attempts: Attempts
    now: datetime


async def locked(connection: Connection, subject: bytes) -> Standing:
    """Made if there are none; kept for the transaction."""
    while True:
        row = await connection.fetchrow(_LOCK, subject)
        if row is not None:
            return Standing(Attempts(row["failures"], row["first_at"], row["last_at"]), row["now"])
        await connection.execute(_MAKE, subject)


async def store(connection: Connection, subject: bytes, attempts: Attempts) -> None:
    await connection.execute(_STORE, subject, *attempts)


async def take_back(connection: Connection, subjects: Sequence[bytes]) -> None:
    """One attempt that did not fail after all; in the order in which they were counted."""
    for subject in subjects:
        await connection.execute(_TAKE_BACK, subject)


async def forget(connection: Connection, subject: bytes) -> None:
    await connection.execute(_FORGET, subject)


async def forget_old(connection: Connection, age: timedelta) -> None:
    """A few; whoever fails takes some along."""
    await connection.execute(_FORGET_OLD, age)
