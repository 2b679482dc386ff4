"""Logins: sessions, set-up links and counted attempts. Tokens are stored as hashes only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.login import Attempts
from holdfast.domain.staff import OpenSession, SessionTimes, Staff
from holdfast.storage.database import Connection, execute_and_count, wait_for_standby
from holdfast.storage.staff import STAFF_COLUMNS, read_staff

_INSERT_SESSION = """
    insert into staff_session (id, token_hash, staff_id, address, agent) values ($1, $2, $3, $4, $5)
"""
# Find a live session. Its last use is written at most once a minute, or eight times within a short idle time.
_FIND_SESSION = f"""
    select {STAFF_COLUMNS}, staff_session.id as session_id, staff_session.notice,
        clock_timestamp()::timestamptz(3) as at,
        staff_session.last_seen_at < clock_timestamp() - least(interval '1 minute', $2::interval / 8)
            as was_seen_earlier
    from staff_session join staff on staff.id = staff_session.staff_id
    where staff_session.token_hash = $1 and staff.disabled_at is null
        and staff_session.last_seen_at > clock_timestamp() - $2::interval
        and staff_session.created_at > clock_timestamp() - $3::interval
"""
_UPDATE_SESSION = """
    update staff_session
    set last_seen_at = case when $3 then clock_timestamp() else last_seen_at end,
        notice = case when $2 then null else notice end
    where id = $1
"""
_LIST_SESSIONS = """
    select id, address, agent, created_at, last_seen_at from staff_session
    where staff_id = $1
        and last_seen_at > clock_timestamp() - $2::interval
        and created_at > clock_timestamp() - $3::interval
    order by last_seen_at desc, id limit 100
"""
_DELETE_SESSIONS_OF_STAFF = """
    delete from staff_session where staff_id = $1 and id is distinct from $2 returning id
"""
_DELETE_OLD_SESSIONS = """
    delete from staff_session where id in (
        select id from staff_session where created_at < clock_timestamp() - $1::interval
        order by created_at limit 100 for update skip locked
    )
"""

_FIND_SETUP_LINK = "select staff_id from setup_link where token_hash = $1 and expires_at > clock_timestamp()"
_INSERT_SETUP_LINK = """
    insert into setup_link (token_hash, staff_id, expires_at)
    values ($1, $2, clock_timestamp() + make_interval(hours => $3))
"""
_USE_SETUP_LINK = """
    delete from setup_link where token_hash = $1 and expires_at > clock_timestamp() returning token_hash
"""

_INSERT_ATTEMPTS = """
    insert into sign_in_attempts (subject, failures, first_at, last_at)
    values ($1, 0, clock_timestamp(), clock_timestamp())
    on conflict (subject) do nothing
"""
_LOCK_ATTEMPTS = """
    select failures, first_at, last_at, clock_timestamp() from sign_in_attempts
    where subject = $1 for no key update
"""
_UPDATE_ATTEMPTS = "update sign_in_attempts set failures = $2, first_at = $3, last_at = $4 where subject = $1"
_UNCOUNT_ATTEMPT = "update sign_in_attempts set failures = greatest(failures - 1, 0) where subject = $1"
_DELETE_OLD_ATTEMPTS = """
    delete from sign_in_attempts where subject in (
        select subject from sign_in_attempts where last_at < clock_timestamp() - $1::interval
        order by last_at limit 100 for update skip locked
    )
"""


class StaffSession(NamedTuple):
    staff: Staff
    session_id: UUID
    notice: str | None
    """Left for the next page."""
    at: datetime
    """The database's time at which the session was found."""
    was_seen_earlier: bool
    """Whether its last use is to be written again."""


async def insert_session(
    connection: Connection, session_id: UUID, token_hash: bytes, staff_id: UUID, address: str, agent: str
) -> None:
    await connection.execute(_INSERT_SESSION, session_id, token_hash, staff_id, address, agent)


async def find_session(connection: Connection, token_hash: bytes, times: SessionTimes) -> StaffSession | None:
    row = await connection.fetchrow(_FIND_SESSION, token_hash, times.idle, times.absolute)
    if row is None:
        return None
    return StaffSession(read_staff(row), row["session_id"], row["notice"], row["at"], row["was_seen_earlier"])


async def update_session(
    connection: Connection, session_id: UUID, *, takes_notice: bool, is_click: bool
) -> None:
    await connection.execute(_UPDATE_SESSION, session_id, takes_notice, is_click)


async def list_sessions(connection: Connection, staff_id: UUID, times: SessionTimes) -> list[OpenSession]:
    """Return the live sessions, the last used first."""
    rows = await connection.fetch(_LIST_SESSIONS, staff_id, times.idle, times.absolute)
    return [OpenSession(*row) for row in rows]


async def delete_session(connection: Connection, token_hash: bytes) -> None:
    statement = "delete from staff_session where token_hash = $1"
    if not await execute_and_count(connection, statement, token_hash):
        await wait_for_standby(connection)


async def delete_sessions(connection: Connection, staff_id: UUID, but: UUID | None = None) -> int:
    ended = len(await connection.fetch(_DELETE_SESSIONS_OF_STAFF, staff_id, but))
    if not ended:
        await wait_for_standby(connection)
    return ended


async def delete_old_sessions(connection: Connection, times: SessionTimes) -> None:
    """Delete a few; every login does so."""
    await connection.execute(_DELETE_OLD_SESSIONS, times.absolute)


async def set_notice(connection: Connection, session_id: UUID, notice: str) -> None:
    await connection.execute("update staff_session set notice = $2 where id = $1", session_id, notice)


async def find_setup_link(connection: Connection, token_hash: bytes) -> tuple[UUID | None] | None:
    """Return the id of the member of staff that a link is for; in it None for the first admin."""
    row = await connection.fetchrow(_FIND_SETUP_LINK, token_hash)
    return (row[0],) if row else None


async def replace_setup_link(
    connection: Connection, token_hash: bytes, staff_id: UUID | None, hours: int
) -> None:
    await delete_setup_link(connection, staff_id)
    await connection.execute(_INSERT_SETUP_LINK, token_hash, staff_id, hours)


async def delete_setup_link(connection: Connection, staff_id: UUID | None) -> None:
    await connection.execute("delete from setup_link where staff_id is not distinct from $1", staff_id)


async def use_setup_link(connection: Connection, token_hash: bytes) -> bool:
    return bool(await connection.fetch(_USE_SETUP_LINK, token_hash))


async def lock_attempts(connection: Connection, subject: bytes) -> tuple[Attempts, datetime]:
    """Lock the counts of a subject, which are inserted if there are none; return them and the time."""
    while True:
        if row := await connection.fetchrow(_LOCK_ATTEMPTS, subject):
            *counts, now = row
            return Attempts(*counts), now
        await connection.execute(_INSERT_ATTEMPTS, subject)


async def update_attempts(connection: Connection, subject: bytes, attempts: Attempts) -> None:
    await connection.execute(_UPDATE_ATTEMPTS, subject, *attempts)


async def uncount_attempt(connection: Connection, subjects: Sequence[bytes]) -> None:
    """Take one attempt back, in the order in which the subjects were counted."""
    await connection.executemany(_UNCOUNT_ATTEMPT, [(subject,) for subject in subjects])


async def delete_attempts(connection: Connection, subject: bytes) -> None:
    await connection.execute("delete from sign_in_attempts where subject = $1", subject)


async def delete_old_attempts(connection: Connection, age: timedelta) -> None:
    """Delete a few; every counted attempt does so."""
    await connection.execute(_DELETE_OLD_ATTEMPTS, age)
