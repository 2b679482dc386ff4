"""What people do with their own account: name, preferences, password, second factor."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from holdfast.domain.audit import Author, Change
from holdfast.domain.errors import InvalidInput, TooManyAttempts, UnknownStaff, raise_faults
from holdfast.domain.login import Counted, password_fault, subject
from holdfast.domain.staff import Preferences, Staff, email_key, staff_name_fault
from holdfast.operations.credentials import Passwords, accepted_step, new_secret
from holdfast.operations.login import Subjects, count_attempt, forgive_attempts, take_back_attempt
from holdfast.operations.staff import difference, record
from holdfast.storage import sessions, staff
from holdfast.storage.database import Connection, Database
from holdfast.storage.secrets import SecretBox
from holdfast.storage.staff import Account

_WRONG_PASSWORD = "This is not your password."  # noqa: S105
_WRONG_CODE = "This is not the code that the app shows now."


class OwnAccount(NamedTuple):
    """Who does it, and from where."""

    staff: Staff
    session_id: UUID
    address: str
    author: Author


class Accounts:
    def __init__(self, database: Database, box: SecretBox, passwords: Passwords | None = None) -> None:
        self._database = database
        self._box = box
        self._passwords = passwords or Passwords()

    async def rename(self, who: OwnAccount, name: str) -> Staff:
        name = name.strip()
        raise_faults([staff_name_fault(name)])
        async with self._database.writing() as connection:
            before = (await _locked(connection, who)).staff
            if name == before.name:
                return before
            after = await staff.update(
                connection, before.id, name, before.role, before.disabled_at is not None
            )
            await record(connection, before.id, who.author, "change", difference(before, after))
        return after

    async def prefer(self, staff_id: UUID, preferences: Preferences) -> Staff:
        async with self._database.writing_autocommit() as connection:
            return await staff.prefer(connection, staff_id, preferences)

    async def change_password(self, who: OwnAccount, old: str, new: str) -> None:
        """All other sessions end."""
        raise_faults([password_fault(new, who.staff.email, "/newPassword")])
        await self._prove(who, old)
        password_hash = await self._passwords.hash(new)
        async with self._database.writing() as connection:
            await _locked(connection, who)
            await staff.set_password(connection, who.staff.id, password_hash)
            await sessions.end_of_staff(connection, who.staff.id, who.session_id)
            await record(connection, who.staff.id, who.author, "change-password", Change({}, {}))

    async def offer_factor(self, who: OwnAccount, password: str) -> None:
        """A new secret, which counts once it is confirmed. An old one has to be removed first.

        With the password: whoever has found an open session must not lock its owner out.
        """
        await self._prove(who, password)
        async with self._database.writing() as connection:
            account = await _locked(connection, who)
            if account.factor_sealed is None:
                await staff.offer_factor(connection, who.staff.id, self._box.seal(new_secret()))

    async def offered_factor(self, staff_id: UUID) -> str | None:
        """The secret that is to be confirmed; a page that is loaded again shows it again."""
        async with self._database.reading() as connection:
            account = await staff.account(connection, staff_id)
        sealed = None if account is None else account.offered_sealed
        return None if sealed is None else self._box.open(sealed)

    async def confirm_factor(self, who: OwnAccount, code: str) -> None:
        """All other sessions end: they were opened without it."""
        async with self._database.writing() as connection:
            account = await _locked(connection, who)
            sealed = account.offered_sealed
            step = None if sealed is None else self._step(account, sealed, code)
            if step is None:
                raise InvalidInput.at("/code", _WRONG_CODE)
            await staff.set_factor(connection, who.staff.id, sealed, step)
            await sessions.end_of_staff(connection, who.staff.id, who.session_id)
            change = Change({"second_factor": False}, {"second_factor": True})
            await record(connection, who.staff.id, who.author, "set-second-factor", change)

    async def remove_factor(self, who: OwnAccount, password: str) -> None:
        await self._prove(who, password)
        async with self._database.writing() as connection:
            account = await _locked(connection, who)
            if not account.staff.has_second_factor:
                return
            await staff.set_factor(connection, who.staff.id, None)
            change = Change({"second_factor": True}, {"second_factor": False})
            await record(connection, who.staff.id, who.author, "remove-second-factor", change)

    async def seal_anew(self) -> int:
        """Encrypt every second factor with the first key, so that the others can be given up."""
        async with self._database.writing() as connection:
            sealed = await staff.sealed_factors(connection)
            for staff_id, *factors in sealed:
                anew = [factor and self._box.seal(self._box.open(factor)) for factor in factors]
                await staff.seal_anew(connection, staff_id, *anew)
        return len(sealed)

    async def _prove(self, who: OwnAccount, password: str) -> None:
        """Whoever has found an open session must not find out the password by trying."""
        subjects = (
            subject(Counted.ACCOUNT, email_key(who.staff.email)),
            subject(Counted.ADDRESS, who.address),
        )
        await count_attempt(self._database, subjects)
        async with self._database.reading() as connection:
            account = await staff.account(connection, who.staff.id)
        if account is None or not await self._is_right(account, password, subjects):
            raise InvalidInput.at("/password", _WRONG_PASSWORD)
        async with self._database.writing() as connection:
            await forgive_attempts(connection, subjects)

    async def _is_right(self, account: Account, password: str, subjects: Subjects) -> bool:
        try:
            return await self._passwords.is_right(account.password_hash, password)
        except TooManyAttempts:
            await take_back_attempt(self._database, subjects)
            raise

    def _step(self, account: Account, sealed: bytes, code: str) -> int | None:
        return accepted_step(self._box.open(sealed), code, account.read_at, 0)


async def _locked(connection: Connection, who: OwnAccount) -> Account:
    account = await staff.account_locked(connection, who.staff.id)
    if account is None:
        raise UnknownStaff(who.staff.id)
    return account
