"""The audit trail: each change, its author, and the values that differ."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response

from holdfast.domain.audit import ActorKind
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project
from holdfast.domain.transitions import Action
from holdfast.operations.audit import AuditFilter, StoredEntry, Subject, load_page
from holdfast.web.api.backoffice.audit import LONGEST_ACTION
from holdfast.web.api.parameters import LONGEST_TEXT, parse_id
from holdfast.web.fields import parse_time
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, unit_path, with_query
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR

AUDIT = f"{PREFIX}/audit"
ENTRIES_A_PAGE = 50

# In the order in which they are offered.
ACTIONS = (
    "create", "change", *Action, "sign", "mark-refunded", "reissue-link", "erase-buyer",
    "settle", "arrange",
    "rotate-secret", "ping", "remove", "resend", "recover",
    "revoke",
    "set-up", "reset", "change-password", "set-second-factor", "remove-second-factor",
)  # fmt: skip

_SHOWN_IF_EMPTY = ("projects", "projectSlugs")
"""An empty value of these means all projects."""
_SUBJECT_PAGES = {
    "project": (Permission.SEE_UNITS, f"{PREFIX}/projects/{{}}/settings"),
    "endpoint": (Permission.SEE_WEBHOOKS, f"{PREFIX}/settings/api/webhooks/{{}}"),
    "key": (Permission.MANAGE_KEYS, f"{PREFIX}/settings/api/keys"),
    "staff": (Permission.ADMINISTER, f"{PREFIX}/staff/{{}}"),
    "installation": (Permission.SEE_UNITS, f"{PREFIX}/settings/seller"),
}
_LONGEST_VALUE = 280
_TIMES = ("holdExpiresAt", "reservedUntil", "expiresAt", "revokedAt", "disabledAt", "since", "until")


class Filters(NamedTuple):
    """The filters of the query, as text; one that makes no sense is empty."""

    project: str = ""
    by: str = ""
    """A kind of actor."""
    actor: str = ""
    """One of them."""
    action: str = ""
    subject: str = ""
    since: str = ""
    until: str = ""

    def address(self) -> str:
        return with_query(AUDIT, **self._asdict())

    @property
    def is_on(self) -> bool:
        return any(self)


@pages.get("/audit", Permission.SEE_AUDIT)
async def show_audit(request: StaffRequest) -> Response:
    projects = await request.list_projects()
    filters = _parse_filters(request, projects)
    audit_filter = AuditFilter(
        project_slug=filters.project or None,
        actor=filters.actor or filters.by or None,
        action=filters.action or None,
        subject_id=UUID(filters.subject) if filters.subject else None,
        since=request.parse_local_time(filters.since),
        until=request.parse_local_time(filters.until),
    )
    before = request.parse_cursor(TIME_AND_NUMBER_CURSOR)
    page = await load_page(request.services.database, audit_filter, before, ENTRIES_A_PAGE)
    next_before = page.next_before
    # The search was given up though there was room for more on the page.
    was_stopped = next_before is not None and len(page.entries) < ENTRIES_A_PAGE
    return await request.render(
        "audit.html",
        filters=filters,
        projects=projects,
        kinds=tuple(ActorKind),
        audited_actions=ACTIONS,
        entries=page.entries,
        list_differences=_list_audited_differences,
        subject_path=partial(_subject_path, request),
        searched_back_to=next_before[0] if next_before and was_stopped else None,
        **request.page_links(filters.address(), next_before and TIME_AND_NUMBER_CURSOR.encode(next_before)),
    )


def _parse_filters(request: StaffRequest, projects: list[Project]) -> Filters:
    sent = Filters(*(request.query.text(name) for name in Filters._fields))
    return Filters(
        project=request.parse_project(projects),
        by=sent.by if sent.by in tuple(ActorKind) else "",
        actor=sent.actor if len(sent.actor) <= LONGEST_TEXT else "",
        action=sent.action if len(sent.action) <= LONGEST_ACTION else "",
        subject=str(parse_id(sent.subject) or ""),
        since=sent.since if request.parse_local_time(sent.since) else "",
        until=sent.until if request.parse_local_time(sent.until) else "",
    )


def _subject_path(request: StaffRequest, subject: Subject) -> str | None:
    """Return the path of the subject's page, if this person may open it."""
    if subject.kind == "unit":
        assert subject.slug is not None
        return unit_path(subject.slug, subject.name)
    permission, path = _SUBJECT_PAGES[subject.kind]
    name = subject.slug if subject.kind == "project" else subject.id
    return path.format(name) if request.may(permission) else None


class Difference(NamedTuple):
    name: str
    before: Any
    after: Any


def list_differences(entry: StoredEntry) -> list[Difference]:
    """Return the values that differ. Long texts are compared whole, and shortened after that."""
    before = json.loads(entry.before or "{}", parse_float=Decimal)
    after = json.loads(entry.after, parse_float=Decimal)
    return [
        Difference(name, _readable(name, before.get(name)), _readable(name, after.get(name)))
        for name in dict.fromkeys([*before, *after])
        if name not in before or name not in after or before[name] != after[name]
    ]


def _list_audited_differences(entry: StoredEntry) -> list[Difference]:
    """Of something new, leave out the name, which stands above, and what is empty."""
    differences = list_differences(entry)
    if entry.before is not None:
        return differences
    name = ("name", entry.subject.name if entry.subject else None)
    return [
        one
        for one in differences
        if (one.name, one.after) != name and (one.after not in (None, "", []) or one.name in _SHOWN_IF_EMPTY)
    ]


def _readable(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, str):
        return parse_time(value)
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return value[:_LONGEST_VALUE] + "…"
    return value
