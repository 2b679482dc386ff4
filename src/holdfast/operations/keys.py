"""Keys: issued, listed, revoked; each within what the one who does it has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.api_key import IssuedKey, Key, Scope, key_hash, key_hint, new_key_text
from holdfast.domain.audit import Author, Change, Entry
from holdfast.domain.errors import Fault, InvalidInput, UnknownKey, UnknownProject
from holdfast.domain.message import Message
from holdfast.domain.project import name_fault
from holdfast.storage import api_keys, audit, projects
from holdfast.storage.database import Connection, Database

LONGEST_EXPIRY_DAYS = 36_500
_START = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


class Power(NamedTuple):
    """What one may give away: nobody issues a key that opens more, or for longer, than they may."""

    scopes: frozenset[Scope] = frozenset(Scope)
    project_slugs: tuple[str, ...] | None = None
    """None: every project."""
    expires_at: datetime | None = None


OF_THE_CONSOLE = Power()


class KeyWishes(NamedTuple):
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


class Keys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def issue(self, wishes: KeyWishes, power: Power, author: Author) -> IssuedKey:
        refuse_faults([name_fault(wishes.name), *_power_faults(wishes, power)])
        text = new_key_text()
        slugs = power.project_slugs if wishes.project_slugs is None else wishes.project_slugs
        async with self._database.writing() as connection:
            now = await audit.now(connection)
            expires_at = _expiry(wishes, power, now)
            project_ids = await _project_ids(connection, slugs, power)
            scopes = [scope for scope in Scope if scope in wishes.scopes]
            key = await api_keys.insert(
                connection, wishes.name, key_hint(text), key_hash(text), scopes, project_ids, expires_at
            )
            await audit.insert(connection, _entry(key, now, author, "create", Change(None, _told(key))))
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
            found = await api_keys.page(connection, before or _START, slugs, live, limit + 1)
            return KeyPage(found, await audit.now(connection))

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


def refuse_faults(faults: Sequence[Fault | None]) -> None:
    found = [fault for fault in faults if fault is not None]
    if found:
        raise InvalidInput(found)


async def _revoke(connection: Connection, key: Key, author: Author) -> Key:
    now = await audit.now(connection)
    revoked = await api_keys.revoke(connection, key.id, now)
    change = Change({"name": key.name, "revoked_at": None}, {"name": key.name, "revoked_at": now})
    await audit.insert(connection, _entry(key, now, author, "revoke", change))
    return revoked


def _power_faults(wishes: KeyWishes, power: Power) -> list[Fault]:
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


def _expiry(wishes: KeyWishes, power: Power, now: datetime) -> datetime | None:
    if wishes.expires_in_days is None:
        return power.expires_at
    expires_at = now + timedelta(days=wishes.expires_in_days)
    if power.expires_at is not None and expires_at > power.expires_at:
        raise InvalidInput.at("/expiresInDays", "A key does not last longer than the one that issues it.")
    return expires_at


async def _project_ids(connection: Connection, slugs: Sequence[str] | None, power: Power) -> list[UUID]:
    """Empty: every project."""
    found = []
    for slug in dict.fromkeys(slugs or ()):
        allowed = power.project_slugs is None or slug in power.project_slugs
        project_id = await projects.find_id(connection, slug) if allowed else None
        if project_id is None:
            raise UnknownProject(slug)
        found.append(project_id)
    return found


def _known(key: Key | None, key_id: UUID, slugs: tuple[str, ...] | None) -> Key:
    """One answer for a key that is not there and one that opens other projects, too."""
    if key is None or not _is_within(key.project_slugs, slugs):
        raise UnknownKey(key_id)
    return key


def _is_within(own: tuple[str, ...] | None, allowed: tuple[str, ...] | None) -> bool:
    return allowed is None or (own is not None and set(own) <= set(allowed))


def _entry(key: Key, at: datetime, author: Author, action: str, change: Change) -> Entry:
    return Entry(key.id, None, at, author, action, None, change)


def _told(key: Key) -> dict[str, object]:
    return {
        "name": key.name,
        "hint": key.hint,
        "scopes": [scope for scope in Scope if scope in key.scopes],
        "projects": key.project_slugs,
        "expires_at": key.expires_at,
    }
