"""The plan of a run: which fault begins when. It follows from the seed and the minutes alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from random import Random

from tests.chaos.faults import Injection, Kind

FIRST_AT = 4.0
"""Seconds of load before the first fault."""
DECKS_A_MINUTE = 0.3
"""Thirty runs of a minute and a half draw each kind 13 times for each time that it is in the deck."""
LEAST_PAUSE_SECONDS = 0.3
"""Between two faults of one lane."""


def make_plan(seed: int, minutes: float, kinds: Sequence[Kind]) -> list[Injection]:
    """Each lane draws from its deck, and spreads what it has drawn over the time.

    The draws of consecutive seeds continue in one deck, so that many runs meet every kind equally often.
    """
    plan: list[Injection] = []
    by_lane = groupby(sorted(kinds, key=lambda kind: (kind.lane, kind.name)), lambda kind: kind.lane)
    for lane, of_lane in by_lane:
        deck = [kind for kind in of_lane for _ in range(kind.weight)]
        Random(lane).shuffle(deck)
        chance = Random(f"{seed} {minutes} {lane}")
        count = max(1, round(len(deck) * DECKS_A_MINUTE * minutes))
        drawn = [deck[(seed * count + number) % len(deck)] for number in range(count)]
        chance.shuffle(drawn)
        plan += _spread(drawn, minutes * 60 - FIRST_AT, chance)
    plan.sort(key=lambda injection: injection.at)
    for number, injection in enumerate(plan, 1):
        injection.number = number
    return plan


def repeat_kind(kind: Kind, count: int, seed: int) -> list[Injection]:
    """Return a plan of one kind of fault, for measurements."""
    chance = Random(f"{seed} {kind.name}")
    plan = list(_spread([kind] * count, count * (kind.takes_seconds + kind.seconds[1] + 5), chance))
    for number, injection in enumerate(plan, 1):
        injection.number = number
    return plan


def _spread(kinds: Sequence[Kind], seconds: float, chance: Random) -> Iterator[Injection]:
    """Let them begin one after the other, with pauses of random length in the time that is left."""
    lasting = [round(chance.uniform(*kind.seconds), 2) for kind in kinds]
    busy = sum(lasting) + sum(kind.takes_seconds for kind in kinds)
    shares = [chance.random() for _ in kinds]
    at = FIRST_AT
    for kind, lasts, share in zip(kinds, lasting, shares, strict=True):
        at += max(LEAST_PAUSE_SECONDS, share / sum(shares) * (seconds - busy))
        yield Injection(kind, 0, round(at, 2), lasts, Random(chance.random()))
        at += lasts + kind.takes_seconds
