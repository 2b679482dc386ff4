"""API keys: issued, listed, revoked, cached for requests, and as JSON documents."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple
from uuid import UUID, uuid4

from msgspec import Meta

from holdfast.domain import errors
from holdfast.domain.api_key import IssuedKey, Key, Scope, is_well_formed, key_hash, key_hint, new_key_text
from holdfast.domain.audit import COMMAND, Author, Change
from holdfast.domain.project import NAME_LENGTH, is_within_projects, name_fault
from holdfast.operations.documents import Document, Time
from holdfast.storage import api_keys, audit, projects
from holdfast.storage.database import Connection, Database, current_time, wait_for_standby

LONGEST_EXPIRY_DAYS = 36_500
_KEY_USED = (
    "This key was already created. A key is shown only once: if you did not copy it, revoke it and create "
    "another."
)
_NOT_CACHED: tuple[None, float] = (None, -math.inf)
_FIRST_PAGE = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


class KeyIssuer(NamedTuple):
    """The limits of an issuer: nobody issues a key that opens more, or for longer, than their own."""

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


async def issue(
    database: Database,
    new_key: NewApiKey,
    issuer: KeyIssuer = CONSOLE_ISSUER,
    author: Author = COMMAND,
    key_id: UUID | None = None,
) -> IssuedKey:
    """``key_id``: of a request that may be sent again."""
    errors.raise_faults([name_fault(new_key.name), *_issue_faults(new_key, issuer)])
    text, key_id = new_key_text(), key_id or uuid4()
    async with database.writing() as connection:
        now = await current_time(connection)
        expires_at = _expiry(new_key, issuer, now)
        slugs = new_key.project_slugs or issuer.project_slugs or ()
        project_ids = await projects.require_ids(connection, slugs, issuer.project_slugs)
        scopes = [scope for scope in Scope if scope in new_key.scopes]
        key = await api_keys.insert(
            connection, key_id, new_key.name, key_hint(text), key_hash(text), scopes, project_ids, expires_at
        )
        if key is None:
            await wait_for_standby(connection)
        else:
            created = {
                "name": key.name,
                "hint": key.hint,
                "scopes": scopes,
                "projects": key.project_slugs,
                "expires_at": key.expires_at,
            }
            await audit.record(connection, key.id, author, "create", Change(None, created), at=now)
    if key is None:
        raise errors.IdempotencyKeyUsed(_KEY_USED, made_id=key_id)
    return IssuedKey(key, text)


async def load_page(
    database: Database,
    before: tuple[datetime, UUID] | None,
    slugs: tuple[str, ...] | None,
    limit: int,
    *,
    live: bool | None = None,
) -> tuple[list[Key], datetime]:
    """Return the latest first, one more than ``limit`` if there is one; and the time.
    ``slugs``: the projects that the caller is limited to. ``live``: neither revoked nor expired."""
    async with database.reading() as connection:
        keys = await api_keys.page(connection, before or _FIRST_PAGE, slugs, live, limit + 1)
        return keys, await current_time(connection)


async def list_all(database: Database) -> list[Key]:
    return await database.read(api_keys.list_all)


async def find(database: Database, key_id: UUID) -> Key:
    return _check_found(await database.read(api_keys.find, key_id), key_id, None)


async def revoke(
    database: Database, key_id: UUID, author: Author = COMMAND, slugs: tuple[str, ...] | None = None
) -> Key:
    """Revoking a key again changes nothing."""
    async with database.writing() as connection:
        key = _check_found(await api_keys.find(connection, key_id, lock=True), key_id, slugs)
        return key if key.revoked_at is not None else await _revoke(connection, key, author)


async def revoke_named(database: Database, name: str, author: Author = COMMAND) -> None:
    async with database.writing() as connection:
        for key in await api_keys.find_named_locked(connection, name):
            await _revoke(connection, key, author)


async def _revoke(connection: Connection, key: Key, author: Author) -> Key:
    now = await current_time(connection)
    revoked = await api_keys.revoke(connection, key.id, now)
    change = Change({"name": key.name, "revoked_at": None}, {"name": key.name, "revoked_at": now})
    await audit.record(connection, key.id, author, "revoke", change, at=now)
    return revoked


def _issue_faults(new_key: NewApiKey, issuer: KeyIssuer) -> list[errors.Fault]:
    faults = []
    days = new_key.expires_in_days
    if not new_key.scopes:
        faults.append(errors.Fault("/scopes", "A key needs at least one scope."))
    beyond = [scope for scope in new_key.scopes if scope not in issuer.scopes]
    if beyond:
        message = errors.Message("You cannot issue a key with the scope %(scope)s.", {"scope": beyond[0]})
        faults.append(errors.Fault("/scopes", message))
    if days is not None and not 0 < days <= LONGEST_EXPIRY_DAYS:
        too_long = "A key must expire after more than 0 and at most %(days)s days."
        faults.append(errors.Fault("/expiresInDays", errors.Message(too_long, {"days": LONGEST_EXPIRY_DAYS})))
    return faults


def _expiry(new_key: NewApiKey, issuer: KeyIssuer, now: datetime) -> datetime | None:
    if new_key.expires_in_days is None:
        return issuer.expires_at
    expires_at = now + timedelta(days=new_key.expires_in_days)
    if issuer.expires_at is not None and expires_at > issuer.expires_at:
        raise errors.InvalidInput.at("/expiresInDays", "A key cannot expire later than its issuer's key.")
    return expires_at


def _check_found(key: Key | None, key_id: UUID, slugs: tuple[str, ...] | None) -> Key:
    """Raise the same error for a key that is not there and one that opens other projects, too."""
    if key is None or not is_within_projects(key.project_slugs, slugs):
        raise errors.UnknownKey(key_id)
    return key


CACHED_SECONDS = 0.5
"""So short that a revoked key stops working within a second."""
CACHED_KEYS = 10_000
USE_RECORDED_EVERY_SECONDS = 60.0


class ApiKeyCache:
    """Looks a key up at most twice a second, however many requests carry it."""

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._monotonic = monotonic
        self._keys: dict[str, tuple[Key | None, float]] = {}
        """Each with the time until which it is cached."""
        self._lookups: dict[str, asyncio.Task[Key | None]] = {}
        self._use_recorded_at: dict[str, float] = {}
        self._use_tasks: set[asyncio.Task[None]] = set()

    async def find(self, text: str) -> Key:
        key, until = self._keys.get(text, _NOT_CACHED)
        if until <= self._monotonic():
            key = await self._look_up_once(text)
        if key is None:
            raise errors.InvalidApiKey
        return key

    async def close(self) -> None:
        if self._use_tasks:
            await asyncio.wait(self._use_tasks)

    async def _look_up_once(self, text: str) -> Key | None:
        """Share one look-up among requests that carry the same key at the same time."""
        if not is_well_formed(text):
            return None
        task = self._lookups.get(text)
        if task is None:
            task = self._lookups[text] = asyncio.create_task(self._look_up(text))
            task.add_done_callback(lambda _: self._lookups.pop(text, None))
            # A failure is logged otherwise, if its requests have gone.
            task.add_done_callback(lambda one: one.cancelled() or one.exception())
        return await asyncio.shield(task)

    async def _look_up(self, text: str) -> Key | None:
        # The time before the look-up: what was read may be as old as that.
        started_at = self._monotonic()
        live = await self._database.read(api_keys.find_live, key_hash(text))
        if len(self._keys) >= CACHED_KEYS:
            self._keys.clear()
        if live is None:
            self._keys[text] = None, started_at + CACHED_SECONDS
            return None
        key, seconds_left = live
        left = CACHED_SECONDS if seconds_left is None else seconds_left
        self._keys[text] = key, started_at + min(CACHED_SECONDS, left)
        self._record_use(text, key)
        return key

    def _record_use(self, text: str, key: Key) -> None:
        now = self._monotonic()
        if now - self._use_recorded_at.get(text, -USE_RECORDED_EVERY_SECONDS) < USE_RECORDED_EVERY_SECONDS:
            return
        self._use_recorded_at[text] = now
        task = asyncio.create_task(self._write_use(key))
        self._use_tasks.add(task)
        task.add_done_callback(self._use_tasks.discard)

    async def _write_use(self, key: Key) -> None:
        with suppress(errors.DatabaseUnavailable):
            async with self._database.writing() as connection:
                await api_keys.record_use(connection, key.id)


class _KeyFields(Document):
    id: Annotated[UUID, "The key's id."]
    name: Annotated[str, "What the key is for.", Meta(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1])]
    hint: Annotated[str, "The first characters of the key, by which a person recognizes it."]
    scopes: Annotated[list[Scope], "What the key gives access to."]
    projects: Annotated[
        tuple[str, ...] | None,
        "The slugs of the projects that it is limited to; null for all.",
    ]
    created_at: Time
    expires_at: Annotated[Time | None, "When it expires; null if it does not."]


class KeyDocument(_KeyFields):
    """An API key, without the key itself."""

    revoked_at: Annotated[Time | None, "When it was revoked; null if it was not."]
    last_used_at: Annotated[Time | None, "When it was last used, to the minute; null if it never was."]


class IssuedKeyDocument(_KeyFields):
    """A new API key."""

    key: Annotated[str, "The key itself. It is in this response and in no other."]


def key_document(key: Key) -> KeyDocument:
    return KeyDocument.fill(key, scopes=_ordered_scopes(key), projects=key.project_slugs)


def issued_key_document(issued: IssuedKey) -> IssuedKeyDocument:
    key = issued.key
    return IssuedKeyDocument.fill(
        key, key=issued.text, scopes=_ordered_scopes(key), projects=key.project_slugs
    )


def _ordered_scopes(key: Key) -> list[Scope]:
    return [scope for scope in Scope if scope in key.scopes]
