"""The operations of administration in the back office: keys, and the audit trail."""

from __future__ import annotations

from typing import Any

from holdfast.domain.access import Scope
from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.openapi import administration_schemas as examples
from holdfast.web.openapi.answers import WITH_BODY, WITH_KEY, answer, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of, key_with, operation

_OF_ADMINS = (*WITH_KEY, "ForbiddenToStaff")
_FILTERS = (
    "auditProject", "auditActor", "auditAction", "auditSubject", "auditSince", "auditUntil",
)  # fmt: skip

_ISSUE = """\
The answer tells the key, this once; it is stored as a hash. Nobody issues more than they have: a key that is
limited to projects, or expires, makes keys of these projects, and none that lasts longer.
"""
_REVOKE = "Within a second the key opens nothing any more. Once more changes nothing."
_AUDIT = """\
Everything that was done, by staff, keys, buyers, payment systems, the clock and at the console, the latest
first. Filters are combined. For one page a limited number of entries is looked at, so a page may have few
entries, or none, and still a `nextCursor`: follow it until it is null.
"""


def administration_paths() -> Paths:
    return {
        f"{PREFIX}/keys": {"get": _list(), "post": _issue()},
        f"{PREFIX}/keys/{{id}}": {"delete": _revoke()},
        f"{PREFIX}/audit": {"get": _audit()},
    }


def _of_admins(name: str, summary: str, *parameters: str, **members: Any) -> Operation:
    security = key_with(Scope.ADMIN)
    return operation(name, "Administration", summary, *parameters, security=security, **members)


def _list() -> Operation:
    page = {"keys": [examples.key()], "nextCursor": None}
    answers = {
        "200": json_answer("A page of keys, the latest first.", "KeyList", page),
        **problems(*_OF_ADMINS),
    }
    return _of_admins("listKeys", "List keys", "cursor", "limit", responses=answers)


def _issue() -> Operation:
    body = body_of(
        "NewKey",
        plain=("For the integration API", {"name": "Nightly sync"}),
        limited=("Of one project, for a year", examples.new_key()),
    )
    issued = json_answer("Issued, with the key.", "IssuedKey", examples.issued_key(), "Cache-Control")
    answers = {"201": issued, **problems(*_OF_ADMINS, *WITH_BODY, "UnknownProject")}
    return _of_admins("issueKey", "Issue a key", description=_ISSUE, requestBody=body, responses=answers)


def _revoke() -> Operation:
    answers = {"204": answer("Revoked."), **problems(*_OF_ADMINS, "UnknownKey")}
    return _of_admins("revokeKey", "Revoke a key", "keyId", description=_REVOKE, responses=answers)


def _audit() -> Operation:
    page = {"entries": [examples.audit_entry()], "nextCursor": None}
    answers = {
        "200": json_answer("A page of entries.", "AuditTrail", page),
        **problems(*_OF_ADMINS, "UnknownProject"),
    }
    return operation(
        "listAuditEntries", "Administration", "Read the audit trail", *_FILTERS, "cursor", "limit",
        security=key_with(Scope.BACKOFFICE), description=_AUDIT, responses=answers,
    )  # fmt: skip
