"""What the sender is given, and what it tells of one attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.message import AnyMessage


class Secret(NamedTuple):
    id: UUID
    text: str

    def __repr__(self) -> str:
        return f"Secret({self.id})"


class Post(NamedTuple):
    url: str
    event: str
    delivery_id: UUID
    body: bytes
    read_secret: Callable[[], Awaitable[Secret]]
    """Asked when the connection stands, right before the request is signed."""
    unix_time: Callable[[], float]
    """For the timestamp that is signed."""


class Timings(NamedTuple):
    """None where the phase did not happen: a reused connection, an address in the URL, http."""

    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    """From the last byte of the request written to the first byte of the answer."""


class Attempted(NamedTuple):
    duration_ms: float
    timings: Timings
    request_headers: tuple[tuple[str, str], ...]
    """Exactly as sent, in order; empty if the request was never written."""
    secret_id: UUID | None
    address: str | None
    """Of the connect that was used or last tried."""
    status_code: int | None
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    response_clipped: bool
    """There was, or may have been, more."""
    cause: AnyMessage | None
    """None if it was delivered; otherwise one sentence in plain words."""
    is_gone: bool
    """The receiver answered 410."""
