"""One HTTP/1.1 connection to a receiver, and one exchange on it at a time."""

from __future__ import annotations

import asyncio
import select
from time import perf_counter
from typing import cast

from holdfast.delivery.answer import Answer


class Connection(asyncio.Protocol):
    """Whatever arrives while nothing was asked ends it, and so does an answer that is not read to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str) -> None:
        self.address = address
        self.is_open = False
        self.made_at = 0.0
        self.usable_until = 0.0
        self.first_byte_at: float | None = None
        self.spoke_unasked = False
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._settled: asyncio.Future[None] | None = None
        self.lost: asyncio.Future[None] = loop.create_future()
        self._poll = select.poll()

    def is_writable(self) -> bool:
        """The transport knows of an error before the loop has come round to telling it."""
        return self.is_open and self._transport is not None and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Still open, and nothing has arrived: also nothing that the loop has had no time to read yet."""
        return self.is_writable() and not self._poll.poll(0)

    def ask(self, request: bytes) -> Answer:
        """Only on a connection that is open; the whole request is handed over at once."""
        assert self._transport is not None
        self.first_byte_at = None
        self._answer = Answer()
        self._transport.write(request)
        return self._answer

    async def settle(self) -> None:
        """Wait until the answer is settled. Whoever is cancelled here closes the connection."""
        if self._answer is not None and not self._answer.is_settled:
            self._settled = self._loop.create_future()
            await self._settled

    def rest(self) -> None:
        """The exchange is over, and the next may come."""
        self._answer = None
        self._settled = None

    def abort(self) -> None:
        self.is_open = False
        self.rest()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """With a goodbye, where TLS has one."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    # From here on: what the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self.made_at = perf_counter()
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or answer.is_settled:
            self.spoke_unasked = True
            self._break_off()
            return
        if self.first_byte_at is None:
            self.first_byte_at = perf_counter()
        answer.feed(data)
        self._wake_if_settled(answer)

    def eof_received(self) -> None:
        # None closes the transport, and connection_lost comes without an error.
        self.is_open = False
        if self._answer is not None:
            self._answer.end(is_reset=False)
            self._wake_if_settled(self._answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None:
            self._answer.end(is_reset=error is not None)
            self._wake_if_settled(self._answer)
        self._transport = None
        self.lost.set_result(None)

    def _wake_if_settled(self, answer: Answer) -> None:
        if not answer.is_settled:
            return
        if not answer.idle_seconds:
            self._break_off()
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def _break_off(self) -> None:
        """At once, and not when the one who waits comes round to it: an endless answer goes on meanwhile."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()
