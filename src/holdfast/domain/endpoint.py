"""Endpoints: URLs that are registered to receive events."""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from holdfast.domain.errors import AnyMessage
from holdfast.domain.event import PING, EventName

SENT_EVENTS = (*EventName, PING)

LONGEST_DESCRIPTION = 500
MIN_IN_FLIGHT, MAX_IN_FLIGHT = 1, 256
DEFAULT_IN_FLIGHT = 32
FAILING_AFTER = timedelta(days=1)
FAILURES_COUNTED = 100
"""Unseen failed deliveries are counted up to this number."""
SECRET_FRESH_SECONDS = 0.1
"""A claim's secret that is older than this is read again before it signs."""

_SECRET_PREFIX = "hfs_"  # noqa: S105
_SECRET_BYTES = 32


class EndpointState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    FAILING = "failing"


class EndpointConfig(NamedTuple):
    url: str
    description: str = ""
    events: tuple[EventName, ...] = tuple(EventName)
    project_slugs: tuple[str, ...] | None = None
    """None: every project, those of the future included."""
    paused: bool = False
    ordered: bool = False
    max_in_flight: int = DEFAULT_IN_FLIGHT


class EndpointFailure(NamedTuple):
    since: datetime
    cause: AnyMessage
    gone_at: datetime | None
    """When the receiver answered 410: it wants no more."""


class Endpoint(NamedTuple):
    id: UUID
    config: EndpointConfig
    secret_id: UUID
    secret_made_at: datetime
    failure: EndpointFailure | None
    created_at: datetime
    updated_at: datetime
    read_at: datetime
    """By the clock of the database."""

    @property
    def state(self) -> EndpointState:
        if self.config.paused:
            return EndpointState.PAUSED
        return EndpointState.FAILING if is_failing(self.failure, self.read_at) else EndpointState.ACTIVE


class IssuedSecret(NamedTuple):
    endpoint: Endpoint
    text: str
    """Displayed once."""

    def __repr__(self) -> str:
        return f"IssuedSecret({self.endpoint.id})"


def generate_secret() -> str:
    random = secrets.token_bytes(_SECRET_BYTES)
    return _SECRET_PREFIX + base64.urlsafe_b64encode(random).decode().rstrip("=")


def is_failing(failure: EndpointFailure | None, now: datetime) -> bool:
    """An endpoint fails after a day without one success, or at once when it has answered 410."""
    return failure is not None and (failure.gone_at is not None or failure.since <= now - FAILING_AFTER)


class EndpointLabel(NamedTuple):
    id: UUID
    url: str
    description: str
    is_removed: bool

    @property
    def name(self) -> str:
        try:
            return self.description or urlsplit(self.url).netloc
        except ValueError:
            return self.url


class UnseenFailures(NamedTuple):
    failed: int
    """Deliveries, counted up to ``FAILURES_COUNTED``."""
    failing: list[EndpointLabel]
    up_to: datetime

    @property
    def is_any(self) -> bool:
        return bool(self.failed or self.failing)

    @property
    def is_more(self) -> bool:
        return self.failed >= FAILURES_COUNTED
