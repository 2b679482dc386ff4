"""Rounds of work that end soon when their process is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

_GIVING_UP_SECONDS = 0.25


async def round_until(
    stopping: asyncio.Future[Literal[True]], work: Callable[[], Awaitable[float]], grace_seconds: float
) -> float:
    """What the round says, or 0.0 for one that was given up, ``grace_seconds`` after the word to stop: a
    database that lets us wait does not keep us from leaving."""
    under_way = asyncio.ensure_future(work())
    await asyncio.wait((under_way, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not under_way.done():
        await asyncio.wait((under_way,), timeout=grace_seconds)
        under_way.cancel()
        await asyncio.wait((under_way,), timeout=_GIVING_UP_SECONDS)
    return under_way.result() if under_way.done() and not under_way.cancelled() else 0.0
