"""The form of a fault. Each lane runs its faults one after the other; the lanes run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.chaos.scene import Scene


@dataclass
class Injection:
    """One fault of a plan."""

    kind: Kind
    number: int
    at: float
    """Seconds from the start of the run."""
    seconds: float
    """How long it lasts; 0 for what is over at once."""
    chance: Random = field(repr=False)
    """For every choice that the fault makes, so that a seed replays it."""
    effect: str = ""
    begun_at: float = 0.0
    ended_at: float = 0.0

    def saw(self, effect: str) -> None:
        """Tell in a few words which effect was observed. Without one the fault does not count."""
        self.effect = self.effect or effect


Run = Callable[["Scene", Injection], Awaitable[None]]
"""Inject, observe the effect, wait ``injection.seconds``, heal. What is healed must be whole again on return,
also when it is cancelled in between (``finally``)."""


class Kind(NamedTuple):
    name: str
    """As in the tables of the report: "a web process is killed"."""
    lane: str
    run: Run
    seconds: tuple[float, float] = (0.0, 0.0)
    """It lasts at least and at most so long."""
    takes_seconds: float = 1.0
    """What it takes besides, on a machine of two cores: the plan leaves so much room."""
    weight: int = 2
    """How often it stands in its lane's deck: 1 for what is rare."""


async def until(condition: Callable[[], object], *, seconds: float = 3.0, poll_seconds: float = 0.05) -> bool:
    """Return whether it became true in time. What it returns is awaited if it can be."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                found = condition()
                if await found if isawaitable(found) else found:
                    return True
                await asyncio.sleep(poll_seconds)
    return False
