"""The HTTP client of the simulation: it retries, obeys `Retry-After`, and counts and times requests."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import httpx

TIMEOUT_SECONDS = 20.0
ATTEMPTS = 4
_RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 10.0
_CONNECTIONS = 32
_RATE_WINDOW_SECONDS = 5.0
_RETRIED_PROBLEMS = frozenset({"too-many-requests", "database-away"})


class SimulationError(Exception):
    """The simulation cannot start or go on. The text is one sentence for the user."""


class SimulationStopped(Exception):
    """The simulation has ended; whoever waits leaves."""


class InvalidKey(SimulationError):
    """The server does not accept the key."""


class ApiResponse(NamedTuple):
    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def is_success(self) -> bool:
        return self.status < 400

    @property
    def problem(self) -> str:
        """The name of the problem type; for a 409 this is also the reason."""
        return "" if self.is_success else str(self.document.get("type", self.status)).rsplit("/", 1)[-1]

    @property
    def etag(self) -> str:
        """The value for `If-Match`, where `*` matches any version."""
        return self.headers.get("etag", "*")

    @property
    def retry_after(self) -> float | None:
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdigit() else None

    @property
    def date(self) -> datetime | None:
        """The server's time; this machine's clock may be wrong."""
        text = self.headers.get("date")
        return None if text is None else parsedate_to_datetime(text)


class ApiClient:
    def __init__(self, http: httpx.AsyncClient, key: str) -> None:
        self._http = http
        self._key = key
        self._recent: deque[float] = deque(maxlen=5_000)
        self.url = str(http.base_url).rstrip("/")
        self.requests = 0
        self.slowest_ms = 0.0
        self.on_server_error: Callable[[str], None] = lambda _: None
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        """Replaced while the simulation runs, so that stopping it ends the wait."""

    @property
    def requests_per_second(self) -> float:
        since = time.monotonic() - _RATE_WINDOW_SECONDS
        return sum(1 for ended in self._recent if ended > since) / _RATE_WINDOW_SECONDS

    async def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **headers: str
    ) -> ApiResponse:
        """Send a request, with `_` for `-` in header names, and with the key unless they identify a buyer.

        It is repeated if the response was lost, so every request must be safe to repeat.
        """
        uses_key = headers.keys().isdisjoint({"Authorization", "Cookie"})
        if uses_key:
            headers["Authorization"] = f"Bearer {self._key}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        for attempt in range(1, ATTEMPTS + 1):
            response = await self._send(method, path, body, sent)
            if response is not None and response.problem not in _RETRIED_PROBLEMS:
                break
            if attempt < ATTEMPTS:
                retry_after = None if response is None else response.retry_after
                await self.sleep(min(retry_after or _RETRY_SECONDS, _MAX_RETRY_SECONDS))
        if response is None:
            raise SimulationError(f"The server at {self.url} no longer answers.")
        if response.status >= 500 and response.problem not in _RETRIED_PROBLEMS:
            self.on_server_error(f"{method} {path} was answered with {response.status}.")
        if response.status == 401 and uses_key:
            text = f"The server at {self.url} refuses the key: it is unknown, revoked or expired."
            raise InvalidKey(text)
        return response

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> ApiResponse | None:
        """Return None if there was no response; the request may have been processed."""
        started = time.monotonic()
        try:
            response = await self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            return None
        ended = time.monotonic()
        self.requests += 1
        self.slowest_ms = max(self.slowest_ms, 1000 * (ended - started))
        self._recent.append(ended)
        try:
            document = response.json()
        except ValueError:
            document = None
        return ApiResponse(
            response.status_code, document if isinstance(document, dict) else {}, response.headers
        )


def open_http_client(url: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
    return httpx.AsyncClient(base_url=url, timeout=TIMEOUT_SECONDS, limits=limits)


async def check_server(url: str) -> None:
    url = url.rstrip("/")
    try:
        async with open_http_client(url) as http:
            response = await http.get("/readyz")
    except httpx.TransportError:
        raise SimulationError(f"Nothing answers at {url}; is `holdfast serve` running there?") from None
    if response.status_code == 503:
        raise SimulationError(f"The server at {url} is not ready yet.")
    if response.status_code != 200 or "x-request-id" not in response.headers:
        raise SimulationError(f"The server at {url} is not Holdfast.")
