"""Logins of staff: passwords, second factors, limits on attempts, and sessions."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import logging
import secrets
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.resources import files
from itertools import repeat
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import msgspec
import pyotp
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.domain import errors
from holdfast.domain import login as domain
from holdfast.domain.api_key import token_hash
from holdfast.domain.staff import OpenSession, SessionTimes, Staff, email_fault, email_key
from holdfast.storage import login, staff
from holdfast.storage.database import Connection, Database
from holdfast.storage.login import StaffSession
from holdfast.storage.secrets import SecretBox
from holdfast.storage.staff import Account

__all__ = ["Login", "LoginClient", "NewSession", "OpenSession", "SessionTimes", "StaffSession"]

Result = TypeVar("Result")
Subjects = Sequence[domain.Subject]
"""An account, and the addresses if it is not a known browser's. They are always locked in this order, which
prevents deadlocks."""

_TOKEN_BYTES = 32
_TOKEN_LENGTH = 43
_LONGEST_AGENT = 300
_LONGEST_SEALED = 4000  # browsers keep cookies of 4096 bytes, with the name
_TICKET_LIFETIME = timedelta(minutes=5)
_ACCOUNTS_OF_BROWSER = 5

_log = logging.getLogger(__name__)


class NewSession(NamedTuple):
    token: str
    """For the cookie; never stored."""
    staff: Staff
    browser: str
    """For the cookie by which the browser is known from now on."""


class LoginClient(NamedTuple):
    address: str
    agent: str
    browser: str | None = None
    """The cookie of a browser that has signed in before."""


class Login:
    def __init__(
        self, database: Database, box: SecretBox, times: SessionTimes, passwords: Passwords | None = None
    ) -> None:
        self._database = database
        self._box = box
        self._times = times
        self._passwords = passwords or Passwords()

    async def find(
        self, token: str, *, takes_notice: bool = True, is_click: bool = True
    ) -> StaffSession | None:
        """A request that shows no page leaves the notice. One that a page sends by itself is no click, and
        does not prolong the session."""
        if len(token) != _TOKEN_LENGTH or not token.isascii():
            return None
        found = await self._database.read(login.find_session, token_hash(token), self._times)
        if found is None:
            return None
        takes_notice = takes_notice and found.notice is not None
        is_click = is_click and found.was_seen_earlier
        if takes_notice or is_click:
            update = partial(login.update_session, takes_notice=takes_notice, is_click=is_click)
            with suppress(errors.DatabaseUnavailable):
                await self._database.write_for_reader(
                    "sessions", lambda: self._database.write(update, found.session_id)
                )
        return found

    async def sign_in(self, email: str, password: str, client: LoginClient) -> NewSession:
        subjects = await self._count_attempt(email, client)
        account = None
        if email_fault(email.strip()) is None:
            account = await self._database.read(staff.find_account_by_email, email)
        is_right = await check_password(self._database, self._passwords, account, password, subjects)
        if account is None or not is_right or account.staff.disabled_at is not None:
            raise _login_failed(account, client.address)
        if account.factor_sealed is not None:
            await uncount_attempt(self._database, subjects)
            raise errors.SecondFactorNeeded(issue_ticket(self._box, account))
        new_hash = None
        if account.password_hash is not None and self._passwords.is_outdated(account.password_hash):
            # If too many passwords are waiting to be hashed, the next login replaces the hash.
            with suppress(errors.TooManyAttempts):
                new_hash = await self._passwords.hash(password)
        return await self._open_checked(account, "", subjects, client, new_hash)

    async def sign_in_with_code(self, ticket: str, code: str, client: LoginClient) -> NewSession:
        """Take the second step, with the ticket that the right password was answered with."""
        opened = _unseal(self._box, ticket, Ticket)
        account = None if opened is None else await self._database.read(staff.find_account, opened.staff_id)
        if opened is None or account is None or not opened.is_for(account):
            raise _login_failed(account, client.address)
        subjects = await self._count_attempt(account.staff.email, client, is_code=True)
        return await self._open_checked(account, code, subjects, client, None)

    async def sign_out(self, token: str) -> None:
        if token.isascii():
            await self._database.write(login.delete_session, token_hash(token))

    async def sign_out_everywhere(self, staff_id: UUID, but: UUID | None = None) -> int:
        """End all sessions except ``but``, and return how many."""
        return await self._database.write(login.delete_sessions, staff_id, but)

    async def list_sessions(self, staff_id: UUID) -> list[OpenSession]:
        return await self._database.read(login.list_sessions, staff_id, self._times)

    async def leave_notice(self, session_id: UUID, notice: str) -> None:
        await self._database.write(login.set_notice, session_id, notice)

    async def open_session(self, staff_id: UUID, client: LoginClient) -> NewSession:
        """Sign in a person who has just chosen their password."""
        async with self._database.writing() as connection:
            account = await staff.find_account(connection, staff_id, lock=True)
            if account is None or account.staff.disabled_at is not None or account.factor_sealed is not None:
                raise _login_failed(account, client.address)
            opened = await self._insert_session(connection, account, client, 0, None)
        _log.info("signed in", extra={"fields": _log_fields(account, client.address)})
        return opened

    async def _count_attempt(self, email: str, client: LoginClient, *, is_code: bool = False) -> Subjects:
        account, browser = email_key(email), read_browser(self._box, client.browser)
        if account in browser.accounts:
            subjects = domain.subjects_of_browser(account, browser.id)
        else:
            subjects = domain.subjects_of_client(account, client.address, is_code=is_code)
        try:
            await count_attempt(self._database, subjects)
        except errors.TooManyAttempts:
            _log.warning("a sign-in was put off", extra={"fields": {"address": client.address}})
            raise
        return subjects

    async def _open_checked(
        self, checked: Account, code: str, subjects: Subjects, client: LoginClient, new_hash: str | None
    ) -> NewSession:
        """Check the account again under its lock: it may have been disabled in the meantime."""
        async with self._database.writing() as connection:
            account = await staff.find_account(connection, checked.staff.id, lock=True)
            if account is None or account.staff.disabled_at or account.password_hash != checked.password_hash:
                raise _login_failed(account, client.address)
            step: int | None = 0
            if account.factor_sealed is not None:
                secret = self._box.open(account.factor_sealed)
                step = accepted_step(secret, code, account.read_at, account.used_step)
            if step is None:
                raise _login_failed(account, client.address)
            await reset_attempts(connection, subjects)
            opened = await self._insert_session(connection, account, client, step, new_hash)
        _log.info("signed in", extra={"fields": _log_fields(account, client.address)})
        return opened

    async def _insert_session(
        self, connection: Connection, account: Account, client: LoginClient, step: int, new_hash: str | None
    ) -> NewSession:
        token, staff_id = secrets.token_urlsafe(_TOKEN_BYTES), account.staff.id
        address, agent = client.address, _one_line(client.agent)[:_LONGEST_AGENT]
        await staff.record_login(connection, staff_id, step, new_hash)
        await login.insert_session(connection, uuid4(), token_hash(token), staff_id, address, agent)
        await login.delete_old_sessions(connection, self._times)
        browser = remember_account(self._box, client.browser, account.staff.email)
        return NewSession(token, account.staff, browser)


def _login_failed(account: Account | None, address: str) -> errors.LoginFailed:
    """The log says more than the response, but never what was typed: that may be a password."""
    _log.warning("a sign-in was refused", extra={"fields": _log_fields(account, address)})
    return errors.LoginFailed()


def _log_fields(account: Account | None, address: str) -> dict[str, str | None]:
    return {"staff": None if account is None else account.staff.email, "address": address}


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


# Attempts are counted before the password is checked, and uncounted when it was right: a thousand requests at
# once are counted, too.


async def count_attempt(database: Database, subjects: Subjects) -> None:
    """Count an attempt, or raise TooManyAttempts. A rejected attempt is not counted, so waits end."""
    async with database.writing() as connection:
        locked = [await login.lock_attempts(connection, subject.hash) for subject in subjects]
        now = locked[-1][1]
        current = [
            domain.current_attempts(subject, attempts, now)
            for subject, (attempts, _) in zip(subjects, locked, strict=True)
        ]
        wait = max(map(domain.wait_before_next, subjects, current, repeat(now)))
        if wait:
            raise errors.TooManyAttempts(wait.total_seconds())
        for subject, attempts in zip(subjects, current, strict=True):
            await login.update_attempts(connection, subject.hash, domain.add_attempt(attempts, now))
        # Delete last, with SKIP LOCKED: waiting for a row while holding others could deadlock.
        await login.delete_old_attempts(connection, domain.FORGET_AFTER)


async def uncount_attempt(database: Database, subjects: Subjects) -> None:
    async with database.writing() as connection:
        await login.uncount_attempt(connection, [subject.hash for subject in subjects])


async def reset_attempts(connection: Connection, subjects: Subjects) -> None:
    """Reset the account's count. An address loses one attempt only: it may be attacking other accounts."""
    account, *addresses = subjects
    await login.delete_attempts(connection, account.hash)
    await login.uncount_attempt(connection, [address.hash for address in addresses])


async def check_password(
    database: Database, passwords: Passwords, account: Account | None, password: str, subjects: Subjects
) -> bool:
    """Check a password whose attempt was counted; an attempt that was not checked is uncounted."""
    try:
        return await passwords.is_right(account and account.password_hash, password)
    except errors.TooManyAttempts:
        await uncount_attempt(database, subjects)
        raise


class Passwords:
    """Hashes and checks passwords with argon2id, in threads.

    Few at a time, and a limited number waiting: a flood of logins takes neither memory nor threads.
    """

    # Each hash takes 64 MiB and up to four processors.
    at_a_time = 2
    most_waiting = 64
    retry_after_seconds = 5.0

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._unknown_account_hash = cache(lambda: self._hasher.hash("the password of nobody"))
        self._slots = asyncio.Semaphore(self.at_a_time)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(domain.normalize_password(password)))

    async def is_right(self, password_hash: str | None, password: str) -> bool:
        """Take the same time without a hash, so that nobody learns which accounts exist."""
        typed = domain.normalize_password(password)[: domain.LONGEST_PASSWORD + 1]
        return await self._run(lambda: self._verify(password_hash, typed))

    def is_outdated(self, password_hash: str) -> bool:
        return self._hasher.check_needs_rehash(password_hash)

    def _verify(self, password_hash: str | None, typed: str) -> bool:
        other = self._unknown_account_hash()
        try:
            self._hasher.verify(password_hash or other, typed.encode(errors="replace"))
        except (VerificationError, InvalidHashError):
            return False
        return password_hash is not None

    async def _run(self, work: Callable[[], Result]) -> Result:
        """Run to the end even if the caller is cancelled: a thread cannot be stopped, so it stays counted."""
        if len(self._tasks) >= self.most_waiting:
            raise errors.TooManyAttempts(self.retry_after_seconds)
        task = asyncio.create_task(self._run_in_thread(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _run_in_thread(self, work: Callable[[], Result]) -> Result:
        async with self._slots:
            return await asyncio.to_thread(work)


@cache
def common_passwords() -> frozenset[str]:
    """Read the vendored list: once, when a password is first chosen."""
    packed = files("holdfast.operations").joinpath("vendor/common-passwords.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode().splitlines())


# Encrypted values that a browser carries. None is stored.


class Ticket(msgspec.Struct):
    """What the login form carries between the password and the code."""

    staff_id: UUID
    password: str
    """A digest of the password's hash: a new password makes the ticket worthless."""
    issued_at: datetime

    def is_for(self, account: Account) -> bool:
        is_recent = account.read_at - self.issued_at < _TICKET_LIFETIME
        return is_recent and self.password == _password_digest(account)


def issue_ticket(box: SecretBox, account: Account) -> str:
    return _seal(box, Ticket(account.staff.id, _password_digest(account), account.read_at))


class KnownBrowser(msgspec.Struct):
    """The cookie of a browser that has signed in before."""

    id: UUID
    accounts: list[str]
    """The addresses that have signed in with it, the latest first."""


def read_browser(box: SecretBox, cookie: str | None) -> KnownBrowser:
    """Return a new one, of no account, without a cookie of ours."""
    return _unseal(box, cookie or "", KnownBrowser) or KnownBrowser(uuid4(), [])


def remember_account(box: SecretBox, cookie: str | None, email: str) -> str:
    browser = read_browser(box, cookie)
    accounts = dict.fromkeys([email_key(email), *browser.accounts])
    return _seal(box, KnownBrowser(browser.id, [*accounts][:_ACCOUNTS_OF_BROWSER]))


def _seal(box: SecretBox, value: msgspec.Struct) -> str:
    return box.seal(msgspec.json.encode(value).decode()).decode()


def _unseal(box: SecretBox, text: str, kind: type[Result]) -> Result | None:
    if len(text) > _LONGEST_SEALED or not text.isascii():
        return None
    try:
        return msgspec.json.decode(box.open(text.encode()), type=kind)
    except (errors.SecretsUnreadable, msgspec.DecodeError):
        return None


def _password_digest(account: Account) -> str:
    return hashlib.sha256((account.password_hash or "").encode()).hexdigest()


# The second factor: codes from an authenticator app (TOTP, RFC 6238).

_CLOCK_DRIFT_STEPS = 1
_CODE_LENGTH = 6
_SECRET_LENGTH = 32  # in base32: 20 bytes
_ISSUER = "Holdfast"


def new_secret() -> str:
    return pyotp.random_base32(_SECRET_LENGTH)


def accepted_step(secret: str, typed: str, now: datetime, used_step: int) -> int | None:
    """Return the time step of a right code, or None; no step up to ``used_step`` is accepted again."""
    totp = pyotp.TOTP(secret, digits=_CODE_LENGTH)
    # With or without spaces, in the digits of any script.
    signs = "".join(typed.split())[: _CODE_LENGTH + 1]
    code = "".join(str(unicodedata.decimal(sign, "x")) for sign in signs)
    current = totp.timecode(now)
    for step in range(current - _CLOCK_DRIFT_STEPS, current + _CLOCK_DRIFT_STEPS + 1):
        if step > used_step and hmac.compare_digest(totp.generate_otp(step), code):
            return step
    return None


def enrolment_url(secret: str, email: str) -> str:
    return pyotp.TOTP(secret, digits=_CODE_LENGTH).provisioning_uri(email, _ISSUER)


def format_secret(secret: str) -> str:
    """Write the secret in groups, for people who type it."""
    return " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
