"""One HTTP client for all who play: it counts, measures, waits when it is told to, and never for long."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import httpx

from holdfast.simulation.refused import KeyRefused, SimulationRefused

TIMEOUT_SECONDS = 20.0
TRIES = 4
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 10.0
_CONNECTIONS = 32
_WINDOW_SECONDS = 5.0
_TRY_AGAIN = frozenset({"too-many-requests", "database-away"})


class Answer(NamedTuple):
    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        return self.status < 400

    @property
    def problem(self) -> str:
        """The name of the problem; of a 409 the reason, which is the same word."""
        return "" if self.is_good else str(self.document.get("type", self.status)).rsplit("/", 1)[-1]

    @property
    def etag(self) -> str:
        """For `If-Match`, where a star is any."""
        return self.headers.get("etag", "*")

    @property
    def retry_after(self) -> float | None:
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdigit() else None

    @property
    def answered_at(self) -> datetime | None:
        """By the clock of the other side; that of this machine may be wrong."""
        text = self.headers.get("date")
        return None if text is None else parsedate_to_datetime(text)


class Meter:
    """How many requests, how fast, and which of them took longest."""

    def __init__(self) -> None:
        self.requests = 0
        self.slowest_ms = 0.0
        self.failures = 0
        self._lately: deque[float] = deque(maxlen=5_000)

    def note(self, began: float, ended: float) -> None:
        self.requests += 1
        self.slowest_ms = max(self.slowest_ms, 1000 * (ended - began))
        self._lately.append(ended)

    def per_second(self) -> float:
        """Over the last few seconds."""
        now = time.monotonic()
        return sum(1 for ended in self._lately if ended > now - _WINDOW_SECONDS) / _WINDOW_SECONDS


class Caller:
    def __init__(self, http: httpx.AsyncClient, key: str) -> None:
        self._http = http
        self._key = key
        self.meter = Meter()
        self.on_failure: Callable[[str], None] = lambda _: None
        self.wait: Callable[[float], Awaitable[None]] = asyncio.sleep
        """A play has its own way to wait, since it may end meanwhile."""

    @property
    def url(self) -> str:
        return str(self._http.base_url).rstrip("/")

    async def with_key(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **headers: str
    ) -> Answer:
        answer = await self.ask(method, path, body, Authorization=f"Bearer {self._key}", **headers)
        if answer.status == 401:
            raise KeyRefused(
                f"The Holdfast at {self.url} refuses the key: it is unknown, revoked or expired."
            )
        return answer

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **headers: str
    ) -> Answer:
        """Names of headers may have _ for -. Every request can be repeated: an answer may get lost."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        for number in range(1, TRIES + 1):
            answer = await self._once(method, path, body, sent)
            if answer is not None and answer.problem not in _TRY_AGAIN:
                break
            if number < TRIES:
                await self.wait(_pause(answer))
        if answer is None:
            raise SimulationRefused(f"The Holdfast at {self.url} does not answer any more.")
        if answer.status >= 500 and answer.problem not in _TRY_AGAIN:
            self.on_failure(f"{method} {path} was answered with {answer.status}.")
        return answer

    async def _once(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> Answer | None:
        """None: no answer, and nobody knows whether it was done."""
        began = time.monotonic()
        try:
            response = await self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            self.meter.failures += 1
            return None
        self.meter.note(began, time.monotonic())
        return Answer(response.status_code, _document(response), response.headers)


def open_client(url: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
    return httpx.AsyncClient(base_url=url, timeout=TIMEOUT_SECONDS, limits=limits)


def _pause(answer: Answer | None) -> float:
    told = None if answer is None else answer.retry_after
    return min(told or _PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)


def _document(response: httpx.Response) -> Mapping[str, Any]:
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
