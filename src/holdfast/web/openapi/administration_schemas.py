"""Keys and the audit trail: schemas, parameters, examples."""

from __future__ import annotations

import uuid
from typing import Any

from holdfast.domain.access import IssuedKey, Key, Scope
from holdfast.domain.audit import ActorKind
from holdfast.domain.project import NAME_LENGTH
from holdfast.domain.status import Action
from holdfast.operations.auditing import SUBJECT_KINDS, Noted, Subject, TrailEntry
from holdfast.operations.key_documents import issued_key_document, key_document
from holdfast.web.backoffice.audit import LONGEST_ACTION, noted_document
from holdfast.web.backoffice.key_bodies import NEW_KEY
from holdfast.web.openapi.example_unit import NOW, PROJECT, REQUEST_ID, UNIT, as_json
from holdfast.web.openapi.forms import (
    CODE_PATTERN,
    SLUG,
    TEXT,
    TIME,
    UUID,
    Schema,
    body_schema,
    either_or_null,
    page,
    parameter,
    record,
    reference,
)
from holdfast.web.queries import LONGEST_TEXT

_KEY_ID = uuid.UUID("6f3f8f2a-3f0e-4f0c-9b1a-0d6c9a7e5b21")
_SCOPES = frozenset({Scope.INTEGRATION})
_KEY = Key(_KEY_ID, "Nightly sync", "hfk_4Fq2", _SCOPES, (PROJECT.slug,), NOW, None, None, None)
_KEY_TEXT = "hfk_4Fq2" + "x" * 38

_KEY_FIELDS = {
    "name": "What the key is for.",
    "hint": "The first characters of the key, by which a person recognises it.",
    "scopes": "What the key opens. Left out: `integration`.",
    "projects": "The slugs of the projects that it is limited to; null for all that the issuer may use.",
    "expiresInDays": "How long it is good for, in days; null for as long as the issuer's own key is.",
    "expiresAt": "When it expires; null if it does not.",
    "revokedAt": "When it was revoked; null if it was not.",
    "lastUsedAt": "When it was last used, to the minute; null if it never was.",
    "key": "The key itself. It is told in this answer and never again.",
}

ADMINISTRATION_PARAMETERS: dict[str, dict[str, Any]] = {
    "keyId": parameter("path", "id", UUID, "The id of the key.", str(_KEY_ID)),
    "auditProject": parameter(
        "query",
        "project",
        SLUG,
        "Only what was done to this project and its units; 404 if there is none, or not for this key.",
    ),
    "auditActor": parameter(
        "query",
        "actor",
        TEXT | {"minLength": 1, "maxLength": LONGEST_TEXT, "pattern": CODE_PATTERN},
        f"Only what one did: the id of a key, the e-mail address of staff, the reference of a buyer's "
        f"booking; or a kind of them all: {', '.join(f'`{kind}`' for kind in ActorKind)}.",
    ),
    "auditAction": parameter(
        "query",
        "action",
        TEXT | {"minLength": 1, "maxLength": LONGEST_ACTION, "pattern": CODE_PATTERN},
        "Only entries of this action, such as `close-sale`.",
    ),
    "auditSubject": parameter(
        "query",
        "subject",
        UUID,
        "Only what was done to the unit, project, endpoint, key or member of staff with this id.",
    ),
    "auditSince": parameter(
        "query", "since", TIME, "Only entries of this time or later. UTC without an offset."
    ),
    "auditUntil": parameter("query", "until", TIME, "Only entries before this time."),
}


def administration_schemas(entry: Schema) -> dict[str, Schema]:
    """``entry``: that of a unit's history, of which this is more."""
    key = _key()
    issued = {name: schema for name, schema in key.items() if name not in ("revokedAt", "lastUsedAt")}
    return {
        "Key": record(key, description="A bearer API key, without what opens the door."),
        "KeyList": page("keys", "Key"),
        "IssuedKey": record({**issued, "key": _told(TEXT, "key")}),
        "NewKey": body_schema(NEW_KEY, _KEY_FIELDS, {"name": CODE_PATTERN}),
        "Scope": TEXT | {"enum": [*Scope]},
        "AuditEntry": _entry(entry),
        "AuditSubject": _subject(),
        "AuditTrail": page("entries", "AuditEntry"),
    }


def _key() -> dict[str, Schema]:
    return {
        "id": UUID,
        "name": _told(TEXT | {"minLength": NAME_LENGTH[0], "maxLength": NAME_LENGTH[1]}, "name"),
        "hint": _told(TEXT, "hint"),
        "scopes": {"type": "array", "items": reference("Scope"), "description": "What the key opens."},
        "projects": either_or_null({"type": "array", "items": SLUG})
        | {"description": "The slugs of the projects that it is limited to; null for all."},
        "createdAt": TIME,
        "expiresAt": _told(either_or_null(TIME), "expiresAt"),
        "revokedAt": _told(either_or_null(TIME), "revokedAt"),
        "lastUsedAt": _told(either_or_null(TIME), "lastUsedAt"),
    }


def _entry(entry: Schema) -> Schema:
    slug = either_or_null(SLUG) | {"description": "The project that it belongs to; null if it is of none."}
    own = {"subject": reference("AuditSubject"), "projectSlug": slug}
    return record({**entry["properties"], **own}, description="Who did what, to what.")


def _subject() -> Schema:
    kind = either_or_null(TEXT) | {"enum": [*SUBJECT_KINDS, None]}
    name = either_or_null(TEXT) | {
        "description": "The unit's code, the project's or key's name, the endpoint's URL, the e-mail address "
        "of staff; null if nobody knows it any more."
    }
    return record({"kind": kind, "id": UUID, "name": name}, description="What it was done to.")


def _told(schema: Schema, name: str) -> Schema:
    return schema | {"description": _KEY_FIELDS[name]}


def key() -> Any:
    return as_json(key_document(_KEY))


def issued_key() -> Any:
    return as_json(issued_key_document(IssuedKey(_KEY, _KEY_TEXT)))


def new_key() -> dict[str, Any]:
    return {
        "name": _KEY.name,
        "scopes": [Scope.INTEGRATION],
        "projects": [PROJECT.slug],
        "expiresInDays": 365,
    }


def audit_entry() -> Any:
    entry = TrailEntry(
        41, NOW, UNIT.id, PROJECT.id, ActorKind.STAFF, "sara@example.com", REQUEST_ID, Action.PUT_ON_SALE,
        None, '{"status":"unavailable"}', '{"status":"available"}',
    )  # fmt: skip
    subject = Subject(UNIT.id, "unit", UNIT.code, PROJECT.slug)
    return as_json(noted_document(Noted(entry, subject, None, PROJECT.slug)))
