"""API keys, stored as hashes."""

import hmac
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from holdfast.domain.api_key import Key, Scope
from holdfast.storage.database import Connection, Row, fetch_one

_COLUMNS = """
    id, name, hint, scopes,
    case when limited_to_projects then array(
        select project.slug from api_key_project join project on project.id = project_id
        where api_key_id = api_key.id order by project.slug
    ) end,
    created_at, expires_at, revoked_at, last_used_at
"""

_INSERT = """
    insert into api_key (id, name, hint, key_hash, scopes, limited_to_projects, expires_at)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (id) do nothing returning id
"""
_LIMIT_TO_PROJECT = "insert into api_key_project (api_key_id, project_id) values ($1, $2)"

_FIND = f"select {_COLUMNS} from api_key where id = $1"
_FIND_LIVE = f"""
    select {_COLUMNS}, key_hash, extract(epoch from expires_at - clock_timestamp())::float8
    from api_key
    where key_hash = $1 and revoked_at is null
        and (expires_at is null or expires_at > clock_timestamp())
"""
_FIND_LOCKED = f"{_FIND} for no key update"
_FIND_NAMED_LOCKED = f"""
    select {_COLUMNS} from api_key where name = $1 and revoked_at is null order by id for no key update
"""
_LIST = f"select {_COLUMNS} from api_key order by created_at, id"
# A caller limited to projects sees the keys that are limited to some of these.
_PAGE = f"""
    select {_COLUMNS} from api_key
    where (created_at, id) < ($1, $2)
        and ($3::text[] is null or limited_to_projects and not exists (
            select from api_key_project join project on project.id = project_id
            where api_key_id = api_key.id and slug <> all($3)
        ))
        and ($4::boolean is null
            or $4 = (revoked_at is null and (expires_at is null or expires_at > clock_timestamp())))
    order by created_at desc, id desc limit $5
"""

_REVOKE = f"update api_key set revoked_at = $2 where id = $1 returning {_COLUMNS}"

# At most one write a minute, from all processes together.
_RECORD_USE = """
    update api_key set last_used_at = clock_timestamp()
    where id = $1 and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')
"""


async def insert(
    connection: Connection,
    key_id: UUID,
    name: str,
    hint: str,
    key_hash: bytes,
    scopes: Sequence[Scope],
    project_ids: Sequence[UUID],
    expires_at: datetime | None,
) -> Key | None:
    """Return None if there is a key with this id."""
    limited = bool(project_ids)
    values = (key_id, name, hint, key_hash, list(scopes), limited, expires_at)
    if await connection.fetchval(_INSERT, *values) is None:
        return None
    await connection.executemany(_LIMIT_TO_PROJECT, [(key_id, project_id) for project_id in project_ids])
    return _key(await fetch_one(connection, _FIND, key_id))


async def find(connection: Connection, key_id: UUID, *, lock: bool = False) -> Key | None:
    row = await connection.fetchrow(_FIND_LOCKED if lock else _FIND, key_id)
    return _key(row) if row else None


async def find_named_locked(connection: Connection, name: str) -> list[Key]:
    """Lock the keys of this name that are not revoked."""
    return [_key(row) for row in await connection.fetch(_FIND_NAMED_LOCKED, name)]


async def find_live(connection: Connection, key_hash: bytes) -> tuple[Key, float | None] | None:
    """Return a key that is neither revoked nor expired, and the seconds until it expires, if it does."""
    row = await connection.fetchrow(_FIND_LIVE, key_hash)
    if row is None or not hmac.compare_digest(row[-2], key_hash):
        return None
    return _key(row[:-2]), row[-1]


async def list_all(connection: Connection) -> list[Key]:
    return [_key(row) for row in await connection.fetch(_LIST)]


async def page(
    connection: Connection,
    before: tuple[datetime, UUID],
    slugs: tuple[str, ...] | None,
    live: bool | None,
    limit: int,
) -> list[Key]:
    """The latest first."""
    return [_key(row) for row in await connection.fetch(_PAGE, *before, slugs, live, limit)]


async def revoke(connection: Connection, key_id: UUID, at: datetime) -> Key:
    return _key(await fetch_one(connection, _REVOKE, key_id, at))


async def record_use(connection: Connection, key_id: UUID) -> None:
    await connection.execute(_RECORD_USE, key_id)


def _key(columns: Row) -> Key:
    key_id, name, hint, scopes, slugs, *times = columns
    project_slugs = None if slugs is None else tuple(slugs)
    return Key(key_id, name, hint, frozenset(map(Scope, scopes)), project_slugs, *times)
