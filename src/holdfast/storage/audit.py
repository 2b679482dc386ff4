"""The audit trail: written with each change, read by unit or as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.domain.audit import AuditEntry, Author, Change
from holdfast.domain.wire_format import camel_case, format_timestamp
from holdfast.storage.database import Connection, current_time

_COLUMNS = (
    "subject_id, project_id, at, actor_kind, actor_id, request_id, action, booking_reference, before, after"
)
_ENCODER = msgspec.json.Encoder(decimal_format="number")

_INSERT = f"insert into audit_entry ({_COLUMNS}) select {_COLUMNS} from unnest($1::audit_write[])"

# Part of the statements that store units: insert the entries ($1) of the units that it stored.
INSERT_ENTRIES = f"""
    insert into audit_entry ({_COLUMNS})
    select {_COLUMNS}
    from unnest($1::audit_write[]) with ordinality as written
    where written.subject_id in (select id from stored)
    order by ordinality
"""

_READ_COLUMNS = """
    audit_entry.id, at, subject_id, project_id, actor_kind, actor_id, request_id, action, booking_reference,
    before, after
"""
# The entries about one subject, the latest first, with the name of the key that made them.
_HISTORY = f"""
    select {_READ_COLUMNS}, api_key.name
    from audit_entry
    left join api_key on audit_entry.actor_kind = 'key' and api_key.id::text = audit_entry.actor_id
    where subject_id = $1 and audit_entry.id < $2
    order by audit_entry.id desc limit $3
"""

# The whole trail, the latest first. Materialised, so that at most $4 entries are scanned whatever the planner
# expects of the filters.
_TRAIL_PAGE = f"""
    with scanned as materialized (
        select {_READ_COLUMNS} from audit_entry
        where (at, id) < ($1, $2) and at >= $3 {{subject}}
        order by at desc, id desc limit $4
    )
    select * from scanned
    where ($5::uuid[] is null or project_id = any($5))
        and ($6::text is null or actor_kind = $6) and ($7::text is null or actor_id = $7)
        and ($8::text is null or action = $8)
    order by at desc, id desc limit $9
"""
_TRAIL_OF_ALL = _TRAIL_PAGE.format(subject="")
_TRAIL_OF_SUBJECT = _TRAIL_PAGE.format(subject="and subject_id = $10")
# The time and id of the entry that has a number among those to be scanned.
_POSITION = """
    select at, id from audit_entry
    where (at, id) < ($1, $2) and at >= $3 {subject}
    order by at desc, id desc offset $4 limit 1
"""
# Delete the oldest entries, at most $2, by their places: whatever number the planner expects.
TRIM = """
    delete from audit_entry where ctid = any(array(
        select ctid from audit_entry where at < statement_timestamp() - $1::interval order by at, id limit $2
    ))
"""
_POSITION_OF_ALL = _POSITION.format(subject="")
_POSITION_OF_SUBJECT = _POSITION.format(subject="and subject_id = $5")

SUBJECT_KINDS = ("unit", "project", "endpoint", "key", "staff", "installation")
INSTALLATION_ID = UUID(int=0)
"""The subject of entries about settings of the whole installation."""

# Removed endpoints and revoked keys keep their names.
_SUBJECTS = f"""
    select unit.id, 'unit', code, slug from unit join project on project.id = project_id
        where unit.id = any($1::uuid[])
    union all select id, 'project', name, slug from project where id = any($1)
    union all select id, 'endpoint', url, null from endpoint where id = any($1)
    union all select id, 'key', name, null from api_key where id = any($1)
    union all select id, 'staff', email, null from staff where id = any($1)
    union all select id, 'installation', '', null from (select '{INSTALLATION_ID}'::uuid) as one (id)
        where id = any($1)
"""


class Subject(NamedTuple):
    id: UUID
    kind: str
    name: str
    """The unit's code, the project's name, the endpoint's URL, the key's name, staff's e-mail address.
    Empty for the installation."""
    slug: str | None
    """The project's, of a unit or a project."""


class StoredEntry(NamedTuple):
    """An entry as it is read; before and after are JSON."""

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
    key_name: str | None = None
    """Of the actor, if that is a key."""
    subject: Subject | None = None
    project_slug: str | None = None


def row_for(entry: AuditEntry) -> tuple[Any, ...]:
    """The value of the database's type ``audit_write``."""
    before, after = entry.change
    return (
        entry.subject_id, entry.project_id, entry.at, *entry.author, entry.action, entry.booking_reference,
        None if before is None else _json(before), _json(after),
    )  # fmt: skip


async def insert(connection: Connection, entry: AuditEntry) -> None:
    await connection.execute(_INSERT, [row_for(entry)])


async def record(
    connection: Connection,
    subject_id: UUID,
    author: Author,
    action: str,
    change: Change,
    *,
    project_id: UUID | None = None,
    at: datetime | None = None,
) -> None:
    """Insert an entry about something other than a unit, with the present time if there is no other."""
    at = at or await current_time(connection)
    await insert(connection, AuditEntry(subject_id, project_id, at, author, action, None, change))


async def history(connection: Connection, subject_id: UUID, before_id: int, limit: int) -> list[StoredEntry]:
    """The latest first."""
    return [StoredEntry(*row) for row in await connection.fetch(_HISTORY, subject_id, before_id, limit)]


class TrailFilters(NamedTuple):
    since: datetime
    project_ids: Sequence[UUID] | None = None
    actor_kind: str | None = None
    actor_id: str | None = None
    action: str | None = None
    subject_id: UUID | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether scanned entries are left out."""
        return any(value is not None for value in self[1:5])


async def trail_page(
    connection: Connection, before: tuple[datetime, int], filters: TrailFilters, scanned: int, limit: int
) -> list[StoredEntry]:
    """``scanned``: how many entries at most."""
    since, *conditions, subject_id = filters
    arguments = (*before, since, scanned, *conditions, limit)
    if subject_id is None:
        rows = await connection.fetch(_TRAIL_OF_ALL, *arguments)
    else:
        rows = await connection.fetch(_TRAIL_OF_SUBJECT, *arguments, subject_id)
    return [StoredEntry(*row) for row in rows]


async def find_position(
    connection: Connection, before: tuple[datetime, int], filters: TrailFilters, number: int
) -> tuple[datetime, int] | None:
    """Return the position of the entry with this number among those to be scanned, if there are so many."""
    arguments = (*before, filters.since, number - 1)
    if filters.subject_id is None:
        row = await connection.fetchrow(_POSITION_OF_ALL, *arguments)
    else:
        row = await connection.fetchrow(_POSITION_OF_SUBJECT, *arguments, filters.subject_id)
    return (row[0], row[1]) if row else None


async def subjects(connection: Connection, ids: Collection[UUID | None]) -> dict[UUID | None, Subject]:
    """Return what these ids name; None names nothing."""
    return {row[0]: Subject(*row) for row in await connection.fetch(_SUBJECTS, list(ids))}


def _json(values: Mapping[str, Any]) -> str:
    """Encode with the names of the API, which returns it as it is stored."""
    named = {
        camel_case(name): format_timestamp(value) if type(value) is datetime else value
        for name, value in values.items()
    }
    return _ENCODER.encode(named).decode()
