"""Members of staff. Passwords are stored as hashes, second factors encrypted."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.errors import StaffExists
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Preferences, Staff, Theme, email_key
from holdfast.storage.database import Connection, Row, fetch_one

STAFF_COLUMNS = """
    staff.id, staff.email, staff.name, staff.role, staff.language, staff.digits, staff.theme,
    staff.second_factor_sealed is not null as has_second_factor, staff.created_at, staff.disabled_at,
    staff.last_signed_in_at, staff.failures_seen_at, staff.password_hash is not null as has_password
"""
STAFF_WIDTH = 13
_CREDENTIALS = "password_hash, second_factor_sealed, second_factor_step, offered_factor_sealed"

_INSERT = f"""
    insert into staff (id, email, email_key, name, role, password_hash)
    values ($1, $2, $3, $4, $5, $6)
    on conflict do nothing
    returning {STAFF_COLUMNS}
"""
_FIND = f"select {STAFF_COLUMNS} from staff where id = $1"
_FIND_LOCKED = f"{_FIND} for no key update"
_FIND_BY_EMAIL = f"select {STAFF_COLUMNS} from staff where email_key = $1"
_LIST_PAGE = f"""
    select {STAFF_COLUMNS} from staff where (created_at, id) > ($1, $2) order by created_at, id limit $3
"""
_ACCOUNT = f"select {STAFF_COLUMNS}, {_CREDENTIALS}, clock_timestamp() from staff"
_ACCOUNT_BY_ID = f"{_ACCOUNT} where id = $1"
_ACCOUNT_BY_EMAIL = f"{_ACCOUNT} where email_key = $1"
_ACCOUNT_LOCKED = f"{_ACCOUNT_BY_ID} for no key update"

# An admin is removed with all admins locked, so that two requests cannot remove the last two.
_LOCK_ADMINS = f"""
    select {STAFF_COLUMNS} from staff where role = 'admin' and disabled_at is null
    order by id for no key update
"""
_UPDATE = f"""
    update staff
    set name = $2, role = $3, disabled_at = case when $4 then coalesce(disabled_at, clock_timestamp()) end
    where id = $1 returning {STAFF_COLUMNS}
"""
_UPDATE_PREFERENCES = f"""
    update staff set language = $2, digits = $3, theme = $4 where id = $1 returning {STAFF_COLUMNS}
"""
_RECORD_LOGIN = """
    update staff
    set last_signed_in_at = clock_timestamp(), second_factor_step = greatest(second_factor_step, $2),
        password_hash = coalesce($3, password_hash)
    where id = $1
"""
_DELETE_CREDENTIALS = """
    update staff
    set password_hash = null, second_factor_sealed = null, offered_factor_sealed = null
    where id = $1
"""
# The step never goes back, so a code that was used once is never accepted again.
_UPDATE_SECOND_FACTOR = """
    update staff
    set second_factor_sealed = $2, offered_factor_sealed = null,
        second_factor_step = greatest(second_factor_step, $3)
    where id = $1
"""
_LIST_SECOND_FACTORS = """
    select id, second_factor_sealed, offered_factor_sealed from staff
    where second_factor_sealed is not null or offered_factor_sealed is not null
    order by id for no key update
"""
_CREDENTIALS_VERSION = """
    select encode(sha256(convert_to(concat(password_hash, ' ', setup_link.token_hash), 'UTF8')), 'hex')
    from staff left join setup_link on setup_link.staff_id = staff.id
    where staff.id = $1
"""
_REPLACE_FACTORS = "update staff set second_factor_sealed = $2, offered_factor_sealed = $3 where id = $1"


class Account(NamedTuple):
    staff: Staff
    password_hash: str | None
    factor_sealed: bytes | None
    used_step: int
    """The last time step whose code was accepted."""
    offered_sealed: bytes | None
    """A second factor that is not confirmed yet."""
    read_at: datetime


async def insert(
    connection: Connection, staff_id: UUID, email: str, name: str, role: Role, password_hash: str | None
) -> Staff:
    row = await connection.fetchrow(_INSERT, staff_id, email, email_key(email), name, role, password_hash)
    if row is None:
        raise StaffExists(email)
    return read_staff(row)


async def find(connection: Connection, staff_id: UUID, *, lock: bool = False) -> Staff | None:
    row = await connection.fetchrow(_FIND_LOCKED if lock else _FIND, staff_id)
    return read_staff(row) if row else None


async def find_by_email(connection: Connection, email: str) -> Staff | None:
    row = await connection.fetchrow(_FIND_BY_EMAIL, email_key(email))
    return read_staff(row) if row else None


async def credentials_version(connection: Connection, staff_id: UUID) -> str:
    """Return a hash of the password hash and the set-up link."""
    return await connection.fetchval(_CREDENTIALS_VERSION, staff_id) or ""


async def list_page(connection: Connection, after: tuple[datetime, UUID], limit: int) -> list[Staff]:
    return [read_staff(row) for row in await connection.fetch(_LIST_PAGE, *after, limit)]


async def find_account(connection: Connection, staff_id: UUID, *, lock: bool = False) -> Account | None:
    row = await connection.fetchrow(_ACCOUNT_LOCKED if lock else _ACCOUNT_BY_ID, staff_id)
    return Account(read_staff(row), *row[STAFF_WIDTH:]) if row else None


async def find_account_by_email(connection: Connection, email: str) -> Account | None:
    row = await connection.fetchrow(_ACCOUNT_BY_EMAIL, email_key(email))
    return Account(read_staff(row), *row[STAFF_WIDTH:]) if row else None


async def has_staff(connection: Connection) -> bool:
    return bool(await connection.fetchval("select exists (select from staff)"))


async def lock_admins(connection: Connection) -> list[Staff]:
    return [read_staff(row) for row in await connection.fetch(_LOCK_ADMINS)]


async def update(connection: Connection, staff_id: UUID, name: str, role: Role, is_disabled: bool) -> Staff:
    return read_staff(await fetch_one(connection, _UPDATE, staff_id, name, role, is_disabled))


async def update_preferences(connection: Connection, staff_id: UUID, preferences: Preferences) -> Staff:
    return read_staff(await fetch_one(connection, _UPDATE_PREFERENCES, staff_id, *preferences))


async def update_password(connection: Connection, staff_id: UUID, password_hash: str) -> None:
    await connection.execute("update staff set password_hash = $2 where id = $1", staff_id, password_hash)


async def record_login(
    connection: Connection, staff_id: UUID, step: int, password_hash: str | None = None
) -> None:
    """``password_hash`` replaces a hash with outdated parameters."""
    await connection.execute(_RECORD_LOGIN, staff_id, step, password_hash)


async def delete_credentials(connection: Connection, staff_id: UUID) -> None:
    await connection.execute(_DELETE_CREDENTIALS, staff_id)


async def offer_second_factor(connection: Connection, staff_id: UUID, sealed: bytes | None) -> None:
    await connection.execute("update staff set offered_factor_sealed = $2 where id = $1", staff_id, sealed)


async def update_second_factor(
    connection: Connection, staff_id: UUID, sealed: bytes | None, step: int = 0
) -> None:
    await connection.execute(_UPDATE_SECOND_FACTOR, staff_id, sealed, step)


async def lock_second_factors(connection: Connection) -> list[tuple[UUID, bytes | None, bytes | None]]:
    return [(row[0], row[1], row[2]) for row in await connection.fetch(_LIST_SECOND_FACTORS)]


async def replace_second_factors(
    connection: Connection, staff_id: UUID, factor: bytes | None, offered: bytes | None
) -> None:
    await connection.execute(_REPLACE_FACTORS, staff_id, factor, offered)


def read_staff(columns: Row) -> Staff:
    """Read the values of ``STAFF_COLUMNS``; others may follow."""
    staff_id, email, name, role, language, digits, theme, *rest = columns[:STAFF_WIDTH]
    return Staff(staff_id, email, name, Role(role), Preferences(language, digits, Theme(theme)), *rest)
