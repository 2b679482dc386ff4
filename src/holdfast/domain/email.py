"""E-mail to buyers: which change of a booking calls for one, and what became of it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.booking import Booking

REMINDED_BEFORE = timedelta(days=2)
"""The end of a reservation. A reservation that is not longer than this has no reminder."""
MOST_A_DAY = 5
"""To one address, of bookings without a deposit: anybody can type any address."""

LIMIT_REACHED = "This address has had 5 e-mails in 24 hours about bookings without a deposit."
BUYER_ERASED = "The booking no longer has the buyer's address."
LINK_REPLACED = "The link was replaced before the e-mail was sent."
END_CHANGED = "The reservation has another end now, or has ended."
TOKEN_UNREADABLE = "The link cannot be read; HOLDFAST_ENCRYPTION_KEYS lacks the key that sealed it."  # noqa: S105


class EmailNotSendable(Exception):
    """Further attempts would not help; the text says why."""


class EmailKind(StrEnum):
    SIGNED = "signed"
    DEPOSIT = "deposit"
    REMINDER = "reminder"


class EmailStatus(StrEnum):
    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


class NewEmail(NamedTuple):
    booking_number: int
    unit_id: UUID
    kind: EmailKind
    sealed_token: bytes | None = None


class ClaimedEmail(NamedTuple):
    """An e-mail that one worker is sending."""

    id: UUID
    kind: EmailKind
    reference: str
    reserved_until: datetime | None
    sealed_token: bytes | None
    attempts: int
    """With the one that is under way."""


class Email(NamedTuple):
    """An e-mail as the log shows it."""

    id: UUID
    kind: EmailKind
    status: EmailStatus
    recipient: str | None
    """None once the buyer's personal data are erased."""
    booking_reference: str
    project_slug: str
    attempts: int
    last_error: str | None
    created_at: datetime
    next_attempt_at: datetime | None
    ended_at: datetime | None


def email_for(before: Booking | None, after: Booking, sealed_token: bytes | None) -> NewEmail | None:
    """Return the e-mail that a change of a booking calls for. ``sealed_token`` opens the booking."""
    if before is None or after.buyer is None:
        return None
    if before.signed_at is None and after.signed_at is not None:
        return NewEmail(after.number, after.unit_id, EmailKind.SIGNED, sealed_token)
    if before.deposit_confirmed_at is None and after.deposit_confirmed_at is not None:
        return NewEmail(after.number, after.unit_id, EmailKind.DEPOSIT)
    return None
