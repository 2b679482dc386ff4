"""One attempt: the request that is sent, and the trace from which its result is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.delivery import USER_AGENT, AttemptResult, Headers, Timings
from holdfast.domain.endpoint_url import EndpointUrl
from holdfast.domain.errors import AnyMessage
from holdfast.domain.signature import sign
from holdfast.webhooks import causes
from holdfast.webhooks.causes import Phase
from holdfast.webhooks.connection import Connection, ResponseParser


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
    """Called on an open connection, right before the request is signed."""
    unix_time: Callable[[], float]


def build_request(
    url: EndpointUrl, event: str, delivery_id: UUID, body: bytes, secret: str, timestamp: int
) -> tuple[bytes, Headers]:
    headers = (
        ("Host", url.host_header),
        ("Content-Type", "application/json"),
        ("User-Agent", USER_AGENT),
        ("X-Service-Event", event),
        ("X-Service-Delivery", str(delivery_id)),
        ("X-Service-Timestamp", str(timestamp)),
        ("X-Service-Signature", sign(secret, timestamp, body)),
        ("Content-Length", str(len(body))),
    )
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return f"POST {url.request_target} HTTP/1.1\r\n{lines}\r\n".encode("ascii") + body, headers


class AttemptTrace:
    """Keeps how far an attempt has come, so that its result has all that is known when it ends."""

    def __init__(self) -> None:
        self._started_at = self._entered_at = perf_counter()
        self._phase = Phase.RESOLVING
        self._phase_ms: dict[Phase, float] = {}
        self.address: str | None = None
        self.connection: Connection | None = None
        self.response: ResponseParser | None = None
        self.request_headers: Headers = ()
        self.secret_id: UUID | None = None

    @property
    def phase(self) -> Phase:
        has_begun = self.response is not None and self.response.has_begun
        return Phase.READING_HEADERS if has_begun else self._phase

    def enter(self, phase: Phase) -> None:
        self._phase = phase
        self._entered_at = perf_counter()

    @contextmanager
    def measure(self, phase: Phase) -> Iterator[None]:
        self.enter(phase)
        try:
            yield
        finally:
            self._phase_ms[phase] = (perf_counter() - self._entered_at) * 1000

    def response_result(self, response: ResponseParser) -> AttemptResult:
        if response.error is not None or response.status_code is None:
            return self.result(response.error or causes.CLOSED_EARLY)
        is_success = 200 <= response.status_code < 300
        return self.result(None if is_success else causes.explain_status(response.status_code))._replace(
            status_code=response.status_code,
            response_headers=tuple([(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers]),
            response_body=response.body,
            response_clipped=response.is_clipped or not response.is_complete,
        )

    def result(self, cause: AnyMessage | None) -> AttemptResult:
        """Return the result of an attempt without a response."""
        first_byte_at = self.connection.first_byte_at if self.connection and self.response else None
        return AttemptResult(
            (perf_counter() - self._started_at) * 1000,
            Timings(
                self._phase_ms.get(Phase.RESOLVING),
                self._phase_ms.get(Phase.CONNECTING),
                self._phase_ms.get(Phase.ENCRYPTING),
                None if first_byte_at is None else (first_byte_at - self._entered_at) * 1000,
            ),
            self.request_headers,
            self.secret_id,
            self.address,
            cause=cause,
        )
