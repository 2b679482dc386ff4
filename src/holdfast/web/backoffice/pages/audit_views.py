"""Entries of the audit trail, read for people: what each is about, where that is, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from holdfast.domain.permissions import Permission
from holdfast.domain.status import Action
from holdfast.operations.audit import Noted, Subject
from holdfast.web.backoffice.pages.differences import Difference, between, values_of
from holdfast.web.backoffice.visits import PREFIX, Visit

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


def line_of(noted: Noted, visit: Visit) -> AuditLine:
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
