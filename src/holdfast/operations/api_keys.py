"""Keys: issued, listed, revoked; each within what the one who does it has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple
from uuid import UUID

from msgspec import Meta

from holdfast.domain.api_key import IssuedKey, Key, Scope, is_well_formed, key_hash, key_hint, new_key_text
from holdfast.domain.audit import COMMAND, AuditEntry, Author, Change
from holdfast.domain.errors import (
    DatabaseUnavailable,
    Fault,
    InvalidApiKey,
    InvalidInput,
    UnknownKey,
    raise_faults,
)
from holdfast.domain.message import Message
from holdfast.domain.project import NAME_LENGTH, is_within_projects, name_fault
from holdfast.operations.documents import Document, Time
from holdfast.storage import api_keys, audit, projects
from holdfast.storage.database import Connection, Database

LONGEST_EXPIRY_DAYS = 36_500
_FIRST_PAGE = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


class KeyIssuer(NamedTuple):
    """What one may give away: nobody issues a key that opens more, or for longer, than they may."""

    scopes: frozenset[Scope] = frozenset(Scope)
    project_slugs: tuple[str, ...] | None = None
    """None: every project."""
    expires_at: datetime | None = None


CONSOLE_ISSUER = KeyIssuer()


class NewApiKey(NamedTuple):
    name: str
    scopes: Sequence[Scope] = (Scope.INTEGRATION,)
    project_slugs: Sequence[str] | None = None
    """None: all that the issuer may use."""
    expires_in_days: float | None = None
    """None: as long as the issuer's own, if that ends."""


class KeyPage(NamedTuple):
    keys: list[Key]
    """One more than was asked for, if there is one; the latest first."""
    read_at: datetime


class ApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def issue(self, new_key: NewApiKey, issuer: KeyIssuer, author: Author) -> IssuedKey:
        raise_faults([name_fault(new_key.name), *_issue_faults(new_key, issuer)])
        text = new_key_text()
        slugs = issuer.project_slugs if new_key.project_slugs is None else new_key.project_slugs
        async with self._database.writing() as connection:
            now = await audit.current_time(connection)
            expires_at = _expiry(new_key, issuer, now)
            project_ids = await projects.require_ids(connection, slugs or (), issuer.project_slugs)
            scopes = [scope for scope in Scope if scope in new_key.scopes]
            key = await api_keys.insert(
                connection, new_key.name, key_hint(text), key_hash(text), scopes, project_ids, expires_at
            )
            await audit.insert(
                connection, _key_entry(key, now, author, "create", Change(None, _audited_fields(key)))
            )
        return IssuedKey(key, text)

    async def page(
        self,
        before: tuple[datetime, UUID] | None,
        slugs: tuple[str, ...] | None,
        limit: int,
        *,
        live: bool | None = None,
    ) -> KeyPage:
        """``slugs``: the projects that the caller is limited to. ``live``: neither revoked nor expired."""
        async with self._database.reading() as connection:
            found = await api_keys.page(connection, before or _FIRST_PAGE, slugs, live, limit + 1)
            return KeyPage(found, await audit.current_time(connection))

    async def find(self, key_id: UUID, slugs: tuple[str, ...] | None = None) -> Key:
        async with self._database.reading() as connection:
            return _known(await api_keys.find(connection, key_id), key_id, slugs)

    async def revoke(self, key_id: UUID, author: Author, slugs: tuple[str, ...] | None = None) -> Key:
        """Once more changes nothing."""
        async with self._database.writing() as connection:
            found = _known(await api_keys.find_locked(connection, key_id), key_id, slugs)
            return found if found.revoked_at is not None else await _revoke(connection, found, author)

    async def revoke_named(self, name: str, author: Author) -> None:
        async with self._database.writing() as connection:
            for key in await api_keys.find_named_locked(connection, name):
                await _revoke(connection, key, author)


async def _revoke(connection: Connection, key: Key, author: Author) -> Key:
    now = await audit.current_time(connection)
    revoked = await api_keys.revoke(connection, key.id, now)
    change = Change({"name": key.name, "revoked_at": None}, {"name": key.name, "revoked_at": now})
    await audit.insert(connection, _key_entry(key, now, author, "revoke", change))
    return revoked


def _issue_faults(new_key: NewApiKey, issuer: KeyIssuer) -> list[Fault]:
    faults = []
    days = new_key.expires_in_days
    if not new_key.scopes:
        faults.append(Fault("/scopes", "A key has at least one scope."))
    beyond = [scope for scope in new_key.scopes if scope not in issuer.scopes]
    if beyond:
        message = Message("You may not issue a key with the scope %(scope)s.", {"scope": beyond[0]})
        faults.append(Fault("/scopes", message))
    if days is not None and not 0 < days <= LONGEST_EXPIRY_DAYS:
        too_long = "A key expires after more than 0 and at most %(days)s days."
        faults.append(Fault("/expiresInDays", Message(too_long, {"days": LONGEST_EXPIRY_DAYS})))
    return faults


def _expiry(new_key: NewApiKey, issuer: KeyIssuer, now: datetime) -> datetime | None:
    if new_key.expires_in_days is None:
        return issuer.expires_at
    expires_at = now + timedelta(days=new_key.expires_in_days)
    if issuer.expires_at is not None and expires_at > issuer.expires_at:
        raise InvalidInput.at("/expiresInDays", "A key does not last longer than the one that issues it.")
    return expires_at


def _known(key: Key | None, key_id: UUID, slugs: tuple[str, ...] | None) -> Key:
    """One answer for a key that is not there and one that opens other projects, too."""
    if key is None or not is_within_projects(key.project_slugs, slugs):
        raise UnknownKey(key_id)
    return key


def _key_entry(key: Key, at: datetime, author: Author, action: str, change: Change) -> AuditEntry:
    return AuditEntry(key.id, None, at, author, action, None, change)


def _audited_fields(key: Key) -> dict[str, object]:
    return {
        "name": key.name,
        "hint": key.hint,
        "scopes": [scope for scope in Scope if scope in key.scopes],
        "projects": key.project_slugs,
        "expires_at": key.expires_at,
    }


# What an operator does to keys at the console.


async def issue_key(
    database: Database,
    name: str,
    scopes: Sequence[Scope] = (Scope.INTEGRATION,),
    project_slugs: Sequence[str] = (),
    expires_in_days: float | None = None,
) -> IssuedKey:
    new_key = NewApiKey(name, scopes, project_slugs or None, expires_in_days)
    return await ApiKeys(database).issue(new_key, CONSOLE_ISSUER, COMMAND)


async def list_keys(database: Database) -> list[Key]:
    async with database.reading() as connection:
        return await api_keys.list_all(connection)


async def revoke_key(database: Database, key_id: UUID) -> Key:
    return await ApiKeys(database).revoke(key_id, COMMAND)


async def revoke_keys_named(database: Database, name: str) -> None:
    await ApiKeys(database).revoke_named(name, COMMAND)


# Which key opens what, remembered for so short a time that a revocation bites within a second.

REMEMBERED_SECONDS = 0.5
REMEMBERED_KEYS = 10_000
USE_RECORDED_EVERY_SECONDS = 60.0


class _Remembered(NamedTuple):
    key: Key | None
    until: float


class ApiKeyCache:
    """Looks a key up at most twice a second, however many requests carry it."""

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._monotonic = monotonic
        self._remembered: dict[str, _Remembered] = {}
        self._lookups: dict[str, asyncio.Task[Key | None]] = {}
        self._use_recorded_at: dict[str, float] = {}
        self._use_tasks: set[asyncio.Task[None]] = set()

    def remembered(self, text: str) -> Key | None:
        """The key, if it was found a moment ago; ``find`` knows the rest."""
        remembered = self._remembered.get(text)
        return None if remembered is None or remembered.until <= self._monotonic() else remembered.key

    async def find(self, text: str) -> Key:
        remembered = self._remembered.get(text)
        if remembered is None or remembered.until <= self._monotonic():
            key = await self._look_up_once(text)
        else:
            key = remembered.key
        if key is None:
            raise InvalidApiKey
        return key

    async def close(self) -> None:
        if self._use_tasks:
            await asyncio.wait(self._use_tasks)

    async def _look_up_once(self, text: str) -> Key | None:
        """Requests that ask for the same key at the same time share one look-up."""
        if not is_well_formed(text):
            return None
        task = self._lookups.get(text)
        if task is None:
            task = self._lookups[text] = asyncio.create_task(self._look_up(text))
            task.add_done_callback(lambda _: self._lookups.pop(text, None))
        return await asyncio.shield(task)

    async def _look_up(self, text: str) -> Key | None:
        # The time before the look-up: what was read may be as old as that.
        started_at = self._monotonic()
        async with self._database.reading() as connection:
            live = await api_keys.find_live(connection, key_hash(text))
        if len(self._remembered) >= REMEMBERED_KEYS:
            self._remembered.clear()
        if live is None:
            self._remembered[text] = _Remembered(None, started_at + REMEMBERED_SECONDS)
            return None
        left = REMEMBERED_SECONDS if live.seconds_left is None else live.seconds_left
        self._remembered[text] = _Remembered(live.key, started_at + min(REMEMBERED_SECONDS, left))
        self._record_use(text, live.key)
        return live.key

    def _record_use(self, text: str, key: Key) -> None:
        now = self._monotonic()
        if now - self._use_recorded_at.get(text, -USE_RECORDED_EVERY_SECONDS) < USE_RECORDED_EVERY_SECONDS:
            return
        self._use_recorded_at[text] = now
        task = asyncio.create_task(self._write_use(key))
        self._use_tasks.add(task)
        task.add_done_callback(self._use_tasks.discard)

    async def _write_use(self, key: Key) -> None:
        try:
            async with self._database.writing() as connection:
                await api_keys.record_use(connection, key.id)
        except DatabaseUnavailable:
            pass


# API keys as JSON, in the back office and at the console.

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
    return KeyDocument.fill(key, scopes=_scopes(key), projects=key.project_slugs)


def issued_key_document(issued: IssuedKey) -> IssuedKeyDocument:
    key = issued.key
    return IssuedKeyDocument.fill(key, key=issued.text, scopes=_scopes(key), projects=key.project_slugs)


def _scopes(key: Key) -> list[Scope]:
    return [scope for scope in Scope if scope in key.scopes]
