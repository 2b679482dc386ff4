"""Sessions of staff: a hash of the token, never the token. Those that have ended are deleted."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.staff import OpenSession, SessionTimes, Staff
from holdfast.storage.database import Connection
from holdfast.storage.staff import COLUMNS, staff_of

_LIVE = """
    staff_session.last_seen_at > clock_timestamp() - {idle}::interval
    and staff_session.created_at > clock_timestamp() - {absolute}::interval
"""
_INSERT = """
    insert into staff_session (id, token_hash, staff_id, address, agent) values ($1, $2, $3, $4, $5)
"""
# Who is there is written down once a minute, and more often only where a minute is long.
_FIND = f"""
    with found as (
        select staff_session.id as session_id, staff_session.notice, staff_session.last_seen_at, {COLUMNS}
        from staff_session join staff on staff.id = staff_session.staff_id
        where staff_session.token_hash = $1 and staff.disabled_at is null
            and {_LIVE.format(idle="$2", absolute="$3")}
    ), noted as (
        update staff_session
        set last_seen_at = case when $5 then clock_timestamp() else staff_session.last_seen_at end,
            notice = case when $4 then null else staff_session.notice end
        from found
        where staff_session.id = found.session_id and (
            ($4 and found.notice is not null)
            or $5 and found.last_seen_at < clock_timestamp() - least(interval '1 minute', $2::interval / 8)
        )
    )
    select *, clock_timestamp()::timestamptz(3) as at from found
"""
_OF_STAFF = f"""
    select id, address, agent, created_at, last_seen_at from staff_session
    where staff_id = $1 and {_LIVE.format(idle="$2", absolute="$3")}
    order by last_seen_at desc, id limit $4
"""
_END = "delete from staff_session where token_hash = $1"
_END_OF_STAFF = """
    delete from staff_session where staff_id = $1 and id is distinct from $2 returning id
"""
_END_OLD = """
    delete from staff_session where id in (
        select id from staff_session where created_at < clock_timestamp() - $1::interval
        order by created_at limit 100 for update skip locked
    )
"""
_LEAVE_NOTICE = "update staff_session set notice = $2 where id = $1"

_SHOWN = 100


class FoundSession(NamedTuple):
    staff: Staff
    session_id: UUID
    notice: str | None
    at: datetime


async def insert(
    connection: Connection, session_id: UUID, token_hash: bytes, staff_id: UUID, address: str, agent: str
) -> None:
    await connection.execute(_INSERT, session_id, token_hash, staff_id, address, agent)


async def find(
    connection: Connection, token_hash: bytes, times: SessionTimes, takes_notice: bool, is_click: bool
) -> FoundSession | None:
    row = await connection.fetchrow(_FIND, token_hash, times.idle, times.absolute, takes_notice, is_click)
    return FoundSession(staff_of(row), row["session_id"], row["notice"], row["at"]) if row else None


async def of_staff(connection: Connection, staff_id: UUID, times: SessionTimes) -> list[OpenSession]:
    """The one last used first."""
    rows = await connection.fetch(_OF_STAFF, staff_id, times.idle, times.absolute, _SHOWN)
    return [OpenSession(*row) for row in rows]


async def end(connection: Connection, token_hash: bytes) -> None:
    await connection.execute(_END, token_hash)


async def end_of_staff(connection: Connection, staff_id: UUID, but: UUID | None = None) -> int:
    return len(await connection.fetch(_END_OF_STAFF, staff_id, but))


async def end_old(connection: Connection, times: SessionTimes) -> None:
    """A few; whoever signs in takes some along."""
    await connection.execute(_END_OLD, times.absolute)


async def leave_notice(connection: Connection, session_id: UUID, notice: str) -> None:
    await connection.execute(_LEAVE_NOTICE, session_id, notice)
