"""Between the password and the code of a sign-in: a sealed ticket, good for a few minutes."""

from __future__ import annotations

import hashlib
import logging
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

import msgspec

from holdfast.domain.api_key import token_hash
from holdfast.domain.errors import LoginFailed, SecondFactorNeeded, SecretsUnreadable, TooManyAttempts
from holdfast.domain.login import (
    FORGOTTEN_AFTER,
    Counted,
    remembered,
    subject,
    wait_before_next,
    with_one_more,
)
from holdfast.domain.staff import OpenSession, SessionTimes, Staff, email_fault, email_key
from holdfast.operations.credentials import Passwords, accepted_step
from holdfast.storage import login, sessions, staff
from holdfast.storage.database import Connection, Database
from holdfast.storage.secrets import SecretBox
from holdfast.storage.staff import Account

__all__ = ["Login", "NewSession", "OpenSession", "SessionTimes", "StaffSession"]


_GOOD_FOR = timedelta(minutes=5)
_LONGEST = 2000


class _Ticket(msgspec.Struct):
    staff_id: UUID
    password: str
    """Which one was right: with another one the ticket is worth nothing."""
    issued_at: datetime


class Tickets:
    """They stay in the form of the page, so that nothing is stored for those who never come back."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def issue(self, account: Account) -> str:
        ticket = _Ticket(account.staff.id, _mark(account), account.read_at)
        return self._box.seal(msgspec.json.encode(ticket).decode()).decode()

    def staff_id(self, text: str) -> UUID | None:
        ticket = self._read(text)
        return None if ticket is None else ticket.staff_id

    def is_for(self, text: str, account: Account) -> bool:
        ticket = self._read(text)
        return (
            ticket is not None
            and (ticket.staff_id, ticket.password) == (account.staff.id, _mark(account))
            and account.read_at - ticket.issued_at.astimezone(UTC) < _GOOD_FOR
        )

    def _read(self, text: str) -> _Ticket | None:
        if len(text) > _LONGEST or not text.isascii():
            return None
        try:
            return msgspec.json.decode(self._box.open(text.encode()), type=_Ticket)
        except (SecretsUnreadable, msgspec.DecodeError):
            return None


def _mark(account: Account) -> str:
    return hashlib.sha256((account.password_hash or "").encode()).hexdigest()


# Attempts to sign in are counted before they are made, and taken back when they succeed.

Subjects = tuple[bytes, bytes]
"""An account and an address, always in this order: so nobody waits for one who waits for them."""


async def count_attempt(database: Database, subjects: Subjects) -> None:
    """An attempt that is refused is not counted: who only waits is let in at the end of the wait."""
    async with database.writing() as connection:
        await login.forget_old_attempts(connection, FORGOTTEN_AFTER)
        found = [await login.lock_attempts(connection, subject) for subject in subjects]
        now = found[-1].now
        standing = [remembered(kind, one.attempts, now) for kind, one in zip(Counted, found, strict=True)]
        wait = max(wait_before_next(kind, one, now) for kind, one in zip(Counted, standing, strict=True))
        if wait:
            raise TooManyAttempts(wait.total_seconds())
        for subject, one in zip(subjects, standing, strict=True):
            await login.store_attempts(connection, subject, with_one_more(one, now))


async def take_back_attempt(database: Database, subjects: Subjects) -> None:
    """Half a success: what failed before is not forgiven."""
    async with database.writing() as connection:
        await login.take_back_attempt(connection, subjects)


async def forgive_attempts(connection: Connection, subjects: Subjects) -> None:
    """The account starts anew. The address does not: its other accounts may be under attack."""
    account, address = subjects
    await login.forget_attempts(connection, account)
    await login.take_back_attempt(connection, [address])


# Sessions of staff: opened, found, ended.

_TOKEN_BYTES = 32
_TOKEN_LENGTH = 43
_LONGEST_AGENT = 300

_log = logging.getLogger(__name__)


class StaffSession(NamedTuple):
    staff: Staff
    session_id: UUID
    notice: str | None
    """Left for the next page."""
    at: datetime
    """When it was looked, by the database's clock."""


class NewSession(NamedTuple):
    token: str
    """For the cookie; never stored."""
    staff: Staff


class _Visitor(NamedTuple):
    address: str
    agent: str


class Login:
    def __init__(
        self, database: Database, box: SecretBox, times: SessionTimes, passwords: Passwords | None = None
    ) -> None:
        self._database = database
        self._box = box
        self._times = times
        self._passwords = passwords or Passwords()
        self._tickets = Tickets(box)

    async def find(
        self, token: str, *, takes_notice: bool = True, is_click: bool = True
    ) -> StaffSession | None:
        """Whoever shows no page leaves the notice where it is. What a page asks by itself is no click: it
        must not keep open the session of somebody who has left."""
        if len(token) != _TOKEN_LENGTH or not token.isascii():
            return None
        async with self._database.writing_autocommit() as connection:
            found = await sessions.find(connection, token_hash(token), self._times, takes_notice, is_click)
        return None if found is None else StaffSession(*found)

    async def sign_in(
        self, email: str, password: str, code: str | None, address: str, agent: str
    ) -> NewSession:
        subjects = _subjects(email, address)
        await self._count(subjects, address)
        account = await self._account(email)
        is_right = await self._is_right(account, password, subjects)
        if account is None or not is_right or account.staff.disabled_at is not None:
            raise _refusal(account, address)
        if account.factor_sealed is not None and not code:
            await take_back_attempt(self._database, subjects)
            raise SecondFactorNeeded(self._tickets.issue(account))
        newer = await self._hashed_anew(account, password)
        return await self._open(account, code, subjects, _Visitor(address, agent), newer)

    async def sign_in_with_code(self, ticket: str, code: str, address: str, agent: str) -> NewSession:
        """The second step of somebody whose password was right a moment ago."""
        staff_id = self._tickets.staff_id(ticket)
        async with self._database.reading() as connection:
            account = None if staff_id is None else await staff.account(connection, staff_id)
        if account is None or not self._tickets.is_for(ticket, account):
            raise _refusal(account, address)
        subjects = _subjects(account.staff.email, address)
        await self._count(subjects, address)
        return await self._open(account, code, subjects, _Visitor(address, agent), None)

    async def sign_out(self, token: str) -> None:
        if token.isascii():
            async with self._database.writing_autocommit() as connection:
                await sessions.end(connection, token_hash(token))

    async def sign_out_everywhere(self, staff_id: UUID, but: UUID | None = None) -> int:
        """How many sessions have ended; ``but`` goes on."""
        async with self._database.writing_autocommit() as connection:
            return await sessions.end_of_staff(connection, staff_id, but)

    async def sessions_of(self, staff_id: UUID) -> list[OpenSession]:
        async with self._database.reading() as connection:
            return await sessions.of_staff(connection, staff_id, self._times)

    async def leave_notice(self, session_id: UUID, notice: str) -> None:
        async with self._database.writing_autocommit() as connection:
            await sessions.leave_notice(connection, session_id, notice)

    async def open_for(self, staff_id: UUID, address: str, agent: str) -> NewSession:
        """For somebody who has just chosen their password."""
        async with self._database.writing() as connection:
            account = await staff.account_locked(connection, staff_id)
            if account is None or account.staff.disabled_at is not None or account.factor_sealed is not None:
                raise _refusal(account, address)
            opened = await self._begin(connection, account, _Visitor(address, agent), 0, None)
        _log.info("signed in", extra={"fields": _who(account, address)})
        return opened

    async def _count(self, subjects: Subjects, address: str) -> None:
        try:
            await count_attempt(self._database, subjects)
        except TooManyAttempts:
            _log.warning("a sign-in was put off", extra={"fields": {"address": _one_line(address)}})
            raise

    async def _account(self, email: str) -> Account | None:
        if email_fault(email.strip()) is not None:
            return None
        async with self._database.reading() as connection:
            return await staff.account_by_email(connection, email)

    async def _is_right(self, account: Account | None, password: str, subjects: Subjects) -> bool:
        """Whoever is sent away unheard has not failed."""
        try:
            return await self._passwords.is_right(account and account.password_hash, password)
        except TooManyAttempts:
            await take_back_attempt(self._database, subjects)
            raise

    async def _hashed_anew(self, account: Account, password: str) -> str | None:
        """When the way passwords are hashed has become a stronger one; another time, if too many wait."""
        if account.password_hash is None or not self._passwords.is_outdated(account.password_hash):
            return None
        with suppress(TooManyAttempts):
            return await self._passwords.hash(password)
        return None

    async def _open(
        self,
        found: Account,
        code: str | None,
        subjects: Subjects,
        visitor: _Visitor,
        newer_hash: str | None,
    ) -> NewSession:
        """What was checked must still be so: the person may have been disabled in the meantime."""
        async with self._database.writing() as connection:
            account = await staff.account_locked(connection, found.staff.id)
            if account is None or account.staff.disabled_at or account.password_hash != found.password_hash:
                raise _refusal(account, visitor.address)
            step = self._step(account, code)
            if step is None:
                raise _refusal(account, visitor.address)
            await forgive_attempts(connection, subjects)
            opened = await self._begin(connection, account, visitor, step, newer_hash)
        _log.info("signed in", extra={"fields": _who(account, visitor.address)})
        return opened

    async def _begin(
        self,
        connection: Connection,
        account: Account,
        visitor: _Visitor,
        step: int,
        newer_hash: str | None,
    ) -> NewSession:
        token, person = secrets.token_urlsafe(_TOKEN_BYTES), account.staff
        agent = _one_line(visitor.agent)[:_LONGEST_AGENT]
        await staff.note_sign_in(connection, person.id, step, newer_hash)
        await sessions.insert(
            connection, uuid4(), token_hash(token), person.id, _one_line(visitor.address), agent
        )
        await sessions.end_old(connection, self._times)
        return NewSession(token, person)

    def _step(self, account: Account, code: str | None) -> int | None:
        """Of the second factor, if there is one; each is good for one sign-in. None if the code is wrong."""
        if account.factor_sealed is None:
            return 0
        return accepted_step(
            self._box.open(account.factor_sealed), code or "", account.read_at, account.used_step
        )


def _subjects(email: str, address: str) -> Subjects:
    return subject(Counted.ACCOUNT, email_key(email)), subject(Counted.ADDRESS, address)


def _refusal(account: Account | None, address: str) -> LoginFailed:
    """The log tells more than the answer, but not what was typed: that may be a password."""
    _log.warning("a sign-in was refused", extra={"fields": _who(account, address)})
    return LoginFailed()


def _who(account: Account | None, address: str) -> dict[str, str | None]:
    return {"staff": None if account is None else account.staff.email, "address": _one_line(address)}


def _one_line(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)
