"""What happens: who does what at this moment, and what has happened lately. Pure; time is an argument."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from holdfast.simulation.ledger import Claim

_REMEMBERED = 50


class Tone(StrEnum):
    PLAIN = "plain"
    GOOD = "good"
    REFUSED = "refused"


class Happening(NamedTuple):
    seconds: float
    """Since the play began."""
    who: str
    what: str
    tone: Tone


class Scene(NamedTuple):
    who: str
    doing: str
    claim: Claim | None


class Story:
    def __init__(self, elapsed: Callable[[], float]) -> None:
        self.elapsed = elapsed
        self._listeners: list[Callable[[Happening], None]] = []
        self.now: dict[str, Scene] = {}
        self.last: deque[Happening] = deque(maxlen=_REMEMBERED)
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    def listen(self, listener: Callable[[Happening], None]) -> None:
        self._listeners.append(listener)

    def show(self, who: str, doing: str, claim: Claim | None = None) -> None:
        """What somebody does until further notice; no happening of its own."""
        self.now[who] = Scene(who, doing, claim)

    def leave(self, who: str) -> None:
        self.now.pop(who, None)

    def tell(self, who: str, what: str, count: str | None = None, tone: Tone = Tone.GOOD) -> None:
        if count is not None:
            self.counts[count] += 1
        happening = Happening(self.elapsed(), who, what, tone)
        self.last.append(happening)
        for listener in self._listeners:
            listener(happening)

    def refuse(self, who: str, what: str, reason: str, count: str | None = None) -> None:
        """A refusal is part of the story, not an error."""
        self.refusals[reason] += 1
        self.tell(who, what, count, Tone.REFUSED)
