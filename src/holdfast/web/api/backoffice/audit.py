"""The audit trail."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from msgspec import Meta

from holdfast.domain.audit import ActorKind
from holdfast.domain.errors import UnknownProject
from holdfast.domain.permissions import Permission
from holdfast.operations.audit import SUBJECT_KINDS, AuditFilter, StoredEntry, load_page
from holdfast.web.api import parameters
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.models import ActorDocument, Changes, Cursor, Document, Time, changes
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR
from holdfast.web.request import Request

LONGEST_ACTION = 50

routes = ApiRoutes(PREFIX, "Administration", key_guard(Permission.SEE_AUDIT))


class AuditSubjectDocument(Document):
    """What it was done to."""

    kind: Annotated[str | None, Meta(extra_json_schema={"enum": [*SUBJECT_KINDS, None]})]
    id: Annotated[UUID, "The id of the unit, project, endpoint, key or person."]
    name: Annotated[
        str | None,
        "The unit's code, the project's or key's name, the endpoint's URL, the e-mail "
        "address of staff; null if it no longer exists.",
    ]


class AuditEntryDocument(Document):
    """Who did what, to what."""

    at: Time
    actor: ActorDocument
    action: Annotated[str, "Such as `close-sale`."]
    subject: AuditSubjectDocument
    project_slug: Annotated[str | None, "The project that the subject belongs to; null if it has none."]
    booking_reference: Annotated[str | None, "The booking that it belongs to; null if it has none."]
    before: Annotated[Changes | None, "Changed fields before the change; null if the subject was created."]
    after: Annotated[Changes, "Changed fields after the change."]
    request_id: Annotated[str | None, "The `X-Request-Id` of the request that did it."]


class AuditTrailDocument(Document):
    entries: list[AuditEntryDocument]
    next_cursor: Cursor


@routes.get("/audit", summary="Read the audit trail", errors=(UnknownProject,))
async def list_audit_entries(
    request: Request,
    *,
    project: parameters.ProjectFilter,
    actor: Annotated[
        str | None,
        parameters.text_parameter(
            "Only entries of one actor: the id of a key, the e-mail address of staff, the reference of a "
            f"buyer's booking; or of one kind: {', '.join(f'`{kind}`' for kind in ActorKind)}."
        ),
    ],
    action: Annotated[
        str | None,
        parameters.text_parameter("Only entries of this action, such as `close-sale`.", LONGEST_ACTION),
    ],
    subject: Annotated[
        UUID | None,
        parameters.id_parameter(
            "Only entries about the unit, project, endpoint, key or person with this id."
        ),
    ],
    since: Annotated[
        datetime | None,
        parameters.time_parameter("Only entries of this time or later. UTC without an offset."),
    ],
    until: Annotated[datetime | None, parameters.time_parameter("Only entries before this time.")],
    cursor: parameters.TimeAndNumberCursor,
    limit: parameters.Limit,
) -> AuditTrailDocument:
    """Everything done by staff, keys, buyers, payment systems, commands and the clock. Latest first. Filters
    are combined.

    Each page reads a limited number of entries, so a page may have few entries or none and still a
    `nextCursor`: follow it until it is null."""
    audit_filter = AuditFilter(project, actor, action, subject, since, until)
    page = await load_page(request.services.database, audit_filter, cursor, limit, request.key.project_slugs)
    next_cursor = TIME_AND_NUMBER_CURSOR.encode(page.next_before) if page.next_before else None
    return AuditTrailDocument([_entry_document(entry) for entry in page.entries], next_cursor)


def _entry_document(entry: StoredEntry) -> AuditEntryDocument:
    subject = entry.subject
    return AuditEntryDocument.fill(
        entry,
        actor=ActorDocument(ActorKind(entry.actor_kind), entry.actor_id, entry.key_name),
        subject=AuditSubjectDocument(
            None if subject is None else subject.kind,
            entry.subject_id,
            None if subject is None else subject.name,
        ),
        before=changes(entry.before),
        after=changes(entry.after),
    )
