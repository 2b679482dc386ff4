"""API keys as JSON, in the back office and at the console."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from holdfast.domain.api_key import IssuedKey, Key, Scope
from holdfast.domain.project import NAME_LENGTH
from holdfast.domain.spelling import moment_text
from holdfast.operations.documents import Document, Time, optional_moment_text

_Id = Annotated[UUID, Meta(description="The key's id.")]
_Scopes = Annotated[list[Scope], Meta(description="What the key opens.")]
_Name = Annotated[
    str, Meta(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1], description="What the key is for.")
]
_Hint = Annotated[str, Meta(description="The first characters of the key, by which a person recognises it.")]
_Projects = Annotated[
    tuple[str, ...] | None,
    Meta(description="The slugs of the projects that it is limited to; null for all."),
]
_ExpiresAt = Annotated[Time | None, Meta(description="When it expires; null if it does not.")]


class KeyDocument(Document):
    """An API key, without the key itself."""

    id: _Id
    name: _Name
    hint: _Hint
    scopes: _Scopes
    projects: _Projects
    created_at: Time
    expires_at: _ExpiresAt
    revoked_at: Annotated[Time | None, Meta(description="When it was revoked; null if it was not.")]
    last_used_at: Annotated[
        Time | None, Meta(description="When it was last used, to the minute; null if it never was.")
    ]


class IssuedKeyDocument(Document):
    """A new API key."""

    id: _Id
    name: _Name
    key: Annotated[str, Meta(description="The key itself. It is in this response and in no other.")]
    hint: _Hint
    scopes: _Scopes
    projects: _Projects
    created_at: Time
    expires_at: _ExpiresAt


def key_document(key: Key) -> KeyDocument:
    return KeyDocument(
        id=key.id,
        name=key.name,
        hint=key.hint,
        scopes=_scopes(key),
        projects=key.project_slugs,
        created_at=moment_text(key.created_at),
        expires_at=optional_moment_text(key.expires_at),
        revoked_at=optional_moment_text(key.revoked_at),
        last_used_at=optional_moment_text(key.last_used_at),
    )


def issued_key_document(issued: IssuedKey) -> IssuedKeyDocument:
    key = issued.key
    return IssuedKeyDocument(
        id=key.id,
        name=key.name,
        key=issued.text,
        hint=key.hint,
        scopes=_scopes(key),
        projects=key.project_slugs,
        created_at=moment_text(key.created_at),
        expires_at=optional_moment_text(key.expires_at),
    )


def _scopes(key: Key) -> list[Scope]:
    return [scope for scope in Scope if scope in key.scopes]
