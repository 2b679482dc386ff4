"""What admins do with staff: add, change, disable, reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from holdfast.domain.audit import Author, Change
from holdfast.domain.errors import LastAdmin, UnknownStaff
from holdfast.domain.login import password_fault
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Staff, email_fault, staff_name_fault
from holdfast.operations.passwords import Passwords
from holdfast.operations.refusing import refuse
from holdfast.operations.setup_links import new_link
from holdfast.operations.staff_entries import creation, difference, record
from holdfast.storage import login, sessions, staff
from holdfast.storage.database import Connection, Database

_START = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
_A_PAGE = 1000


class Invited(NamedTuple):
    staff: Staff
    token: str
    """Of the set-up link, displayed once."""


class Staffing:
    def __init__(self, database: Database, passwords: Passwords | None = None) -> None:
        self._database = database
        self._passwords = passwords or Passwords()

    async def page(self, after: tuple[datetime, UUID] | None, limit: int) -> list[Staff]:
        """One more than ``limit``, if there is one; the oldest first."""
        async with self._database.reading() as connection:
            return await staff.page(connection, after or _START, limit + 1)

    async def all(self) -> list[Staff]:
        found: list[Staff] = []
        while page := await self.page((found[-1].created_at, found[-1].id) if found else None, _A_PAGE):
            found += page
        return found

    async def find(self, staff_id: UUID) -> Staff:
        async with self._database.reading() as connection:
            return _known(await staff.find(connection, staff_id), staff_id)

    async def find_by_email(self, email: str) -> Staff:
        if email_fault(email.strip()) is not None:
            raise UnknownStaff(email)
        async with self._database.reading() as connection:
            return _known(await staff.find_by_email(connection, email), email)

    async def invite(self, email: str, name: str, role: Role, author: Author) -> Invited:
        email, name = email.strip(), name.strip()
        refuse(email_fault(email), staff_name_fault(name))
        async with self._database.writing() as connection:
            person = await _insert(connection, email, name, role, None, author)
            return Invited(person, await new_link(connection, person.id))

    async def add(self, email: str, name: str, role: Role, password: str, author: Author) -> Staff:
        """Somebody who need not choose a password."""
        email, name = email.strip(), name.strip()
        refuse(email_fault(email), staff_name_fault(name), password_fault(password, email))
        password_hash = await self._passwords.hash(password)
        async with self._database.writing() as connection:
            return await _insert(connection, email, name, role, password_hash, author)

    async def change(self, staff_id: UUID, changes: Mapping[str, Any], author: Author) -> Staff:
        """Of ``name``, ``role`` and ``disabled`` what is named; the same again changes nothing.

        Who loses a role, or everything, is signed out.
        """
        refuse(staff_name_fault(changes["name"]) if "name" in changes else None)
        async with self._database.writing() as connection:
            admins = await staff.lock_admins(connection)
            before = _known(await staff.find_locked(connection, staff_id), staff_id)
            name, role = changes.get("name", before.name), changes.get("role", before.role)
            is_disabled = changes.get("disabled", before.disabled_at is not None)
            if (name, role, is_disabled) == (before.name, before.role, before.disabled_at is not None):
                return before
            if is_disabled or role is not Role.ADMIN:
                _refuse_last_admin(before, admins)
            after = await staff.update(connection, staff_id, name, role, is_disabled)
            await _end_what_was(connection, before, after)
            await record(connection, staff_id, author, "change", difference(before, after))
        return after

    async def reset(self, staff_id: UUID, author: Author) -> Invited:
        """Password and second factor are gone, sessions end; by the link a new password is chosen."""
        async with self._database.writing() as connection:
            person = _known(await staff.find_locked(connection, staff_id), staff_id)
            await staff.forget_credentials(connection, staff_id)
            await sessions.end_of_staff(connection, staff_id)
            await record(connection, staff_id, author, "reset", Change({}, {}))
            token = await new_link(connection, staff_id)
        return Invited(person._replace(has_password=False, has_second_factor=False), token)


async def _insert(
    connection: Connection, email: str, name: str, role: Role, password_hash: str | None, author: Author
) -> Staff:
    """The set-up link of the first admin is dead from now on."""
    await login.drop_setup_link(connection, None)
    person = await staff.insert(connection, uuid4(), email, name, role, password_hash)
    await record(connection, person.id, author, "create", creation(person))
    return person


async def _end_what_was(connection: Connection, before: Staff, after: Staff) -> None:
    if after.disabled_at is not None:
        await login.drop_setup_link(connection, after.id)
    if (before.role, before.disabled_at) != (after.role, after.disabled_at):
        await sessions.end_of_staff(connection, after.id)


def _refuse_last_admin(person: Staff, admins: Sequence[Staff]) -> None:
    """Those who have not used their set-up link yet do not count beside somebody who can sign in."""
    if person not in admins:
        return
    others = [admin for admin in admins if admin != person]
    if not any(admin.has_password or not person.has_password for admin in others):
        raise LastAdmin


def _known(person: Staff | None, named: object) -> Staff:
    if person is None:
        raise UnknownStaff(named)
    return person
