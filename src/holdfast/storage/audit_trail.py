"""The audit trail as a whole, the latest first; and what its entries are about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.storage.database import Connection

_COLUMNS = """
    id, at, subject_id, project_id, actor_kind, actor_id, request_id, action, booking_reference,
    before, after
"""

# Materialised, so that no more is looked at than was said, whatever the planner thinks of the filters.
_PAGE = f"""
    with looked_at as materialized (
        select {_COLUMNS} from audit_entry
        where (at, id) < ($1, $2) and at >= $3 {{more}}
        order by at desc, id desc limit $4
    )
    select {_COLUMNS} from looked_at
    where ($5::uuid[] is null or project_id = any($5))
        and ($6::text is null or actor_kind = $6) and ($7::text is null or actor_id = $7)
        and ($8::text is null or action = $8)
    order by at desc, id desc limit $9
"""
_OF_ALL = _PAGE.format(more="")
_OF_SUBJECT = _PAGE.format(more="and subject_id = $10")
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
    def sift(self) -> bool:
        """Whether entries are looked at and left out."""
        return any(value is not None for value in self[1:5])


async def page(
    connection: Connection, before: tuple[datetime, int], filters: TrailFilters, looked_at: int, limit: int
) -> list[TrailEntry]:
    """``looked_at``: how many entries at most."""
    since, *sieve, subject_id = filters
    arguments = (*before, since, looked_at, *sieve, limit)
    if subject_id is None:
        rows = await connection.fetch(_OF_ALL, *arguments)
    else:
        rows = await connection.fetch(_OF_SUBJECT, *arguments, subject_id)
    return [TrailEntry(*row) for row in rows]


async def place_of(
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
