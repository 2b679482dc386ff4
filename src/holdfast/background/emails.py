"""The loop that sends e-mail to buyers through the SMTP server of the settings."""

from __future__ import annotations

import asyncio
import logging
import smtplib
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from holdfast.domain import email as domain
from holdfast.domain.api_key import token_hash
from holdfast.domain.delivery import OUTCOME_UNKNOWN, Outcome, Progress, Schedule, decide_after_attempt
from holdfast.domain.email import ClaimedEmail, EmailKind, EmailNotSendable, EmailStatus
from holdfast.domain.errors import SecretsUnreadable
from holdfast.observability.metrics import EMAILS
from holdfast.storage import bookings, emails
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox

AT_ONCE = 8
POLL_SECONDS = 1.0
LEASE = timedelta(minutes=5)
"""More than an attempt takes: it has some ten steps, each with the timeout below."""
TIMEOUT_SECONDS = 15.0
_PORTS = {"smtp": 587, "smtps": 465}
_PERMANENT = 500
_LONGEST_ERROR = 500

RenderEmail = Callable[[ClaimedEmail, FoundBooking, str | None], Awaitable[EmailMessage]]
"""Writes an e-mail about a booking, with the token of its link if it has one."""

logger = logging.getLogger("holdfast.emails")


class _Suppressed(Exception):
    """What the e-mail says is no longer true."""


@dataclass
class EmailLoop:
    database: Database
    schedule: Schedule
    box: SecretBox
    render: RenderEmail
    server: SmtpServer
    lease: timedelta = LEASE
    name = "e-mail"

    async def run_once(self) -> float:
        claimed = await self.claim()
        for result in await asyncio.gather(*map(self.attempt, claimed), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        return 0.0 if len(claimed) == AT_ONCE else POLL_SECONDS

    async def claim(self) -> list[ClaimedEmail]:
        """Claim what is due. What is not recorded before the lease ends is claimed again."""
        async with self.database.writing() as connection:
            return await emails.claim(connection, AT_ONCE, self.lease)

    async def attempt(self, claimed: ClaimedEmail) -> None:
        """Send an e-mail, and record what became of it."""
        status, error, gap = EmailStatus.SENT, None, timedelta()
        try:
            if claimed.attempts > self.schedule.attempts:
                raise EmailNotSendable(OUTCOME_UNKNOWN)
            await asyncio.to_thread(self.server.send, await self._write(claimed))
        except (EmailNotSendable, _Suppressed) as why:
            error = _one_line(why)
            status = EmailStatus.SUPPRESSED if isinstance(why, _Suppressed) else EmailStatus.FAILED
        except Exception as failure:
            error = domain.TOKEN_UNREADABLE if isinstance(failure, SecretsUnreadable) else _one_line(failure)
            tried = claimed.attempts - 1
            outcome, gap = decide_after_attempt(Progress(1, tried, tried), False, self.schedule)
            status = EmailStatus.FAILED if outcome is Outcome.FAILED else EmailStatus.QUEUED
            if not isinstance(failure, OSError | SecretsUnreadable):  # smtplib's are OSErrors
                logger.exception("an e-mail could not be written", extra={"fields": {"emailId": claimed.id}})
        await self.database.write(emails.record, claimed, status, error, gap)
        EMAILS.labels("retry" if status is EmailStatus.QUEUED else status).inc()

    async def _write(self, claimed: ClaimedEmail) -> EmailMessage:
        found = await self.database.read(bookings.find, claimed.reference)
        if found is None or found.booking.buyer is None:
            raise _Suppressed(domain.BUYER_ERASED)
        token = None if claimed.sealed_token is None else self.box.open(claimed.sealed_token)
        if token is not None and token_hash(token) != found.booking.token_hash:
            raise _Suppressed(domain.LINK_REPLACED)
        if claimed.kind is EmailKind.REMINDER and found.booking.ends_at != claimed.reserved_until:
            raise _Suppressed(domain.END_CHANGED)
        return await self.render(claimed, found, token)


class SmtpServer(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    is_tls: bool
    """Whether the connection begins with TLS. Otherwise STARTTLS is used where it is offered."""

    @classmethod
    def from_url(cls, url: str) -> Self:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        port = parts.port or _PORTS[parts.scheme]
        return cls(parts.hostname or "", port, user, password, parts.scheme == "smtps")

    def __repr__(self) -> str:
        return f"SmtpServer({self.host}:{self.port})"

    def send(self, message: EmailMessage) -> None:
        """Raise EmailNotSendable if recipient or message are rejected for good. Other errors may pass."""
        connection = self._connect()
        try:
            self._sign_in(connection)
            (recipient,), (sender,) = message["To"].addresses, message["From"].addresses
            connection.send_message(message, sender.addr_spec, [recipient.addr_spec])
            # The server has taken the message, whatever it answers to this.
            with suppress(OSError):
                connection.quit()
        except smtplib.SMTPRecipientsRefused as refused:
            ((code, text),) = refused.recipients.values()
            raise _rejection(code, text, is_final=code >= _PERMANENT) from None
        except smtplib.SMTPResponseException as refused:
            # What else is rejected for good is a fault of the settings, which can be mended meanwhile.
            is_final = isinstance(refused, smtplib.SMTPDataError) and refused.smtp_code >= _PERMANENT
            raise _rejection(refused.smtp_code, refused.smtp_error, is_final=is_final) from None
        except smtplib.SMTPNotSupportedError as failure:
            raise EmailNotSendable(str(failure)) from None
        finally:
            connection.close()

    def _connect(self) -> smtplib.SMTP:
        if self.is_tls:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_SECONDS, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_SECONDS)

    def _sign_in(self, connection: smtplib.SMTP) -> None:
        """The password is not sent without TLS, except to this machine."""
        connection.ehlo_or_helo_if_needed()
        if not self.is_tls and connection.has_extn("starttls"):
            connection.starttls(context=ssl.create_default_context())
        elif not self.is_tls and self.user:
            assert connection.sock is not None
            if connection.sock.getpeername()[0] != connection.sock.getsockname()[0]:
                raise OSError("The server offers no TLS, so the password is not sent to it.")
        if self.user:
            connection.login(self.user, self.password)


def _rejection(code: int, text: bytes | str, *, is_final: bool) -> Exception:
    """Return the error for an answer of the server."""
    shown = f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
    return EmailNotSendable(shown) if is_final else OSError(shown)


def _one_line(failure: Exception) -> str:
    return " ".join(str(failure).split())[:_LONGEST_ERROR] or type(failure).__name__
