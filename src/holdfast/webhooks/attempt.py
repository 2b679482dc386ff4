"""One attempt: the request that is sent, and the trace from which its result is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.delivery import USER_AGENT, AttemptResult, Headers, Timings
from holdfast.domain.endpoint_url import EndpointUrl, parse_endpoint_url
from holdfast.domain.message import AnyMessage
from holdfast.domain.signature import sign
from holdfast.webhooks import causes
from holdfast.webhooks.causes import Overdue, Phase
from holdfast.webhooks.connection import Answer, Connection, Origin


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


_MOST_TARGETS = 4096


class Target:
    """Where the deliveries of an endpoint go, and how each of their requests begins."""

    def __init__(self, url: EndpointUrl) -> None:
        self.url = url
        self.origin = Origin(url.scheme, url.host, url.port)
        self._headers: Headers = (
            ("Host", url.host_header),
            ("Content-Type", "application/json"),
            ("User-Agent", USER_AGENT),
        )
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._headers)
        self._head = f"POST {url.request_target} HTTP/1.1\r\n{lines}"

    def request(self, post: Post, secret: str, timestamp: int) -> tuple[bytes, Headers]:
        delivery, signature = str(post.delivery_id), sign(secret, timestamp, post.body)
        head = (
            f"{self._head}X-Service-Event: {post.event}\r\nX-Service-Delivery: {delivery}\r\n"
            f"X-Service-Timestamp: {timestamp}\r\nX-Service-Signature: {signature}\r\n"
            f"Content-Length: {len(post.body)}\r\n\r\n"
        )
        headers = (
            *self._headers,
            ("X-Service-Event", post.event),
            ("X-Service-Delivery", delivery),
            ("X-Service-Timestamp", str(timestamp)),
            ("X-Service-Signature", signature),
            ("Content-Length", str(len(post.body))),
        )
        return head.encode("ascii") + post.body, headers


class Targets:
    """By URL. Those of a worker are few, and reading one costs more than a whole exchange."""

    def __init__(self) -> None:
        self._known: dict[str, Target] = {}

    def of(self, url: str) -> Target:
        """Raises ``InvalidEndpointUrl``."""
        target = self._known.get(url)
        if target is None:
            if len(self._known) >= _MOST_TARGETS:
                self._known.clear()
            target = self._known[url] = Target(parse_endpoint_url(url))
        return target


class AttemptTrace:
    """Keeps how far an attempt has come, so that its result has all that is known when it ends."""

    def __init__(self) -> None:
        self.started_at = self._entered_at = perf_counter()
        self._phase = Phase.RESOLVING
        self.address: str | None = None
        self.connection: Connection | None = None
        self.answer: Answer | None = None
        self.request_headers: Headers = ()
        self.secret_id: UUID | None = None
        self.dns_ms: float | None = None
        self.connect_ms: float | None = None
        self.tls_ms: float | None = None

    def enter(self, phase: Phase) -> None:
        self._phase = phase
        self._entered_at = perf_counter()

    def phase_ms(self) -> float:
        return (perf_counter() - self._entered_at) * 1000

    def overdue_cause(self, overdue: Overdue) -> AnyMessage:
        has_begun = self.answer is not None and self.answer.has_begun
        return overdue.in_headers if has_begun else overdue.causes[self._phase]

    def failed(self, cause: AnyMessage) -> AttemptResult:
        return self._attempted(None, (), b"", False, cause)

    def answered(self, answer: Answer) -> AttemptResult:
        if answer.fault is not None or answer.status_code is None:
            return self.failed(answer.fault or causes.CLOSED_EARLY)
        headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers])
        clipped = answer.is_clipped or not answer.is_settled
        cause = causes.of_status(answer.status_code)
        return self._attempted(answer.status_code, headers, answer.body, clipped, cause)

    def _attempted(
        self, status_code: int | None, headers: Headers, body: bytes, clipped: bool, cause: AnyMessage | None
    ) -> AttemptResult:
        return AttemptResult(
            (perf_counter() - self.started_at) * 1000,
            Timings(self.dns_ms, self.connect_ms, self.tls_ms, self._first_byte_ms()),
            self.request_headers,
            self.secret_id,
            self.address,
            status_code,
            headers,
            body,
            clipped,
            cause,
        )

    def _first_byte_ms(self) -> float | None:
        if self.connection is None or self.connection.first_byte_at is None or self.answer is None:
            return None
        return (self.connection.first_byte_at - self._entered_at) * 1000
