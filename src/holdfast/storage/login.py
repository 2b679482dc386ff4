"""Set-up links: a hash of what they end with, and whom they are for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.login import Attempts
from holdfast.storage.database import Connection

_FIND_SETUP_LINK = "select staff_id from setup_link where token_hash = $1 and expires_at > clock_timestamp()"
_INSERT_SETUP_LINK = """
    insert into setup_link (token_hash, staff_id, expires_at)
    values ($1, $2, clock_timestamp() + make_interval(hours => $3))
"""
_DROP_SETUP_LINK = "delete from setup_link where staff_id is not distinct from $1"
_USE_SETUP_LINK = """
    delete from setup_link where token_hash = $1 and expires_at > clock_timestamp() returning token_hash
"""


class SetupLink(NamedTuple):
    staff_id: UUID | None
    """None: for the first admin."""


async def find_setup_link(connection: Connection, token_hash: bytes) -> SetupLink | None:
    row = await connection.fetchrow(_FIND_SETUP_LINK, token_hash)
    return SetupLink(row["staff_id"]) if row else None


async def replace_setup_link(
    connection: Connection, token_hash: bytes, staff_id: UUID | None, hours: int
) -> None:
    await drop_setup_link(connection, staff_id)
    await connection.execute(_INSERT_SETUP_LINK, token_hash, staff_id, hours)


async def drop_setup_link(connection: Connection, staff_id: UUID | None) -> None:
    await connection.execute(_DROP_SETUP_LINK, staff_id)


async def use_setup_link(connection: Connection, token_hash: bytes) -> bool:
    return bool(await connection.fetch(_USE_SETUP_LINK, token_hash))


# Attempts to sign in, counted for all processes.

_MAKE_ATTEMPTS = """
    insert into sign_in_attempts (subject, failures, first_at, last_at)
    values ($1, 0, clock_timestamp(), clock_timestamp())
    on conflict (subject) do nothing
"""
_LOCK_ATTEMPTS = """
    select failures, first_at, last_at, clock_timestamp() as now from sign_in_attempts
    where subject = $1 for no key update
"""
_STORE_ATTEMPTS = "update sign_in_attempts set failures = $2, first_at = $3, last_at = $4 where subject = $1"
_TAKE_BACK_ATTEMPT = "update sign_in_attempts set failures = greatest(failures - 1, 0) where subject = $1"
_FORGET_ATTEMPTS = "delete from sign_in_attempts where subject = $1"
_FORGET_OLD_ATTEMPTS = """
    delete from sign_in_attempts where subject in (
        select subject from sign_in_attempts where last_at < clock_timestamp() - $1::interval
        order by last_at limit 100 for update skip locked
    )
"""


class AttemptCounts(NamedTuple):
    attempts: Attempts
    now: datetime


async def lock_attempts(connection: Connection, subject: bytes) -> AttemptCounts:
    """Made if there are none; kept for the transaction."""
    while True:
        row = await connection.fetchrow(_LOCK_ATTEMPTS, subject)
        if row is not None:
            return AttemptCounts(Attempts(row["failures"], row["first_at"], row["last_at"]), row["now"])
        await connection.execute(_MAKE_ATTEMPTS, subject)


async def store_attempts(connection: Connection, subject: bytes, attempts: Attempts) -> None:
    await connection.execute(_STORE_ATTEMPTS, subject, *attempts)


async def take_back_attempt(connection: Connection, subjects: Sequence[bytes]) -> None:
    """One attempt that did not fail after all; in the order in which they were counted."""
    for subject in subjects:
        await connection.execute(_TAKE_BACK_ATTEMPT, subject)


async def forget_attempts(connection: Connection, subject: bytes) -> None:
    await connection.execute(_FORGET_ATTEMPTS, subject)


async def forget_old_attempts(connection: Connection, age: timedelta) -> None:
    """A few; whoever fails takes some along."""
    await connection.execute(_FORGET_OLD_ATTEMPTS, age)
