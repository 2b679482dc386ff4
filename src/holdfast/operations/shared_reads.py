"""What many ask for at the same time is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class SharedReads:
    """Nobody is given what was read before they asked: whoever comes while it is read waits for the next
    read, together with all who come meanwhile. So there is one at a time, however many ask."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def read(self, key: Hashable, reading: Callable[[], Awaitable[T]]) -> T:
        joined: asyncio.Task[T] | None = self._next.get(key)
        if joined is None:
            joined = asyncio.get_running_loop().create_task(self._in_turn(key, reading))
            joined.add_done_callback(_note_failure)
            self._next[key] = joined
        # One who goes away takes nothing from the others.
        return await asyncio.shield(joined)

    async def _in_turn(self, key: Hashable, reading: Callable[[], Awaitable[T]]) -> T:
        earlier = self._running.get(key)
        if earlier is not None:
            await asyncio.wait([earlier])
        own = self._running[key] = self._next.pop(key)
        try:
            return await reading()
        finally:
            if self._running.get(key) is own:
                del self._running[key]


def _note_failure(task: asyncio.Task[Any]) -> None:
    """Those who waited have it; it is no news where all of them have gone."""
    with suppress(asyncio.CancelledError):
        task.exception()
