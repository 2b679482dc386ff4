"""The audit trail: written with each change, read by unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.domain.audit import AuditEntry, Author, Change
from holdfast.domain.spelling import camel_case, format_timestamp
from holdfast.storage.database import Connection

_COLUMNS = (
    "subject_id, project_id, at, actor_kind, actor_id, request_id, action, booking_reference, before, after"
)
_ENCODER = msgspec.json.Encoder(decimal_format="number")

_INSERT = f"insert into audit_entry ({_COLUMNS}) select * from unnest($1::audit_write[])"

# Part of the statements that store units: insert the entries ($1) of the units that it stored.
INSERT_ENTRIES = f"""
    insert into audit_entry ({_COLUMNS})
    select {_COLUMNS}
    from unnest($1::audit_write[]) with ordinality as written ({_COLUMNS}, place)
    where written.subject_id in (select id from stored)
    order by place
"""

_HISTORY = f"""
    select audit_entry.id, {_COLUMNS.replace("subject_id, project_id, ", "")}, api_key.name
    from audit_entry
    left join api_key on audit_entry.actor_kind = 'key' and api_key.id::text = audit_entry.actor_id
    where subject_id = $1 and audit_entry.id < $2
    order by audit_entry.id desc limit $3
"""


class HistoryEntry(NamedTuple):
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


def row_for(entry: AuditEntry) -> tuple[Any, ...]:
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


async def current_time(connection: Connection) -> datetime:
    moment: datetime = await connection.fetchval("select clock_timestamp()::timestamptz(3)")
    return moment


async def insert(connection: Connection, entry: AuditEntry) -> None:
    await connection.execute(_INSERT, [row_for(entry)])


async def insert_about_endpoint(
    connection: Connection, endpoint_id: UUID, author: Author, action: str, change: Change
) -> None:
    at = await current_time(connection)
    await insert(connection, AuditEntry(endpoint_id, None, at, author, action, None, change))


async def history(connection: Connection, subject_id: UUID, before_id: int, limit: int) -> list[HistoryEntry]:
    """The latest first."""
    return [HistoryEntry(*row) for row in await connection.fetch(_HISTORY, subject_id, before_id, limit)]


def _json(values: Mapping[str, Any]) -> str:
    """In the names of the wire, for it is given out as it stands."""
    named = {
        camel_case(name): format_timestamp(value) if type(value) is datetime else value
        for name, value in values.items()
    }
    return _ENCODER.encode(named).decode()


# The audit trail as a whole, the latest first; and what its entries are about.

_TRAIL_COLUMNS = """
    id, at, subject_id, project_id, actor_kind, actor_id, request_id, action, booking_reference,
    before, after
"""

# Materialised, so that no more is looked at than was said, whatever the planner thinks of the filters.
_TRAIL_PAGE = f"""
    with scanned as materialized (
        select {_TRAIL_COLUMNS} from audit_entry
        where (at, id) < ($1, $2) and at >= $3 {{more}}
        order by at desc, id desc limit $4
    )
    select {_TRAIL_COLUMNS} from scanned
    where ($5::uuid[] is null or project_id = any($5))
        and ($6::text is null or actor_kind = $6) and ($7::text is null or actor_id = $7)
        and ($8::text is null or action = $8)
    order by at desc, id desc limit $9
"""
_OF_ALL = _TRAIL_PAGE.format(more="")
_OF_SUBJECT = _TRAIL_PAGE.format(more="and subject_id = $10")
_PLACE = """
    select at, id from audit_entry
    where (at, id) < ($1, $2) and at >= $3 {more}
    order by at desc, id desc offset $4 limit 1
"""
_PLACE_OF_ALL = _PLACE.format(more="")
_PLACE_OF_SUBJECT = _PLACE.format(more="and subject_id = $5")

SUBJECT_KINDS = ("unit", "project", "endpoint", "key", "staff")

# Removed endpoints and revoked keys keep their names.
_SUBJECTS = """
    select unit.id, 'unit', code, slug from unit join project on project.id = project_id
        where unit.id = any($1::uuid[])
    union all select id, 'project', name, slug from project where id = any($1)
    union all select id, 'endpoint', url, null from endpoint where id = any($1)
    union all select id, 'key', name, null from api_key where id = any($1)
    union all select id, 'staff', email, null from staff where id = any($1)
"""


class TrailEntry(NamedTuple):
    """As it is stored; before and after are JSON."""

    id: int
    at: datetime
    subject_id: UUID
    project_id: UUID | None
    actor_kind: str
    actor_id: str | None
    request_id: str | None
    action: str
    booking_reference: str | None
    before: str | None
    after: str


class Subject(NamedTuple):
    id: UUID
    kind: str
    name: str
    """The unit's code, the project's name, the endpoint's URL, the key's name, staff's e-mail address."""
    slug: str | None
    """The project's, of a unit or a project."""


class TrailFilters(NamedTuple):
    since: datetime
    project_ids: Sequence[UUID] | None = None
    actor_kind: str | None = None
    actor_id: str | None = None
    action: str | None = None
    subject_id: UUID | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether entries are looked at and left out."""
        return any(value is not None for value in self[1:5])


async def trail_page(
    connection: Connection, before: tuple[datetime, int], filters: TrailFilters, scanned: int, limit: int
) -> list[TrailEntry]:
    """``scanned``: how many entries at most."""
    since, *conditions, subject_id = filters
    arguments = (*before, since, scanned, *conditions, limit)
    if subject_id is None:
        rows = await connection.fetch(_OF_ALL, *arguments)
    else:
        rows = await connection.fetch(_OF_SUBJECT, *arguments, subject_id)
    return [TrailEntry(*row) for row in rows]


async def find_position(
    connection: Connection, before: tuple[datetime, int], filters: TrailFilters, number: int
) -> tuple[datetime, int] | None:
    """Of the entry with this number among those to be looked at, if there are so many."""
    arguments = (*before, filters.since, number - 1)
    if filters.subject_id is None:
        row = await connection.fetchrow(_PLACE_OF_ALL, *arguments)
    else:
        row = await connection.fetchrow(_PLACE_OF_SUBJECT, *arguments, filters.subject_id)
    return (row[0], row[1]) if row else None


async def subjects(connection: Connection, ids: Collection[UUID | None]) -> dict[UUID | None, Subject]:
    """Whatever has one of the ids; None has nothing."""
    return {row[0]: Subject(*row) for row in await connection.fetch(_SUBJECTS, list(ids))}
