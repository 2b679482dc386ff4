"""What is written down of changes of staff: never a secret, never how somebody likes their pages."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID, uuid4

from msgspec import Meta

from holdfast.domain.api_key import token_hash
from holdfast.domain.audit import ActorKind, AuditEntry, Author, Change
from holdfast.domain.errors import InvalidSetupLink, LastAdmin, UnknownStaff, raise_faults
from holdfast.domain.login import password_fault
from holdfast.domain.permissions import Role
from holdfast.domain.spelling import format_timestamp
from holdfast.domain.staff import Staff, email_fault, staff_name_fault
from holdfast.operations.credentials import Passwords
from holdfast.operations.documents import Document, Time, optional_moment_text
from holdfast.storage import audit, login, sessions, staff
from holdfast.storage.database import Connection, Database

_NAMES = ("name", "role", "disabled_at")


async def record(connection: Connection, staff_id: UUID, author: Author, action: str, change: Change) -> None:
    at = await audit.current_time(connection)
    await audit.insert(connection, AuditEntry(staff_id, None, at, author, action, None, change))


def creation(person: Staff) -> Change:
    return Change(None, {"email": person.email, "name": person.name, "role": person.role})


def difference(before: Staff, after: Staff) -> Change:
    names = [name for name in _NAMES if getattr(before, name) != getattr(after, name)]
    return Change(
        {name: getattr(before, name) for name in names}, {name: getattr(after, name) for name in names}
    )


# Set-up links: by one of them a person chooses their password, once.

SETUP_PATH = "/backoffice/set-up/"
SETUP_LINK_HOURS = 24

_TOKEN_BYTES = 32
_TOKEN_LENGTH = 43


class Invitation(NamedTuple):
    """What a valid link is for."""

    staff: Staff | None
    """None: the first admin, who is not there yet."""


def setup_url(public_url: str, token: str) -> str:
    return f"{public_url}{SETUP_PATH}{token}"


async def new_link(connection: Connection, staff_id: UUID | None) -> str:
    """The token of a link that takes the place of the last one."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    await login.replace_setup_link(connection, token_hash(token), staff_id, SETUP_LINK_HOURS)
    return token


async def create_first_setup_link(database: Database) -> str | None:
    """The token for the first admin, while there is no staff."""
    async with database.writing() as connection:
        if await staff.is_anybody_there(connection):
            return None
        return await new_link(connection, None)


class SetupLinks:
    def __init__(self, database: Database, passwords: Passwords | None = None) -> None:
        self._database = database
        self._passwords = passwords or Passwords()

    async def find(self, token: str) -> Invitation:
        """A look uses nothing up: programs that preview links look, too."""
        async with self._database.reading() as connection:
            return await _invitation(connection, token)

    async def choose_password(
        self, token: str, password: str, request_id: str | None, language: str | None = None
    ) -> Staff:
        """``language``: that of the page, in which newcomers are spoken to from then on."""
        person = (await self.find(token)).staff
        if person is None:
            raise InvalidSetupLink
        raise_faults([password_fault(password, person.email)])
        password_hash = await self._passwords.hash(password)
        async with self._database.writing() as connection:
            await _use_up(connection, token)
            await staff.set_password(connection, person.id, password_hash)
            if language is not None and person.last_signed_in_at is None:
                await staff.prefer(connection, person.id, person.preferences._replace(language=language))
            await sessions.end_of_staff(connection, person.id)
            author = Author(ActorKind.STAFF, person.email, request_id)
            await record(connection, person.id, author, "set-up", Change({}, {}))
        return person

    async def add_first_admin(
        self,
        token: str,
        email: str,
        name: str,
        password: str,
        request_id: str | None,
        language: str | None = None,
    ) -> Staff:
        email, name = email.strip(), name.strip()
        if (await self.find(token)).staff is not None:
            raise InvalidSetupLink
        raise_faults([email_fault(email), staff_name_fault(name), password_fault(password, email)])
        password_hash = await self._passwords.hash(password)
        async with self._database.writing() as connection:
            await _use_up(connection, token)
            person = await staff.insert(connection, uuid4(), email, name, Role.ADMIN, password_hash)
            if language is not None:
                await staff.prefer(connection, person.id, person.preferences._replace(language=language))
            author = Author(ActorKind.STAFF, email, request_id)
            await record(connection, person.id, author, "create", creation(person))
        return person


async def _invitation(connection: Connection, token: str) -> Invitation:
    is_token = len(token) == _TOKEN_LENGTH and token.isascii()
    found = await login.find_setup_link(connection, token_hash(token)) if is_token else None
    if found is None:
        raise InvalidSetupLink
    if found.staff_id is None:
        if await staff.is_anybody_there(connection):
            raise InvalidSetupLink
        return Invitation(None)
    person = await staff.find(connection, found.staff_id)
    if person is None or person.disabled_at is not None:
        raise InvalidSetupLink
    return Invitation(person)


async def _use_up(connection: Connection, token: str) -> None:
    """Of two who use it at the same time, one finds it gone."""
    invitation = await _invitation(connection, token)
    if not await login.use_setup_link(connection, token_hash(token)):
        raise InvalidSetupLink
    if invitation.staff is None and await staff.is_anybody_there(connection):
        raise InvalidSetupLink


# What admins do with staff: add, change, disable, reset.

_START = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
_A_PAGE = 1000


class Invited(NamedTuple):
    staff: Staff
    token: str
    """Of the set-up link, displayed once."""


class StaffAccounts:
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
        raise_faults([email_fault(email), staff_name_fault(name)])
        async with self._database.writing() as connection:
            person = await _insert(connection, email, name, role, None, author)
            return Invited(person, await new_link(connection, person.id))

    async def add(self, email: str, name: str, role: Role, password: str, author: Author) -> Staff:
        """Somebody who need not choose a password."""
        email, name = email.strip(), name.strip()
        raise_faults([email_fault(email), staff_name_fault(name), password_fault(password, email)])
        password_hash = await self._passwords.hash(password)
        async with self._database.writing() as connection:
            return await _insert(connection, email, name, role, password_hash, author)

    async def change(self, staff_id: UUID, changes: Mapping[str, Any], author: Author) -> Staff:
        """Of ``name``, ``role`` and ``disabled`` what is named; the same again changes nothing.

        Who loses a role, or everything, is signed out.
        """
        raise_faults([staff_name_fault(changes["name"]) if "name" in changes else None])
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


# Staff as JSON, in the back office and at the console.


class StaffDocument(Document):
    """A person of the back office."""

    id: Annotated[UUID, Meta(description="The person's id.")]
    email: Annotated[
        str, Meta(description="The address with which the person signs in. It is not case-sensitive.")
    ]
    name: Annotated[str, Meta(description="How others see the person.")]
    role: Annotated[Role, Meta(description="What the person may do.")]
    set_up: Annotated[bool, Meta(description="Whether the person has chosen a password.")]
    second_factor: Annotated[bool, Meta(description="Whether the person signs in with a code as well.")]
    created_at: Time
    disabled_at: Annotated[
        Time | None, Meta(description="When the person was disabled; null if they are not.")
    ]
    last_signed_in_at: Annotated[
        Time | None, Meta(description="When the person last signed in; null if they never did.")
    ]


class InvitedStaffDocument(StaffDocument):
    """A person with a set-up link."""

    setup_url: Annotated[
        str,
        Meta(
            description=f"On this page the person chooses a password, once, within {SETUP_LINK_HOURS} hours. "
            "It is in this response and in no other.",
            extra_json_schema={"format": "uri"},
        ),
    ]


def staff_document(person: Staff) -> StaffDocument:
    return StaffDocument(**_fields(person))


def invited_staff_document(person: Staff, setup_url: str) -> InvitedStaffDocument:
    return InvitedStaffDocument(**_fields(person), setup_url=setup_url)


def _fields(person: Staff) -> dict[str, Any]:
    return {
        "id": person.id,
        "email": person.email,
        "name": person.name,
        "role": person.role,
        "set_up": person.has_password,
        "second_factor": person.has_second_factor,
        "created_at": format_timestamp(person.created_at),
        "disabled_at": optional_moment_text(person.disabled_at),
        "last_signed_in_at": optional_moment_text(person.last_signed_in_at),
    }
