"""Runs the loops. Each loop does one round and says how long it may sleep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.operations.rounds import round_until

logger = logging.getLogger("holdfast.background")

PAUSE_AFTER_FAILURE_SECONDS = 1.0
LAST_ROUND_SECONDS = 8.0
"""For what is under way when the process is told to stop; the next one does the rest."""


class Loop(Protocol):
    name: str

    async def run_once(self) -> float:
        """Do what is due; give the seconds until there may be more to do."""
        ...


async def run_loops(loops: Sequence[Loop], stop: asyncio.Event) -> None:
    """Until ``stop`` is set. A failing round is logged and tried again; it ends nothing."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_run(loop, stop))


async def _run(loop: Loop, stop: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            pause = await round_until(stopping, partial(_round, loop), LAST_ROUND_SECONDS)
            await asyncio.wait((stopping,), timeout=pause)
    finally:
        stopping.cancel()


async def _round(loop: Loop) -> float:
    try:
        return await loop.run_once()
    except DatabaseUnavailable:
        logger.warning("%s: the database is away", loop.name)
    except Exception:
        logger.exception("%s failed", loop.name)
    return PAUSE_AFTER_FAILURE_SECONDS
