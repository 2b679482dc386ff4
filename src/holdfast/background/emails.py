"""The loop that sends e-mail to buyers through the SMTP server of the settings."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

import aiosmtplib

from holdfast.domain import email as domain
from holdfast.domain.api_key import token_hash
from holdfast.domain.delivery import OUTCOME_UNKNOWN, Schedule
from holdfast.domain.email import Email, EmailGivenUp, EmailKind, EmailStatus
from holdfast.domain.errors import DomainError
from holdfast.observability.metrics import EMAILS
from holdfast.storage import bookings, emails
from holdfast.storage.bookings import FoundBooking
from holdfast.storage.database import Database, execute_and_count
from holdfast.storage.secrets import SecretBox

POLL_SECONDS = 1.0
LEASE = timedelta(minutes=15)
"""More than an attempt takes: it has some ten steps, each with the timeout below."""
TIMEOUT_SECONDS = 60.0
"""Servers may look for viruses before they say that they have taken a message."""
_LONGEST_ERROR = 500
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_ADDRESS = re.compile(r"[^\s<>]+@[^\s<>]+")

RenderEmail = Callable[[Email, FoundBooking, str | None], Awaitable[EmailMessage]]
"""Writes an e-mail about a booking, with the token of its link if it has one."""

logger = logging.getLogger("holdfast.emails")


@dataclass
class EmailLoop:
    database: Database
    schedule: Schedule
    box: SecretBox
    render: RenderEmail
    smtp_url: str
    lease: timedelta = LEASE
    name = "e-mail"

    async def run_once(self) -> float:
        """Send one e-mail, if one is due. If it is not recorded before the lease ends, it is sent again."""
        async with self.database.writing() as connection:
            claimed = await emails.claim(connection, self.lease)
        if claimed is None:
            return POLL_SECONDS
        await self.attempt(claimed)
        return 0.0

    async def attempt(self, claimed: Email) -> None:
        """Send an e-mail, and record what became of it."""
        status, error, gap = EmailStatus.SENT, None, timedelta()
        try:
            await send(self.smtp_url, await self._write(claimed))
        except EmailGivenUp as why:
            status, error = why.status, _one_line(why)
        except Exception as failure:
            status, error = EmailStatus.FAILED, _one_line(failure)
            if not _is_final(failure) and claimed.attempts < self.schedule.attempts:
                status, gap = EmailStatus.QUEUED, self.schedule.gap_after(claimed.attempts)
            if not isinstance(failure, OSError | aiosmtplib.SMTPException | DomainError):
                logger.exception("an e-mail could not be written", extra={"fields": {"emailId": claimed.id}})
        result = claimed.id, claimed.attempts, status, error, gap
        await self.database.write(execute_and_count, emails.RECORD, *result)
        EMAILS.labels("retry" if status is EmailStatus.QUEUED else status).inc()

    async def _write(self, claimed: Email) -> EmailMessage:
        if claimed.attempts > self.schedule.attempts:
            raise EmailGivenUp(OUTCOME_UNKNOWN, EmailStatus.FAILED)
        found = await self.database.read(bookings.find, claimed.booking_reference)
        if found is None or found.booking.buyer is None:
            raise EmailGivenUp(domain.BUYER_ERASED)
        booking, kind = found.booking, claimed.kind
        if claimed.is_over_limit:
            raise EmailGivenUp(domain.LIMIT_REACHED)
        if kind is EmailKind.REMINDER and booking.ends_at != claimed.reserved_until:
            raise EmailGivenUp(domain.END_CHANGED)
        if kind is EmailKind.DEPOSIT and booking.ended_at and not booking.terms.deposit_sar:
            raise EmailGivenUp(domain.END_CHANGED)
        token = self.box.open(claimed.sealed_token) if claimed.sealed_token else None
        if token and token_hash(token) != booking.token_hash:
            raise EmailGivenUp(domain.LINK_REPLACED)
        return await self.render(claimed, found, token)


async def send(url: str, message: EmailMessage) -> None:
    server = urlsplit(url)
    is_tls, is_here = server.scheme == "smtps", server.hostname in _THIS_MACHINE
    # None: if the server offers it. A password does not leave the machine without TLS.
    start_tls = None if is_tls or is_here else bool(server.username) or None
    try:
        await aiosmtplib.send(
            message, hostname=server.hostname, port=server.port or (465 if is_tls else 587),
            username=unquote(server.username or "") or None, password=unquote(server.password or "") or None,
            use_tls=is_tls, start_tls=start_tls, validate_certs=not is_here, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip
    except aiosmtplib.SMTPRecipientsRefused as refused:
        raise refused.recipients[0] from None


def _is_final(failure: Exception) -> bool:
    """Return whether the recipient or the message is rejected for good. Other rejections are faults of the
    settings, which can be corrected meanwhile."""
    kinds = aiosmtplib.SMTPRecipientRefused | aiosmtplib.SMTPDataError
    return isinstance(failure, kinds) and failure.code >= 500


def _one_line(failure: Exception) -> str:
    """Return a text for the log, without addresses: servers repeat them, and buyers can be erased."""
    text = str(failure)
    if isinstance(failure, aiosmtplib.SMTPResponseException):
        text = f"{failure.code} {failure.message}"
    text = " ".join(_ADDRESS.sub("…", text).replace("\0", "").split()).encode(errors="replace").decode()
    return text[:_LONGEST_ERROR] or type(failure).__name__
