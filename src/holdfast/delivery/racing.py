"""The first of several connects that succeeds (RFC 8305): a dead address costs a moment, not the attempt."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any

from holdfast.domain.addresses import IPAddress

Opener = Callable[[], Coroutine[Any, Any, socket.socket]]
_Task = asyncio.Task[socket.socket]

_STAGGER_SECONDS = 0.25
# They tell of this machine's networks more than of the receiver, so any other failure is worth more.
_UNREACHABLE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT))


def interleaved(addresses: Iterable[IPAddress]) -> list[IPAddress]:
    """IPv6 and IPv4 in turn, from the family that the resolver put first."""
    families: dict[int, list[IPAddress]] = {}
    for address in addresses:
        families.setdefault(address.version, []).append(address)
    return [address for address in chain(*zip_longest(*families.values())) if address is not None]


async def first_open(openers: Sequence[Opener]) -> socket.socket:
    """The next one starts when one before it failed, or after a moment; the losers are closed.

    Raises the most telling ``OSError`` if all fail, and anything else that one of them raises at once.
    """
    race = _Race(openers)
    try:
        return await race.run()
    finally:
        await race.close()


class _Race:
    def __init__(self, openers: Sequence[Opener]) -> None:
        self._waiting = deque(openers)
        self._tasks: list[_Task] = []
        self._failed: list[OSError] = []
        self._winner: socket.socket | None = None

    async def run(self) -> socket.socket:
        running: set[_Task] = set()
        while self._winner is None and (self._waiting or running):
            if self._waiting:
                running.add(self._start())
            pause = _STAGGER_SECONDS if self._waiting else None
            done, running = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            self._judge(done)
        if self._winner is None:
            raise next((e for e in self._failed if e.errno not in _UNREACHABLE), self._failed[0])
        return self._winner

    def _start(self) -> _Task:
        task = asyncio.create_task(self._waiting.popleft()())
        self._tasks.append(task)
        return task

    def _judge(self, done: set[_Task]) -> None:
        for task in done:
            error = task.exception()
            if error is None:
                self._winner = self._winner or task.result()
            elif isinstance(error, OSError):
                self._failed.append(error)
            else:
                raise error

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, socket.socket) and outcome is not self._winner:
                outcome.close()
