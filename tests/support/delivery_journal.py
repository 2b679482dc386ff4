"""A receiver that writes down what it got and what it answered: the other side of the delivery log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.receivers import Peer, Received, receiving
from tests.support.server import PATIENCE_SECONDS

LAG_SECONDS = 0.5


@dataclass
class Arrival:
    at: float
    path: str
    delivery_id: str
    event: str
    timestamp: str
    signature: str
    body: bytes
    status: int | None = None
    """None: no answer was given."""
    answered_at: float | None = None


Behaviour = Callable[[Arrival], Awaitable[int]]
"""The status to answer with, as soon as the receiver feels like it."""


async def accept(_: Arrival) -> int:
    return 200


@dataclass
class Journal:
    port: int = 0
    arrivals: list[Arrival] = field(default_factory=list)
    behave: Behaviour = accept
    lag_seconds: float = LAG_SECONDS
    """How much later than it came a request may be noted, on a machine that is busy."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Looked at whenever something arrives or is answered."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so():
                self._news.clear()
                await self._news.wait()

    async def arrived(self, count: int) -> None:
        await self.until(lambda: len(self.arrivals) >= count)

    async def measure_lag(self) -> None:
        while True:
            began_at = time.monotonic()
            await asyncio.sleep(LAG_SECONDS / 10)
            self.lag_seconds = max(self.lag_seconds, LAG_SECONDS + time.monotonic() - began_at)

    async def talk(self, peer: Peer) -> None:
        while True:
            arrival = _arrival(await peer.request())
            self.arrivals.append(arrival)
            self._news.set()
            status = await self.behave(arrival)
            arrival.status, arrival.answered_at = status, time.time()
            await peer.send(f"HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n\r\n".encode())
            self._news.set()


def _arrival(received: Received) -> Arrival:
    path, header = received.line.split(" ")[1].removeprefix("/"), received.header
    return Arrival(
        time.time(), path, header("X-Service-Delivery"), header("X-Service-Event"),
        header("X-Service-Timestamp"), header("X-Service-Signature"), received.body,
    )  # fmt: skip


@asynccontextmanager
async def journalling() -> AsyncIterator[Journal]:
    journal = Journal()
    async with receiving(journal.talk) as receiver:
        journal.port = receiver.port
        measuring = asyncio.create_task(journal.measure_lag())
        try:
            yield journal
        finally:
            measuring.cancel()


class Gate:
    """A behaviour that answers nobody until it is opened."""

    def __init__(self) -> None:
        self.arrived, self._opened = asyncio.Event(), asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def __call__(self, _: object) -> int:
        self.arrived.set()
        await self._opened.wait()
        return 200


class Slowly:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __call__(self, _: Arrival) -> int:
        await asyncio.sleep(self._seconds)
        return 200
