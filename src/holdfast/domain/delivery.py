"""Deliveries: one event for one endpoint, and the attempts that are made of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.errors import AnyMessage

USER_AGENT = "Service-Webhooks/1"

OUTCOME_UNKNOWN = "The worker stopped before it recorded an answer; whether the receiver got it is not known."
CUT_OFF = "The worker was stopped before an answer came."
SEALING_KEY_MISSING = (
    "The signing secret cannot be read; HOLDFAST_ENCRYPTION_KEYS lacks the key that sealed it."
)
SIGNING_TIMED_OUT = "The signing secret could not be read in time."
INTERNAL_ERROR = "Holdfast failed to send this; its log has the error."
INTERNAL_CAUSES = frozenset(
    (OUTCOME_UNKNOWN, CUT_OFF, SEALING_KEY_MISSING, SIGNING_TIMED_OUT, INTERNAL_ERROR)
)
"""Causes that say nothing of the receiver."""

ENDPOINT_REMOVED = "The endpoint was removed."
EVENT_UNSELECTED = "The endpoint no longer receives this event."


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
    DELIVERED = "delivered"
    RETRY = "retry"
    FAILED = "failed"


class Schedule(NamedTuple):
    """The attempts of one series: the gap doubles from the first."""

    first_gap_seconds: float = 30.0
    attempts: int = 8

    def gap_after(self, tried: int) -> timedelta:
        return timedelta(seconds=self.first_gap_seconds * 2 ** (tried - 1))


class AttemptDecision(NamedTuple):
    outcome: Outcome
    gap: timedelta = timedelta()
    """From the end of the attempt to the next one."""


class Progress(NamedTuple):
    series: int
    tried: int
    """Attempts of this series."""
    attempts: int
    """Attempts of all series."""

    @property
    def trigger(self) -> Trigger:
        if self.tried:
            return Trigger.RETRY
        return Trigger.FIRST if self.series == 1 else Trigger.RESEND


def decide_after_attempt(progress: Progress, succeeded: bool, schedule: Schedule) -> AttemptDecision:
    if succeeded:
        return AttemptDecision(Outcome.DELIVERED)
    tried = progress.tried + 1
    if tried >= schedule.attempts:
        return AttemptDecision(Outcome.FAILED)
    return AttemptDecision(Outcome.RETRY, schedule.gap_after(tried))


def decide_after_lost(progress: Progress, schedule: Schedule) -> AttemptDecision:
    """Count the lost attempt, which the receiver may have got; the lease was longer than the first gap."""
    return decide_after_attempt(progress, False, schedule)._replace(gap=timedelta())


Headers = tuple[tuple[str, str], ...]


class Timings(NamedTuple):
    """None where the phase did not happen: a reused connection, an address in the URL, http."""

    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    """From the last byte of the request written to the first byte of the response."""


class AttemptResult(NamedTuple):
    duration_ms: float = 0.0
    timings: Timings = Timings()
    request_headers: Headers = ()
    """Exactly as sent, in order; empty if the request was never written."""
    secret_id: UUID | None = None
    address: str | None = None
    """Of the connect that was used or last tried."""
    status_code: int | None = None
    response_headers: Headers = ()
    response_body: bytes = b""
    response_clipped: bool = False
    """There was, or may have been, more."""
    cause: AnyMessage | None = None
    """None if it was delivered; otherwise one sentence in plain words."""

    @property
    def is_gone(self) -> bool:
        return self.status_code == 410


class SealedSecret(NamedTuple):
    id: UUID
    sealed: bytes


class ClaimedDelivery(NamedTuple):
    delivery_id: UUID
    endpoint_id: UUID
    url: str
    event: str
    body: str
    unit_id: UUID | None
    progress: Progress
    token: int
    claimed_at: datetime
    secret: SealedSecret


class ExpiredLease(NamedTuple):
    """A claim whose worker did not record the attempt in time."""

    delivery_id: UUID
    endpoint_id: UUID
    unit_id: UUID | None
    token: int
    claimed_at: datetime
    now: datetime
    url: str
    progress: Progress


class AttemptRecord(NamedTuple):
    claim: ClaimedDelivery | ExpiredLease
    started_at: datetime
    result: AttemptResult
    decision: AttemptDecision


class EndpointHealth(NamedTuple):
    cause: AnyMessage | None
    """Of the last attempt; None if it succeeded."""
    is_gone: bool
    has_succeeded: bool

    def merge(self, later: EndpointHealth) -> EndpointHealth:
        is_gone = later.is_gone or (self.is_gone and not later.has_succeeded)
        return EndpointHealth(later.cause, is_gone, self.has_succeeded or later.has_succeeded)


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


class FailedDeliveryFilter(NamedTuple):
    since: datetime
    until: datetime | None = None
    events: tuple[str, ...] | None = None
    unit_code: str | None = None


class Attempt(NamedTuple):
    delivery_id: UUID
    number: int
    trigger: Trigger
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    url: str
    request_headers: list[tuple[str, str]]
    secret_id: UUID | None
    address: str | None
    status_code: int | None
    response_headers: list[tuple[str, str]]
    response_body: bytes
    response_clipped: bool
    cause: AnyMessage | None


class DeliveryFilter(NamedTuple):
    since: datetime
    until: datetime
    events: tuple[str, ...] | None = None
    unit_code: str | None = None
    code_class: int | None = None
    """2 for 200 to 299, and so on."""
    unanswered: bool | None = None
    """Of deliveries whose last attempt had no status, or that had none yet."""
    status: DeliveryStatus | None = None


HOURS = 24
"""The last hours for which ended deliveries are counted."""


class HourlyDeliveries(NamedTuple):
    endpoint_id: UUID
    begins_at: datetime
    delivered: int
    failed: int


class ReconciliationCounts(NamedTuple):
    events: int
    """Of the feed, for this endpoint."""
    delivered: int
    pending: int
    failed: int
    cancelled: int
    forgotten: int
    """Older than the log is kept."""
    missing: int
    """Never anything but 0."""
