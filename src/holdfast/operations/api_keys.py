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

    async def issue(self, wishes: NewApiKey, power: KeyIssuer, author: Author) -> IssuedKey:
        raise_faults([name_fault(wishes.name), *_power_faults(wishes, power)])
        text = new_key_text()
        slugs = power.project_slugs if wishes.project_slugs is None else wishes.project_slugs
        async with self._database.writing() as connection:
            now = await audit.current_time(connection)
            expires_at = _expiry(wishes, power, now)
            project_ids = await projects.require_ids(connection, slugs or (), power.project_slugs)
            scopes = [scope for scope in Scope if scope in wishes.scopes]
            key = await api_keys.insert(
                connection, wishes.name, key_hint(text), key_hash(text), scopes, project_ids, expires_at
            )
            await audit.insert(
                connection, _key_entry(key, now, author, "create", Change(None, _recorded(key)))
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


def _power_faults(wishes: NewApiKey, power: KeyIssuer) -> list[Fault]:
    faults = []
    days = wishes.expires_in_days
    if not wishes.scopes:
        faults.append(Fault("/scopes", "A key has at least one scope."))
    beyond = [scope for scope in wishes.scopes if scope not in power.scopes]
    if beyond:
        message = Message("You may not issue a key with the scope %(scope)s.", {"scope": beyond[0]})
        faults.append(Fault("/scopes", message))
    if days is not None and not 0 < days <= LONGEST_EXPIRY_DAYS:
        too_long = "A key expires after more than 0 and at most %(days)s days."
        faults.append(Fault("/expiresInDays", Message(too_long, {"days": LONGEST_EXPIRY_DAYS})))
    return faults


def _expiry(wishes: NewApiKey, power: KeyIssuer, now: datetime) -> datetime | None:
    if wishes.expires_in_days is None:
        return power.expires_at
    expires_at = now + timedelta(days=wishes.expires_in_days)
    if power.expires_at is not None and expires_at > power.expires_at:
        raise InvalidInput.at("/expiresInDays", "A key does not last longer than the one that issues it.")
    return expires_at


def _known(key: Key | None, key_id: UUID, slugs: tuple[str, ...] | None) -> Key:
    """One answer for a key that is not there and one that opens other projects, too."""
    if key is None or not is_within_projects(key.project_slugs, slugs):
        raise UnknownKey(key_id)
    return key


def _key_entry(key: Key, at: datetime, author: Author, action: str, change: Change) -> AuditEntry:
    return AuditEntry(key.id, None, at, author, action, None, change)


def _recorded(key: Key) -> dict[str, object]:
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
    wishes = NewApiKey(name, scopes, project_slugs or None, expires_in_days)
    return await ApiKeys(database).issue(wishes, CONSOLE_ISSUER, COMMAND)


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
USE_NOTED_EVERY_SECONDS = 60.0


class _Remembered(NamedTuple):
    key: Key | None
    until: float


class ApiKeyCache:
    """Looks a key up at most twice a second, however many requests carry it."""

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._monotonic = monotonic
        self._remembered: dict[str, _Remembered] = {}
        self._asking: dict[str, asyncio.Task[Key | None]] = {}
        self._use_noted_at: dict[str, float] = {}
        self._notes: set[asyncio.Task[None]] = set()

    def remembered(self, text: str) -> Key | None:
        """The key, if it was found a moment ago; ``find`` knows the rest."""
        remembered = self._remembered.get(text)
        return None if remembered is None or remembered.until <= self._monotonic() else remembered.key

    async def find(self, text: str) -> Key:
        remembered = self._remembered.get(text)
        if remembered is None or remembered.until <= self._monotonic():
            key = await self._ask(text)
        else:
            key = remembered.key
        if key is None:
            raise InvalidApiKey
        return key

    async def close(self) -> None:
        if self._notes:
            await asyncio.wait(self._notes)

    async def _ask(self, text: str) -> Key | None:
        """Requests that ask for the same key at the same time share one look-up."""
        if not is_well_formed(text):
            return None
        task = self._asking.get(text)
        if task is None:
            task = self._asking[text] = asyncio.create_task(self._look_up(text))
            task.add_done_callback(lambda _: self._asking.pop(text, None))
        return await asyncio.shield(task)

    async def _look_up(self, text: str) -> Key | None:
        # The time before the look-up: what was read may be as old as that.
        asked_at = self._monotonic()
        async with self._database.reading() as connection:
            live = await api_keys.find_live(connection, key_hash(text))
        if len(self._remembered) >= REMEMBERED_KEYS:
            self._remembered.clear()
        if live is None:
            self._remembered[text] = _Remembered(None, asked_at + REMEMBERED_SECONDS)
            return None
        left = REMEMBERED_SECONDS if live.seconds_left is None else live.seconds_left
        self._remembered[text] = _Remembered(live.key, asked_at + min(REMEMBERED_SECONDS, left))
        self._note_use(text, live.key)
        return live.key

    def _note_use(self, text: str, key: Key) -> None:
        now = self._monotonic()
        if now - self._use_noted_at.get(text, -USE_NOTED_EVERY_SECONDS) < USE_NOTED_EVERY_SECONDS:
            return
        self._use_noted_at[text] = now
        task = asyncio.create_task(self._write_use(key))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def _write_use(self, key: Key) -> None:
        try:
            async with self._database.writing() as connection:
                await api_keys.note_use(connection, key.id)
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
