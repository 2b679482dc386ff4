"""Deliveries: one event for one endpoint, and the attempts that are made of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.message import AnyMessage

USER_AGENT = "Service-Webhooks/1"
"""Names the version of the webhooks to receivers."""

LOST = "The worker stopped before it recorded an answer; whether the receiver got it is not known."
CUT_OFF = "The worker was stopped before an answer came."
UNREADABLE = "The signing secret cannot be read; HOLDFAST_ENCRYPTION_KEYS lacks the key that sealed it."
UNREAD = "The signing secret could not be read in time."
FAULTY = "Holdfast itself failed to send this; its log tells more."
INTERNAL_CAUSES = frozenset((LOST, CUT_OFF, UNREADABLE, UNREAD, FAULTY))
"""Causes that say nothing of the receiver."""

ENDPOINT_REMOVED = "The endpoint was removed."
EVENT_UNSELECTED = "The endpoint no longer chooses this event."


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Trigger(StrEnum):
    FIRST = "first"
    RETRY = "retry"
    RESEND = "resend"


class Outcome(StrEnum):
    """What an attempt makes of its delivery."""

    DELIVERED = "delivered"
    RETRY = "retry"
    FAILED = "failed"


class Schedule(NamedTuple):
    """Of one series of attempts: the gap doubles from the first."""

    first_gap_seconds: float = 30.0
    attempts: int = 8

    def gap_after(self, tried: int) -> timedelta:
        return timedelta(seconds=self.first_gap_seconds * 2 ** (tried - 1))


class Next(NamedTuple):
    outcome: Outcome
    gap: timedelta = timedelta()
    """From the end of the attempt to the next one."""


class Progress(NamedTuple):
    """Where a delivery stands when it is claimed."""

    series: int
    tried: int
    """Attempts of this series."""
    attempts: int
    """Of all series."""

    @property
    def trigger(self) -> Trigger:
        if self.tried:
            return Trigger.RETRY
        return Trigger.FIRST if self.series == 1 else Trigger.RESEND


def after_attempt(progress: Progress, succeeded: bool, schedule: Schedule) -> Next:
    if succeeded:
        return Next(Outcome.DELIVERED)
    tried = progress.tried + 1
    if tried >= schedule.attempts:
        return Next(Outcome.FAILED)
    return Next(Outcome.RETRY, schedule.gap_after(tried))


def after_lost(progress: Progress, schedule: Schedule) -> Next:
    """The receiver may have got it, so the attempt counts; it has waited for as long as the lease was."""
    decided = after_attempt(progress, False, schedule)
    return decided._replace(gap=timedelta())


class Signs(NamedTuple):
    """What some attempts say of their endpoint."""

    cause: AnyMessage | None
    """Of the last one; None if it succeeded."""
    is_gone: bool = False
    has_succeeded: bool = False

    def followed_by(self, later: Signs) -> Signs:
        is_gone = later.is_gone or (self.is_gone and not later.has_succeeded)
        return Signs(later.cause, is_gone, self.has_succeeded or later.has_succeeded)


def signs_of(cause: AnyMessage | None, is_gone: bool) -> Signs:
    return Signs(cause, is_gone, cause is None)


class Delivery(NamedTuple):
    id: UUID
    endpoint_id: UUID
    event: str
    unit_code: str | None
    status: DeliveryStatus
    reason: str | None
    """Why it was cancelled."""
    created_at: datetime
    next_attempt_at: datetime | None
    ended_at: datetime | None
    attempts: int
    last_status_code: int | None
    last_cause: AnyMessage | None
    body: str
