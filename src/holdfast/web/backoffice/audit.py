"""The audit trail."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.domain.permissions import Permission
from holdfast.domain.refusals import Fault
from holdfast.operations.auditing import Auditing, Noted, Subject, TrailWishes
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults
from holdfast.web.cursors import moment_cursor_text
from holdfast.web.queries import Query
from holdfast.web.routing import Doors, Place, behind, guarded
from holdfast.web.wire import time_text

LONGEST_ACTION = 50


class AuditRoutes:
    def __init__(self, auditing: Auditing) -> None:
        self._auditing = auditing

    async def list(self, call: Call) -> JsonAnswer:
        """The latest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        wishes = TrailWishes(
            query.slug("project"),
            query.text("actor"),
            query.text("action", LONGEST_ACTION),
            query.id("subject"),
            query.time("since"),
            query.time("until"),
        )
        before, limit = query.moment_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._auditing.page(wishes, before, limit, call.key.project_slugs)
        document = {
            "entries": [noted_document(noted) for noted in page.entries],
            "nextCursor": moment_cursor_text(*page.goes_on_before) if page.goes_on_before else None,
        }
        return JsonAnswer(document)


def audit_places(prefix: str, auditing: Auditing, doors: Doors) -> list[Place]:
    see = behind(doors, Permission.SEE_AUDIT)
    return [guarded(prefix + "/audit", GET=see(AuditRoutes(auditing).list))]


def noted_document(noted: Noted) -> dict[str, Any]:
    entry = noted.entry
    return {
        "at": time_text(entry.at),
        "actor": {"kind": entry.actor_kind, "id": entry.actor_id, "name": noted.actor_name},
        "action": entry.action,
        "subject": _subject_document(noted.subject, str(entry.subject_id)),
        "projectSlug": noted.project_slug,
        "bookingReference": entry.booking_reference,
        "before": None if entry.before is None else msgspec.Raw(entry.before.encode()),
        "after": msgspec.Raw(entry.after.encode()),
        "requestId": entry.request_id,
    }


def _subject_document(subject: Subject | None, own_id: str) -> dict[str, str | None]:
    if subject is None:
        return {"kind": None, "id": own_id, "name": None}
    return {"kind": subject.kind, "id": own_id, "name": subject.name}
