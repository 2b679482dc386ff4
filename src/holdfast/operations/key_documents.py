"""Keys as JSON tells them, alike in the back office and at the console."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.domain.access import IssuedKey, Key, Scope
from holdfast.domain.spelling import moment_text


def key_document(key: Key) -> dict[str, Any]:
    return {
        "id": str(key.id),
        "name": key.name,
        "hint": key.hint,
        "scopes": [str(scope) for scope in Scope if scope in key.scopes],
        "projects": None if key.project_slugs is None else list(key.project_slugs),
        "createdAt": moment_text(key.created_at),
        "expiresAt": _optional_time(key.expires_at),
        "revokedAt": _optional_time(key.revoked_at),
        "lastUsedAt": _optional_time(key.last_used_at),
    }


def issued_key_document(issued: IssuedKey) -> dict[str, Any]:
    """With the key itself, this once."""
    shown = key_document(issued.key)
    own = {name: shown[name] for name in ("hint", "scopes", "projects", "createdAt", "expiresAt")}
    return {"id": shown["id"], "name": shown["name"], "key": issued.text, **own}


def _optional_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment_text(moment)
