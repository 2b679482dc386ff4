"""Set-up links: by one of them a person chooses their password, once."""

from __future__ import annotations

import secrets
from typing import NamedTuple
from uuid import UUID, uuid4

from holdfast.domain.api_key import token_hash
from holdfast.domain.audit import ActorKind, Author, Change
from holdfast.domain.errors import SetupLinkRefused
from holdfast.domain.login import password_fault
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Staff, email_fault, staff_name_fault
from holdfast.operations.passwords import Passwords
from holdfast.operations.refusing import refuse
from holdfast.operations.staff_entries import creation, record
from holdfast.storage import login, sessions, staff
from holdfast.storage.database import Connection, Database

SETUP_PATH = "/backoffice/set-up/"
GOOD_FOR_HOURS = 24

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
    await login.replace_setup_link(connection, token_hash(token), staff_id, GOOD_FOR_HOURS)
    return token


async def offer_first_link(database: Database) -> str | None:
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
            raise SetupLinkRefused
        refuse(password_fault(password, person.email))
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
            raise SetupLinkRefused
        refuse(email_fault(email), staff_name_fault(name), password_fault(password, email))
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
        raise SetupLinkRefused
    if found.staff_id is None:
        if await staff.is_anybody_there(connection):
            raise SetupLinkRefused
        return Invitation(None)
    person = await staff.find(connection, found.staff_id)
    if person is None or person.disabled_at is not None:
        raise SetupLinkRefused
    return Invitation(person)


async def _use_up(connection: Connection, token: str) -> None:
    """Of two who use it at the same time, one finds it gone."""
    invitation = await _invitation(connection, token)
    if not await login.use_setup_link(connection, token_hash(token)):
        raise SetupLinkRefused
    if invitation.staff is None and await staff.is_anybody_there(connection):
        raise SetupLinkRefused
