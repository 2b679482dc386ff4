"""How far an attempt has come, so that whatever ends it can be told with all that is known by then."""

from __future__ import annotations

from time import perf_counter
from uuid import UUID

from holdfast.delivery import causes
from holdfast.delivery.answer import Answer
from holdfast.delivery.attempted import Attempted, Timings
from holdfast.delivery.causes import Overdue, Phase
from holdfast.delivery.connection import Connection
from holdfast.delivery.request import Headers
from holdfast.domain.message import AnyMessage


class Course:
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

    def failed(self, cause: AnyMessage) -> Attempted:
        return self._attempted(None, (), b"", False, cause)

    def answered(self, answer: Answer) -> Attempted:
        if answer.fault is not None or answer.status_code is None:
            return self.failed(answer.fault or causes.CLOSED_EARLY)
        headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers])
        clipped = answer.is_clipped or not answer.is_settled
        cause = causes.of_status(answer.status_code)
        return self._attempted(answer.status_code, headers, answer.body, clipped, cause)

    def _attempted(
        self, status_code: int | None, headers: Headers, body: bytes, clipped: bool, cause: AnyMessage | None
    ) -> Attempted:
        return Attempted(
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
            status_code == 410,
        )

    def _first_byte_ms(self) -> float | None:
        if self.connection is None or self.connection.first_byte_at is None or self.answer is None:
            return None
        return (self.connection.first_byte_at - self._entered_at) * 1000
