"""The audit trail: who did what, to what, the latest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import ActorKind
from holdfast.storage import audit, projects
from holdfast.storage.audit import SUBJECT_KINDS, Subject, TrailEntry, TrailFilters
from holdfast.storage.database import Connection, Database

SCANNED_AT_MOST = 10_000
"""Entries at most for one page: a filter that fits nothing must not read years of them."""

Position = tuple[datetime, int]

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_END: Position = (datetime.max.replace(tzinfo=UTC), 2**63 - 1)

__all__ = ["SUBJECT_KINDS", "Audit", "AuditFilter", "AuditPage", "AuditRecord", "Subject", "TrailEntry"]


class AuditFilter(NamedTuple):
    project_slug: str | None = None
    actor: str | None = None
    """A kind of actor, or the id of a key, the e-mail address of staff, the reference of a buyer."""
    action: str | None = None
    subject_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Which is not in it any more."""


class AuditRecord(NamedTuple):
    entry: TrailEntry
    subject: Subject | None
    actor_name: str | None
    """Of a key."""
    project_slug: str | None


class AuditPage(NamedTuple):
    entries: list[AuditRecord]
    next_before: Position | None
    """Where the next page starts. There may be one after a page with few entries, or with none."""


class Audit:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        audit_filter: AuditFilter,
        before: Position | None,
        limit: int,
        slugs: tuple[str, ...] | None = None,
    ) -> AuditPage:
        """``slugs``: the projects that the caller is limited to, who sees nothing but these."""
        async with self._database.reading_snapshot() as connection:
            filters = await _filters(connection, audit_filter, slugs)
            start = min(before or _END, (audit_filter.until, 0) if audit_filter.until else _END)
            scanned = SCANNED_AT_MOST if filters.is_filtered else limit + 1
            found = await audit.trail_page(connection, start, filters, scanned, limit + 1)
            next_before = await _find_next(connection, start, filters, found, limit)
            known = await audit.subjects(connection, set(_ids(found[:limit])))
        return AuditPage([_audit_record(entry, known) for entry in found[:limit]], next_before)


async def _filters(
    connection: Connection, audit_filter: AuditFilter, slugs: tuple[str, ...] | None
) -> TrailFilters:
    kinds = tuple(ActorKind)
    if audit_filter.project_slug is None:
        project_ids = await projects.find_ids(connection, slugs)
    else:
        project_ids = await projects.require_ids(connection, [audit_filter.project_slug], slugs)
    return TrailFilters(
        audit_filter.since or _BEGINNING,
        project_ids,
        audit_filter.actor if audit_filter.actor in kinds else None,
        None if audit_filter.actor in kinds else audit_filter.actor,
        audit_filter.action,
        audit_filter.subject_id,
    )


async def _find_next(
    connection: Connection, start: Position, filters: TrailFilters, found: list[TrailEntry], limit: int
) -> Position | None:
    if len(found) > limit:
        return found[limit - 1].at, found[limit - 1].id
    return (
        await audit.find_position(connection, start, filters, SCANNED_AT_MOST)
        if filters.is_filtered
        else None
    )


def _ids(entries: Iterable[TrailEntry]) -> Iterable[UUID | None]:
    """Of all that an entry names: what it is about, its project, the key that did it."""
    for entry in entries:
        yield from (entry.subject_id, entry.project_id, _key_id(entry))


def _key_id(entry: TrailEntry) -> UUID | None:
    if entry.actor_kind != ActorKind.KEY or entry.actor_id is None:
        return None
    try:
        return UUID(entry.actor_id)
    except ValueError:
        return None


def _audit_record(entry: TrailEntry, known: Mapping[UUID | None, Subject]) -> AuditRecord:
    actor, project = known.get(_key_id(entry)), known.get(entry.project_id)
    return AuditRecord(
        entry,
        known.get(entry.subject_id),
        None if actor is None else actor.name,
        None if project is None else project.slug,
    )
