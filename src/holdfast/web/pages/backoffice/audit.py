"""The audit trail: what was changed, by whom, and what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response

from holdfast.domain.audit import ActorKind
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project, slug_fault
from holdfast.domain.status import Action
from holdfast.operations.audit import AuditFilter, AuditPage, AuditRecord, Subject
from holdfast.operations.units import HistoryEntry
from holdfast.web.api.backoffice.audit import LONGEST_ACTION
from holdfast.web.api.parameters import LONGEST_TEXT, parse_id
from holdfast.web.fields import parse_time
from holdfast.web.pages.backoffice.base import (
    PREFIX,
    PROJECTS_OFFERED,
    StaffRequest,
    list_projects,
    page_links,
    parse_cursor,
    unit_path,
    with_query,
)
from holdfast.web.pages.routes import Pages
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
}
_LONGEST_VALUE = 280
_TIMES = frozenset(
    {"holdExpiresAt", "reservedUntil", "expiresAt", "revokedAt", "disabledAt", "since", "until"}
)

pages = Pages(StaffRequest)


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
    projects = await list_projects(request)
    filters = _parse_filters(request, projects)
    before = parse_cursor(request, TIME_AND_NUMBER_CURSOR)
    page = await request.services.audit.page(_audit_filter(request, filters), before, ENTRIES_A_PAGE)
    return await request.render(
        "audit.html",
        filters=filters,
        projects=projects,
        kinds=tuple(ActorKind),
        audited_actions=ACTIONS,
        lines=[_describe_entry(record, request) for record in page.entries],
        searched_back_to=_searched_back_to(page),
        **page_links(
            request,
            filters.address(),
            page.next_before and TIME_AND_NUMBER_CURSOR.encode(page.next_before),
        ),
    )


def _searched_back_to(page: AuditPage) -> datetime | None:
    """Return where the search was given up though there was room for more on the page."""
    if page.next_before is None or len(page.entries) >= ENTRIES_A_PAGE:
        return None
    return page.next_before[0]


def _parse_filters(request: StaffRequest, projects: list[Project]) -> Filters:
    sent = Filters(*(request.query.text(name) for name in Filters._fields))
    subject = parse_id(sent.subject)
    return Filters(
        project=sent.project if _is_offered(sent.project, projects) else "",
        by=sent.by if sent.by in tuple(ActorKind) else "",
        actor=sent.actor if len(sent.actor) <= LONGEST_TEXT else "",
        action=sent.action if len(sent.action) <= LONGEST_ACTION else "",
        subject="" if subject is None else str(subject),
        since=sent.since if _parse_time(request, sent.since) else "",
        until=sent.until if _parse_time(request, sent.until) else "",
    )


def _is_offered(slug: str, projects: list[Project]) -> bool:
    """Return whether the filter may name the project; any may be named where there are too many to list."""
    too_many = len(projects) > PROJECTS_OFFERED
    return slug_fault(slug) is None and (too_many or any(project.slug == slug for project in projects))


def _audit_filter(request: StaffRequest, filters: Filters) -> AuditFilter:
    return AuditFilter(
        project_slug=filters.project or None,
        actor=filters.actor or filters.by or None,
        action=filters.action or None,
        subject_id=UUID(filters.subject) if filters.subject else None,
        since=_parse_time(request, filters.since),
        until=_parse_time(request, filters.until),
    )


def _parse_time(request: StaffRequest, text: str) -> datetime | None:
    """Return a time in the time zone of the pages; years that overflow elsewhere are no times."""
    try:
        return request.language.at(text) if 1970 <= int(text[:4]) <= 9000 else None
    except (ValueError, OverflowError):
        return None


class Difference(NamedTuple):
    name: str
    before: Any
    after: Any


class AuditLine(NamedTuple):
    at: datetime
    actor_kind: str
    actor_id: str | None
    actor: str | None
    """The name that people know."""
    action: str
    subject_id: str
    kind: str | None
    name: str | None
    page: str | None
    """The path of the subject's page, if this person may open it."""
    project_slug: str | None
    booking_reference: str | None
    is_first: bool
    """Whether nothing was there before it."""
    differences: Sequence[Difference]
    request_id: str | None


class HistoryLine(NamedTuple):
    at: datetime
    actor_kind: str
    actor: str | None
    """The address of staff, the name of a key, the reference of the buyer's booking."""
    action: str
    booking_reference: str | None
    is_first: bool
    differences: Sequence[Difference]
    request_id: str | None


def describe_history(entry: HistoryEntry) -> HistoryLine:
    """Return an entry of a unit's history as its page shows it."""
    before = None if entry.before is None else _parse_values(entry.before)
    return HistoryLine(
        entry.at,
        entry.actor_kind,
        entry.key_name or entry.actor_id,
        entry.action,
        entry.booking_reference,
        before is None,
        _differences(before or {}, _parse_values(entry.after)),
        entry.request_id,
    )


def _describe_entry(record: AuditRecord, request: StaffRequest) -> AuditLine:
    entry, subject = record.entry, record.subject
    before, after = None if entry.before is None else _parse_values(entry.before), _parse_values(entry.after)
    if before is None:
        after = _initial_values(after, subject)
    return AuditLine(
        at=entry.at,
        actor_kind=entry.actor_kind,
        actor_id=entry.actor_id,
        actor=record.actor_name or entry.actor_id,
        action=entry.action,
        subject_id=str(entry.subject_id),
        kind=None if subject is None else subject.kind,
        name=None if subject is None else subject.name,
        page=None if subject is None else _subject_page(subject, request),
        project_slug=record.project_slug,
        booking_reference=entry.booking_reference,
        is_first=before is None,
        differences=_differences(before or {}, after),
        request_id=entry.request_id,
    )


def _subject_page(subject: Subject, request: StaffRequest) -> str | None:
    if subject.kind == "unit":
        assert subject.slug is not None
        return unit_path(subject.slug, subject.name)
    permission, path = _SUBJECT_PAGES[subject.kind]
    name = subject.slug if subject.kind == "project" else subject.id
    return path.format(name) if request.may(permission) else None


def _initial_values(values: dict[str, Any], subject: Subject | None) -> dict[str, Any]:
    """Leave out the name, which stands above, and what is empty."""
    name = None if subject is None else subject.name
    return {
        key: value
        for key, value in values.items()
        if (key, value) != ("name", name) and (value not in (None, "", []) or key in _SHOWN_IF_EMPTY)
    }


def _parse_values(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return values


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return the values that differ. Long texts are compared whole, and shortened after that."""
    return [
        Difference(name, _readable(name, before.get(name)), _readable(name, after.get(name)))
        for name in dict.fromkeys([*before, *after])
        if name not in before or name not in after or before[name] != after[name]
    ]


def _readable(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, str):
        return parse_time(value)
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return value[:_LONGEST_VALUE] + "…"
    return value
