"""E-mail to buyers, and what became of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

REMINDED_BEFORE = timedelta(days=2)
"""The end of a reservation. A reservation that is not longer than this has no reminder."""
MOST_A_DAY = 5
"""To one address, of bookings without a deposit: anybody can type any address."""

LIMIT_REACHED = "This address was sent 5 e-mails within 24 hours about bookings without a deposit."
BUYER_ERASED = "The booking no longer has the buyer's address."
LINK_REPLACED = "The link was replaced before the e-mail was sent."
END_CHANGED = "The end of the reservation has changed, or the reservation has ended."


class EmailKind(StrEnum):
    SIGNED = "signed"
    DEPOSIT = "deposit"
    REMINDER = "reminder"


class EmailStatus(StrEnum):
    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


class EmailGivenUp(Exception):
    """No further attempt is made: it would not help, or the e-mail is not to be sent any more."""

    def __init__(self, reason: str, status: EmailStatus = EmailStatus.SUPPRESSED) -> None:
        super().__init__(reason)
        self.status = status


class NewEmail(NamedTuple):
    booking_number: int
    unit_id: UUID
    kind: EmailKind
    sealed_token: bytes | None = None


class Email(NamedTuple):
    id: UUID
    kind: EmailKind
    status: EmailStatus
    booking_reference: str
    recipient: str | None
    """None once the buyer's personal data are erased."""
    reserved_until: datetime | None
    sealed_token: bytes | None
    attempts: int
    """With the one that is under way."""
    last_error: str | None
    created_at: datetime
    due_at: datetime
    ended_at: datetime | None
    is_over_limit: bool = False
