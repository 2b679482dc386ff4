"""Set-up links: a hash of what they end with, and whom they are for."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from holdfast.storage.database import Connection

_FIND = "select staff_id from setup_link where token_hash = $1 and expires_at > clock_timestamp()"
_INSERT = """
    insert into setup_link (token_hash, staff_id, expires_at)
    values ($1, $2, clock_timestamp() + make_interval(hours => $3))
"""
_DROP = "delete from setup_link where staff_id is not distinct from $1"
_USE_UP = """
    delete from setup_link where token_hash = $1 and expires_at > clock_timestamp() returning token_hash
"""


class SetupLink(NamedTuple):
    staff_id: UUID | None
    """None: for the first admin."""


async def find(connection: Connection, token_hash: bytes) -> SetupLink | None:
    row = await connection.fetchrow(_FIND, token_hash)
    return SetupLink(row["staff_id"]) if row else None


async def replace(connection: Connection, token_hash: bytes, staff_id: UUID | None, hours: int) -> None:
    await drop(connection, staff_id)
    await connection.execute(_INSERT, token_hash, staff_id, hours)


async def drop(connection: Connection, staff_id: UUID | None) -> None:
    await connection.execute(_DROP, staff_id)


async def use_up(connection: Connection, token_hash: bytes) -> bool:
    return bool(await connection.fetch(_USE_UP, token_hash))
