"""Runs loops until the process stops. Each loop does one round and returns how long it may sleep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.operations.delivery_queue import run_until_stopped

logger = logging.getLogger("holdfast.background")

PAUSE_AFTER_FAILURE_SECONDS = 1.0
LAST_ROUND_SECONDS = 8.0
"""The time that a round has to finish when the process stops."""


class Loop(Protocol):
    @property
    def name(self) -> str: ...

    async def run_once(self) -> float:
        """Do what is due; return the seconds until there may be more to do."""
        ...


async def run_loops(loops: Sequence[Loop], stop: asyncio.Event) -> None:
    """Run until ``stop`` is set. A round that fails is logged and tried again."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_run(loop, stop))


async def _run(loop: Loop, stop: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            pause = await run_until_stopped(stopping, partial(_run_once, loop), LAST_ROUND_SECONDS)
            await asyncio.wait((stopping,), timeout=pause)
    finally:
        stopping.cancel()


async def _run_once(loop: Loop) -> float:
    try:
        return await loop.run_once()
    except DatabaseUnavailable:
        logger.warning("%s: the database is away", loop.name)
    except Exception:
        logger.exception("%s failed", loop.name)
    return PAUSE_AFTER_FAILURE_SECONDS
