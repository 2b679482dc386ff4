"""Members of staff: administered by admins, set up by a link, and changed by themselves."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
from msgspec import Meta

from holdfast.domain import errors
from holdfast.domain.api_key import token_hash
from holdfast.domain.audit import ActorKind, Author, Change
from holdfast.domain.login import password_fault, subjects_of_browser
from holdfast.domain.permissions import Role
from holdfast.domain.project import name_fault
from holdfast.domain.staff import Preferences, Staff, email_fault, email_key
from holdfast.operations.documents import Document, Time
from holdfast.operations.login import (
    Passwords,
    accepted_step,
    check_password,
    common_passwords,
    count_attempt,
    new_secret,
    reset_attempts,
)
from holdfast.storage import audit, login, staff
from holdfast.storage.database import Connection, Database
from holdfast.storage.secrets import SecretBox
from holdfast.storage.staff import Account

SETUP_PATH = "/backoffice/set-up/"
SETUP_LINK_HOURS = 24

_TOKEN_BYTES = 32
_TOKEN_LENGTH = 43
_AUDITED_FIELDS = ("name", "role", "disabled_at")
_FIRST_PAGE = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
_PAGE_SIZE = 1000
_WRONG_PASSWORD = "The password is incorrect."  # noqa: S105
_WRONG_CODE = "The code is incorrect. Enter the code that the app shows now."
_WRONG_OR_USED_CODE = "This code is incorrect or was already used. Wait for the next one."
_ADDED = (
    "This person was already added. The set-up link is shown only once: if you did not copy it, make a new "
    "one."
)
_CREDENTIALS_CHANGED = (
    "Nothing was done: a set-up link was made or used since this page was opened. A link is shown only once; "
    "make a new one if you need it."
)
_FACTOR_REQUIRED = "Your role requires a second factor."


class Invited(NamedTuple):
    staff: Staff
    token: str
    """Of the set-up link, displayed once."""


class StaffAccounts:
    """Operations of admins on staff, and of people whom a set-up link lets choose a password, once."""

    def __init__(self, database: Database, passwords: Passwords | None = None) -> None:
        self._database = database
        self._passwords = passwords or Passwords()

    async def page(self, after: tuple[datetime, UUID] | None, limit: int) -> list[Staff]:
        """Return one more than ``limit``, if there is one; the oldest first."""
        return await self._database.read(staff.list_page, after or _FIRST_PAGE, limit + 1)

    async def all(self) -> list[Staff]:
        people: list[Staff] = []
        while page := await self.page((people[-1].created_at, people[-1].id) if people else None, _PAGE_SIZE):
            people += page
        return people

    async def find(self, staff_id: UUID) -> Staff:
        return _check_found(await self._database.read(staff.find, staff_id), staff_id)

    async def find_by_email(self, email: str) -> Staff:
        if email_fault(email.strip()) is not None:
            raise errors.UnknownStaff(email)
        return _check_found(await self._database.read(staff.find_by_email, email), email)

    async def invite(
        self, email: str, name: str, role: Role, author: Author, staff_id: UUID | None = None
    ) -> Invited:
        """``staff_id``: of a request that may be sent again."""
        email, name = email.strip(), name.strip()
        errors.raise_faults([email_fault(email), name_fault(name)])
        acknowledging = self._database.acknowledging(errors.StaffExists, errors.IdempotencyKeyUsed)
        async with acknowledging, self._database.writing() as connection:
            person = await _insert(connection, email, name, role, None, author, staff_id)
            return Invited(person, await _replace_setup_link(connection, person.id))

    async def add(self, email: str, name: str, role: Role, password: str, author: Author) -> Staff:
        """Add a person with a password, who needs no set-up link."""
        email, name = email.strip(), name.strip()
        faults = [email_fault(email), name_fault(name)]
        errors.raise_faults([*faults, password_fault(password, name, email, common_passwords())])
        password_hash = await self._passwords.hash(password)
        async with self._database.acknowledging(errors.StaffExists), self._database.writing() as connection:
            return await _insert(connection, email, name, role, password_hash, author)

    async def change(self, staff_id: UUID, changes: Mapping[str, Any], author: Author) -> Staff:
        """``changes``: name, role, disabled. A person whose role changes or who is disabled is signed out."""
        errors.raise_faults([name_fault(changes["name"]) if "name" in changes else None])
        async with self._database.writing() as connection:
            admins = await staff.lock_admins(connection)
            before = _check_found(await staff.find(connection, staff_id, lock=True), staff_id)
            name, role = changes.get("name", before.name), changes.get("role", before.role)
            is_disabled = changes.get("disabled", before.disabled_at is not None)
            if (name, role, is_disabled) == (before.name, before.role, before.disabled_at is not None):
                return before
            if is_disabled or role is not Role.ADMIN:
                _check_not_last_admin(before, admins)
            after = await staff.update(connection, staff_id, name, role, is_disabled)
            if after.disabled_at is not None:
                await login.delete_setup_link(connection, staff_id)
            if (before.role, before.disabled_at) != (after.role, after.disabled_at):
                await login.delete_sessions(connection, staff_id)
            change = Change.between(before, after, _AUDITED_FIELDS)
            await audit.record(connection, staff_id, author, "change", change)
        return after

    async def credentials_version(self, staff_id: UUID) -> str:
        """Return a text that is another one after each new set-up link and each new password."""
        return await self._database.read(staff.credentials_version, staff_id)

    async def reset(self, staff_id: UUID, author: Author, seen_version: str | None = None) -> Invited:
        """Delete password and second factor, end the sessions, and make a new set-up link.

        With ``seen_version`` fail if the ``credentials_version`` is another one now.
        """
        acknowledging = self._database.acknowledging(errors.IdempotencyKeyUsed)
        async with acknowledging, self._database.writing() as connection:
            person = _check_found(await staff.find(connection, staff_id, lock=True), staff_id)
            if seen_version not in (None, await staff.credentials_version(connection, staff_id)):
                raise errors.IdempotencyKeyUsed(_CREDENTIALS_CHANGED)
            await staff.delete_credentials(connection, staff_id)
            await login.delete_sessions(connection, staff_id)
            await audit.record(connection, staff_id, author, "reset", Change({}, {}))
            token = await _replace_setup_link(connection, staff_id)
        return Invited(person._replace(has_password=False, has_second_factor=False), token)

    async def find_invited(self, token: str) -> Staff | None:
        """Return None for the first admin, who is yet to be added. The link stays valid, since programs that
        preview links open it, too."""
        return await self._database.read(_find_invited, token)

    async def choose_password(
        self, token: str, password: str, request_id: str | None, language: str | None = None
    ) -> Staff:
        """``language`` becomes the preference of a person who has never signed in."""
        person = await self.find_invited(token)
        if person is None:
            raise errors.InvalidSetupLink
        errors.raise_faults([password_fault(password, person.name, person.email, common_passwords())])
        password_hash = await self._passwords.hash(password)
        async with self._database.writing() as connection:
            await _use_link(connection, token)
            await staff.update_password(connection, person.id, password_hash)
            if person.last_signed_in_at is None:
                await _set_language(connection, person, language)
            await login.delete_sessions(connection, person.id)
            author = Author(ActorKind.STAFF, person.email, request_id)
            await audit.record(connection, person.id, author, "set-up", Change({}, {}))
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
        if await self.find_invited(token) is not None:
            raise errors.InvalidSetupLink
        faults = [email_fault(email), name_fault(name)]
        errors.raise_faults([*faults, password_fault(password, name, email, common_passwords())])
        password_hash = await self._passwords.hash(password)
        async with self._database.writing() as connection:
            await _use_link(connection, token)
            author = Author(ActorKind.STAFF, email, request_id)
            person = await _insert(connection, email, name, Role.ADMIN, password_hash, author)
            await _set_language(connection, person, language)
        return person


async def _insert(
    connection: Connection,
    email: str,
    name: str,
    role: Role,
    password_hash: str | None,
    author: Author,
    staff_id: UUID | None = None,
) -> Staff:
    """Insert a person, after which the link for the first admin is no longer valid."""
    await login.delete_setup_link(connection, None)
    staff_id = staff_id or uuid4()
    try:
        person = await staff.insert(connection, staff_id, email, name, role, password_hash)
    except errors.StaffExists:
        if await staff.find(connection, staff_id) is not None:
            raise errors.IdempotencyKeyUsed(_ADDED, made_id=staff_id) from None
        raise
    created = Change(None, {"email": person.email, "name": person.name, "role": person.role})
    await audit.record(connection, person.id, author, "create", created)
    return person


def _check_not_last_admin(person: Staff, admins: Sequence[Staff]) -> None:
    """An admin who can sign in must remain, unless this one could not sign in either."""
    if person not in admins:
        return
    others = [admin for admin in admins if admin != person]
    if not any(admin.has_password or not person.has_password for admin in others):
        raise errors.LastAdmin


def _check_found(person: Staff | None, name: object) -> Staff:
    if person is None:
        raise errors.UnknownStaff(name)
    return person


def setup_url(public_url: str, token: str) -> str:
    return f"{public_url}{SETUP_PATH}{token}"


async def create_first_setup_link(database: Database) -> str | None:
    """Return the token for the first admin, while there is no staff."""
    async with database.writing() as connection:
        if await staff.has_staff(connection):
            return None
        return await _replace_setup_link(connection, None)


async def _replace_setup_link(connection: Connection, staff_id: UUID | None) -> str:
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    await login.replace_setup_link(connection, token_hash(token), staff_id, SETUP_LINK_HOURS)
    return token


async def _set_language(connection: Connection, person: Staff, language: str | None) -> None:
    if language is not None:
        preferences = person.preferences._replace(language=language)
        await staff.update_preferences(connection, person.id, preferences)


async def _find_invited(connection: Connection, token: str) -> Staff | None:
    is_token = len(token) == _TOKEN_LENGTH and token.isascii()
    link = await login.find_setup_link(connection, token_hash(token)) if is_token else None
    if link is None:
        raise errors.InvalidSetupLink
    (staff_id,) = link
    if staff_id is None:
        if await staff.has_staff(connection):
            raise errors.InvalidSetupLink
        return None
    person = await staff.find(connection, staff_id)
    if person is None or person.disabled_at is not None:
        raise errors.InvalidSetupLink
    return person


async def _use_link(connection: Connection, token: str) -> None:
    """Delete the link; the second of two concurrent requests fails."""
    person = await _find_invited(connection, token)
    if not await login.use_setup_link(connection, token_hash(token)):
        raise errors.InvalidSetupLink
    if person is None and await staff.has_staff(connection):
        raise errors.InvalidSetupLink


class OwnAccount(NamedTuple):
    staff: Staff
    session_id: UUID
    author: Author


class Accounts:
    """Operations of people on their own account.

    Most need the password, with its attempts counted: a session that was left open must let nobody find out
    the password, nor lock its owner out.
    """

    def __init__(
        self,
        database: Database,
        box: SecretBox,
        passwords: Passwords | None = None,
        factor_roles: Collection[Role] = (),
    ) -> None:
        """``factor_roles``: the roles that require a second factor."""
        self._database = database
        self._box = box
        self._passwords = passwords or Passwords()
        self._factor_roles = factor_roles

    def requires_factor(self, person: Staff) -> bool:
        return person.role in self._factor_roles

    def lacks_factor(self, person: Staff) -> bool:
        """Return whether a person has yet to set up the second factor that their role requires."""
        return self.requires_factor(person) and not person.has_second_factor

    async def rename(self, own: OwnAccount, name: str) -> Staff:
        name = name.strip()
        errors.raise_faults([name_fault(name)])
        async with self._database.writing() as connection:
            before = (await _lock_account(connection, own)).staff
            if name == before.name:
                return before
            is_disabled = before.disabled_at is not None
            after = await staff.update(connection, before.id, name, before.role, is_disabled)
            change = Change.between(before, after, _AUDITED_FIELDS)
            await audit.record(connection, before.id, own.author, "change", change)
        return after

    async def set_preferences(self, staff_id: UUID, preferences: Preferences) -> Staff:
        return await self._database.write(staff.update_preferences, staff_id, preferences)

    async def change_password(self, own: OwnAccount, old: str, new: str) -> None:
        """Change the password, and end all other sessions."""
        name, email = own.staff.name, own.staff.email
        errors.raise_faults([password_fault(new, name, email, common_passwords(), "/newPassword")])
        await self._check_password(own, old)
        password_hash = await self._passwords.hash(new)
        async with self._database.writing() as connection:
            await _lock_account(connection, own)
            await staff.update_password(connection, own.staff.id, password_hash)
            await login.delete_sessions(connection, own.staff.id, own.session_id)
            await audit.record(connection, own.staff.id, own.author, "change-password", Change({}, {}))

    async def offer_factor(self, own: OwnAccount, password: str) -> None:
        """Make a secret to be confirmed, unless there is a second factor already."""
        await self._check_password(own, password)
        async with self._database.writing() as connection:
            account = await _lock_account(connection, own)
            if account.factor_sealed is None:
                await staff.offer_second_factor(connection, own.staff.id, self._box.seal(new_secret()))

    async def offered_factor(self, staff_id: UUID) -> str | None:
        """Return the secret that is to be confirmed."""
        account = await self._database.read(staff.find_account, staff_id)
        sealed = None if account is None else account.offered_sealed
        return None if sealed is None else self._box.open(sealed)

    async def confirm_factor(self, own: OwnAccount, code: str) -> None:
        """Set the offered second factor, and end all other sessions, which were opened without it."""
        async with self._database.writing() as connection:
            account = await _lock_account(connection, own)
            sealed = account.offered_sealed
            step = None if sealed is None else accepted_step(self._box.open(sealed), code, account.read_at, 0)
            if step is None:
                raise errors.InvalidInput.at("/code", _WRONG_CODE)
            await staff.update_second_factor(connection, own.staff.id, sealed, step)
            await login.delete_sessions(connection, own.staff.id, own.session_id)
            change = Change({"second_factor": False}, {"second_factor": True})
            await audit.record(connection, own.staff.id, own.author, "set-second-factor", change)

    async def remove_factor(self, own: OwnAccount, password: str, code: str) -> None:
        """Remove the second factor, and end all other sessions. Codes are counted on their own, so that a
        right password does not reset the count of wrong ones."""
        if self.requires_factor(own.staff):
            raise errors.InvalidInput.at("/code", _FACTOR_REQUIRED)
        await self._check_password(own, password)
        subjects = subjects_of_browser(f"{email_key(own.staff.email)}\ncode", own.session_id)
        await count_attempt(self._database, subjects)
        async with self._database.writing() as connection:
            account = await _lock_account(connection, own)
            await reset_attempts(connection, subjects)
            if account.factor_sealed is None:
                return
            secret = self._box.open(account.factor_sealed)
            step = accepted_step(secret, code, account.read_at, account.used_step)
            if step is None:
                raise errors.InvalidInput.at("/code", _WRONG_OR_USED_CODE)
            await staff.update_second_factor(connection, own.staff.id, None, step)
            await login.delete_sessions(connection, own.staff.id, own.session_id)
            change = Change({"second_factor": True}, {"second_factor": False})
            await audit.record(connection, own.staff.id, own.author, "remove-second-factor", change)

    async def reencrypt(self) -> int:
        """Encrypt every second factor with the first key, so that the other keys can be dropped."""
        async with self._database.writing() as connection:
            rows = await staff.lock_second_factors(connection)
            for staff_id, *factors in rows:
                sealed = [factor and self._box.seal(self._box.open(factor)) for factor in factors]
                await staff.replace_second_factors(connection, staff_id, *sealed)
        return len(rows)

    async def _check_password(self, own: OwnAccount, password: str) -> None:
        subjects = subjects_of_browser(email_key(own.staff.email), own.session_id)
        await count_attempt(self._database, subjects)
        account = await self._database.read(staff.find_account, own.staff.id)
        is_right = account is not None and await check_password(
            self._database, self._passwords, account, password, subjects
        )
        if not is_right:
            raise errors.InvalidInput.at("/password", _WRONG_PASSWORD)
        async with self._database.writing() as connection:
            await reset_attempts(connection, subjects)


async def _lock_account(connection: Connection, own: OwnAccount) -> Account:
    account = await staff.find_account(connection, own.staff.id, lock=True)
    if account is None:
        raise errors.UnknownStaff(own.staff.id)
    return account


class StaffDocument(Document):
    """A person of the back office."""

    id: Annotated[UUID, "The person's id."]
    email: Annotated[str, "The address with which the person signs in. It is not case-sensitive."]
    name: Annotated[str, "How others see the person."]
    role: Annotated[Role, "What the person may do."]
    set_up: Annotated[bool, "Whether the person has chosen a password."]
    second_factor: Annotated[bool, "Whether the person signs in with a code as well."]
    created_at: Time
    disabled_at: Annotated[Time | None, "When the person was disabled; null if they are not."]
    last_signed_in_at: Annotated[Time | None, "When the person last signed in; null if they never did."]


class InvitedStaffDocument(StaffDocument):
    """A person with a set-up link."""

    setup_url: Annotated[
        str,
        f"On this page the person chooses a password, once, within {SETUP_LINK_HOURS} hours. "
        "It is in this response and in no other.",
        Meta(extra_json_schema={"format": "uri"}),
    ]


def staff_document(person: Staff) -> StaffDocument:
    return StaffDocument.fill(person, set_up=person.has_password, second_factor=person.has_second_factor)


def invited_staff_document(person: Staff, setup_url: str) -> InvitedStaffDocument:
    return InvitedStaffDocument(**msgspec.structs.asdict(staff_document(person)), setup_url=setup_url)
