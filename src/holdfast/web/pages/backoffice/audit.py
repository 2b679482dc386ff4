"""Entries of the audit trail, read for people: what each is about, where that is, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.audit import ActorKind
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project, slug_fault
from holdfast.domain.status import Action
from holdfast.operations.audit import Audit, AuditFilter, AuditPage, AuditRecord, Subject
from holdfast.operations.units import Units
from holdfast.web.api.backoffice.audit import LONGEST_ACTION
from holdfast.web.api.parameters import LONGEST_TEXT, parse_id
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.backoffice.history import Difference, between, values_of
from holdfast.web.pages.backoffice.sale_views import status_word
from holdfast.web.pagination import TIME_AND_NUMBER_CURSOR

# In the order in which they are offered.
ACTIONS = (
    "create", "change", *Action, "sign", "mark-refunded", "reissue-link", "erase-buyer",
    "settle", "arrange",
    "rotate-secret", "ping", "remove", "resend", "recover",
    "revoke",
    "set-up", "reset", "change-password", "set-second-factor", "remove-second-factor",
)  # fmt: skip

_ALL_IF_NONE = ("projects", "projectSlugs")
_PAGES = {
    "project": (Permission.SEE_UNITS, f"{PREFIX}/projects/{{}}/settings"),
    "endpoint": (Permission.SEE_WEBHOOKS, f"{PREFIX}/settings/api/webhooks/{{}}"),
    "key": (Permission.MANAGE_KEYS, f"{PREFIX}/settings/api/keys"),
    "staff": (Permission.ADMINISTER, f"{PREFIX}/staff/{{}}"),
}


class AuditLine(NamedTuple):
    at: datetime
    actor_kind: str
    actor_id: str | None
    actor: str | None
    """By the name that people know."""
    action: str
    subject_id: str
    kind: str | None
    name: str | None
    page: str | None
    """Where the subject is to be seen, by this person."""
    project_slug: str | None
    booking_reference: str | None
    is_first: bool
    """Nothing was there before it."""
    differences: Sequence[Difference]
    request_id: str | None


def line_of(noted: AuditRecord, visit: Visit) -> AuditLine:
    entry, subject = noted.entry, noted.subject
    before = None if entry.before is None else values_of(entry.before)
    after = values_of(entry.after) if before is not None else _first(values_of(entry.after), subject)
    return AuditLine(
        at=entry.at,
        actor_kind=entry.actor_kind,
        actor_id=entry.actor_id,
        actor=noted.actor_name or entry.actor_id,
        action=entry.action,
        subject_id=str(entry.subject_id),
        kind=None if subject is None else subject.kind,
        name=None if subject is None else subject.name,
        page=None if subject is None else page_of(subject, visit),
        project_slug=noted.project_slug,
        booking_reference=entry.booking_reference,
        is_first=before is None,
        differences=between(before or {}, after),
        request_id=entry.request_id,
    )


def page_of(subject: Subject, visit: Visit) -> str | None:
    if subject.kind == "unit":
        return f"{PREFIX}/projects/{subject.slug}/units/{quote(subject.name, safe='')}"
    permission, address = _PAGES[subject.kind]
    named = subject.slug if subject.kind == "project" else subject.id
    return address.format(named) if visit.may(permission) else None


def _first(values: dict[str, Any], subject: Subject | None) -> dict[str, Any]:
    """What something began with: neither its name, which stands above, nor what it did not have."""
    name = None if subject is None else subject.name
    return {
        key: value
        for key, value in values.items()
        if (key, value) != ("name", name) and (value not in (None, "", []) or key in _ALL_IF_NONE)
    }


# The audit trail, sifted by whoever wants to know.

AUDIT = f"{PREFIX}/audit"
ENTRIES_A_PAGE = 50
PROJECTS_OFFERED = 500


class Sieve(NamedTuple):
    """What the filters say; one that says nothing that can be is off."""

    project: str = ""
    by: str = ""
    """A kind of actor."""
    actor: str = ""
    """One of them."""
    action: str = ""
    subject: str = ""
    since: str = ""
    until: str = ""

    def address(self, **others: str) -> str:
        said = {**self._asdict(), **others}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"{AUDIT}?{query}" if query else AUDIT

    @property
    def is_on(self) -> bool:
        return any(self)


class AuditPages:
    def __init__(self, audit: Audit, inventory: Units) -> None:
        self._audit = audit
        self._inventory = inventory

    async def show(self, visit: Visit) -> Response:
        projects = await self._inventory.projects_page(None, "", PROJECTS_OFFERED)
        sieve = _sieve(visit, projects)
        page = await self._audit.page(_wishes(visit, sieve), _cursor(visit), ENTRIES_A_PAGE)
        return await visit.render(
            "audit.html",
            sieve=sieve,
            projects=projects,
            kinds=tuple(ActorKind),
            audited_actions=ACTIONS,
            lines=[line_of(noted, visit) for noted in page.entries],
            status_of_booking=partial(status_word, visit.language),
            first=sieve.address() if visit.query.has("cursor") else None,
            **_onward(sieve, page),
        )


def audit_page_routes(desk: Desk, audit: Audit, inventory: Units) -> list[Route]:
    return [desk.page(AUDIT, Permission.SEE_AUDIT, GET=AuditPages(audit, inventory).show)]


def _onward(sieve: Sieve, page: AuditPage) -> dict[str, Any]:
    """``looked_back_to``: where the look ended though there was room for more on the page."""
    onward = page.goes_on_before
    is_short = onward is not None and len(page.entries) < ENTRIES_A_PAGE
    return {
        "next": None if onward is None else sieve.address(cursor=TIME_AND_NUMBER_CURSOR.encode(onward)),
        "looked_back_to": onward[0] if onward is not None and is_short else None,
    }


def _sieve(visit: Visit, projects: list[Project]) -> Sieve:
    query = visit.query
    said = Sieve(*(query.text(name) for name in Sieve._fields))
    subject = parse_id(said.subject)
    return Sieve(
        project=said.project if _is_offered(said.project, projects) else "",
        by=said.by if said.by in tuple(ActorKind) else "",
        actor=said.actor if len(said.actor) <= LONGEST_TEXT else "",
        action=said.action if len(said.action) <= LONGEST_ACTION else "",
        subject="" if subject is None else str(subject),
        since=said.since if _moment(visit, said.since) else "",
        until=said.until if _moment(visit, said.until) else "",
    )


def _is_offered(slug: str, projects: list[Project]) -> bool:
    """Where there are too many to offer, any may be named."""
    too_many = len(projects) > PROJECTS_OFFERED
    return slug_fault(slug) is None and (too_many or any(project.slug == slug for project in projects))


def _wishes(visit: Visit, sieve: Sieve) -> AuditFilter:
    return AuditFilter(
        project_slug=sieve.project or None,
        actor=sieve.actor or sieve.by or None,
        action=sieve.action or None,
        subject_id=UUID(sieve.subject) if sieve.subject else None,
        since=_moment(visit, sieve.since),
        until=_moment(visit, sieve.until),
    )


def _moment(visit: Visit, text: str) -> datetime | None:
    """In the time zone of the pages. What lies beyond the years of a calendar is no time."""
    try:
        return visit.language.at(text) if 1970 <= int(text[:4]) <= 9000 else None
    except (ValueError, OverflowError):
        return None


def _cursor(visit: Visit) -> tuple[datetime, int] | None:
    try:
        return TIME_AND_NUMBER_CURSOR.decode(visit.query.text("cursor"))
    except (ValueError, OverflowError):
        return None
