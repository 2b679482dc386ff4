"""The audit trail, the latest entry first."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import ActorKind
from holdfast.storage import audit, projects
from holdfast.storage.audit import SUBJECT_KINDS, StoredEntry, Subject, TrailFilters
from holdfast.storage.database import Connection, Database

MAX_SCANNED = 10_000
"""For one page: a filter that matches nothing must not read years of entries."""

Position = tuple[datetime, int]

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_END: Position = (datetime.max.replace(tzinfo=UTC), 2**63 - 1)

__all__ = ["SUBJECT_KINDS", "AuditFilter", "AuditPage", "StoredEntry", "Subject", "load_page"]


class AuditFilter(NamedTuple):
    project_slug: str | None = None
    actor: str | None = None
    """A kind of actor, or the id of a key, the e-mail address of staff, the reference of a buyer."""
    action: str | None = None
    subject_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""


class AuditPage(NamedTuple):
    entries: list[StoredEntry]
    next_before: Position | None
    """The start of the next page. There may be one after a page with few entries, or with none."""


async def load_page(
    database: Database,
    audit_filter: AuditFilter,
    before: Position | None,
    limit: int,
    slugs: tuple[str, ...] | None = None,
) -> AuditPage:
    """``slugs``: the projects that the caller is limited to, who sees nothing but these."""
    async with database.reading_snapshot() as connection:
        filters = await _find_projects(connection, audit_filter, slugs)
        start = min(before or _END, (audit_filter.until, 0) if audit_filter.until else _END)
        scanned = MAX_SCANNED if filters.is_filtered else limit + 1
        found = await audit.trail_page(connection, start, filters, scanned, limit + 1)
        next_before = None
        if len(found) > limit:
            next_before = found[limit - 1].at, found[limit - 1].id
        elif filters.is_filtered:
            next_before = await audit.find_position(connection, start, filters, MAX_SCANNED)
        entries = found[:limit]
        ids = {one for entry in entries for one in (entry.subject_id, entry.project_id, _key_id(entry))}
        subjects = await audit.subjects(connection, ids)
    return AuditPage([_with_names(entry, subjects) for entry in entries], next_before)


async def _find_projects(
    connection: Connection, audit_filter: AuditFilter, slugs: tuple[str, ...] | None
) -> TrailFilters:
    if audit_filter.project_slug is None:
        project_ids = await projects.find_ids(connection, slugs)
    else:
        project_ids = await projects.require_ids(connection, [audit_filter.project_slug], slugs)
    actor, is_kind = audit_filter.actor, audit_filter.actor in tuple(ActorKind)
    return TrailFilters(
        audit_filter.since or _BEGINNING,
        project_ids,
        actor if is_kind else None,
        None if is_kind else actor,
        audit_filter.action,
        audit_filter.subject_id,
    )


def _key_id(entry: StoredEntry) -> UUID | None:
    if entry.actor_kind == ActorKind.KEY and entry.actor_id is not None:
        with suppress(ValueError):
            return UUID(entry.actor_id)
    return None


def _with_names(entry: StoredEntry, subjects: Mapping[UUID | None, Subject]) -> StoredEntry:
    key, project = subjects.get(_key_id(entry)), subjects.get(entry.project_id)
    return entry._replace(
        key_name=key and key.name,
        subject=subjects.get(entry.subject_id),
        project_slug=project and project.slug,
    )
