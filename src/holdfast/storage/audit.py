"""The audit trail: written with each change, read by unit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.domain.audit import Author, Change, Entry
from holdfast.domain.spelling import camel_case, moment_text
from holdfast.storage.database import Connection

_COLUMNS = (
    "subject_id, project_id, at, actor_kind, actor_id, request_id, action, booking_reference, before, after"
)
_ENCODER = msgspec.json.Encoder(decimal_format="number")

_INSERT = f"insert into audit_entry ({_COLUMNS}) select * from unnest($1::audit_write[])"

_HISTORY = f"""
    select audit_entry.id, {_COLUMNS.replace("subject_id, project_id, ", "")}, api_key.name
    from audit_entry
    left join api_key on audit_entry.actor_kind = 'key' and api_key.id::text = audit_entry.actor_id
    where subject_id = $1 and audit_entry.id < $2
    order by audit_entry.id desc limit $3
"""


class Recorded(NamedTuple):
    """An entry as it is read; before and after are JSON."""

    id: int
    at: datetime
    actor_kind: str
    actor_id: str | None
    request_id: str | None
    action: str
    booking_reference: str | None
    before: str | None
    after: str
    key_name: str | None


def insert_statement(argument: int, stored: str) -> str:
    """For the statement that stores the units: the entries of those units that it did store."""
    return f"""
        insert into audit_entry ({_COLUMNS})
        select {_COLUMNS}
        from unnest(${argument}::audit_write[]) with ordinality as written ({_COLUMNS}, place)
        where written.subject_id in ({stored})
        order by place
    """


def row_for(entry: Entry) -> tuple[Any, ...]:
    """The value of the database's type ``audit_write``."""
    before, after = entry.change
    return (
        entry.subject_id,
        entry.project_id,
        entry.at,
        *entry.author,
        entry.action,
        entry.booking_reference,
        None if before is None else _json(before),
        _json(after),
    )


async def now(connection: Connection) -> datetime:
    moment: datetime = await connection.fetchval("select clock_timestamp()::timestamptz(3)")
    return moment


async def insert(connection: Connection, entry: Entry) -> None:
    await connection.execute(_INSERT, [row_for(entry)])


async def insert_about_endpoint(
    connection: Connection, endpoint_id: UUID, author: Author, action: str, change: Change
) -> None:
    at = await now(connection)
    await insert(connection, Entry(endpoint_id, None, at, author, action, None, change))


async def history(connection: Connection, subject_id: UUID, before_id: int, limit: int) -> list[Recorded]:
    """The latest first."""
    return [Recorded(*row) for row in await connection.fetch(_HISTORY, subject_id, before_id, limit)]


def _json(values: Mapping[str, Any]) -> str:
    """In the names of the wire, for it is given out as it stands."""
    named = {
        camel_case(name): moment_text(value) if type(value) is datetime else value
        for name, value in values.items()
    }
    return _ENCODER.encode(named).decode()
