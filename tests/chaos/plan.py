"""The plan of a run: which fault begins when. It follows from the seed and the minutes alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from random import Random

from tests.chaos.faults import Injection, Kind

FIRST_AT = 4.0
"""Seconds of load before the first fault."""
PAUSE_SECONDS = (0.3, 1.5)
"""Between two faults of one lane."""


def make_plan(seed: int, minutes: float, kinds: Sequence[Kind]) -> list[Injection]:
    """Each lane draws as many faults as fit into its time.

    The draws of consecutive seeds continue in one deck, so that many runs meet every kind equally often.
    """
    plan: list[Injection] = []
    by_lane = groupby(sorted(kinds, key=lambda kind: (kind.lane, kind.name)), lambda kind: kind.lane)
    for lane, of_lane in by_lane:
        deck = [kind for kind in of_lane for _ in range(kind.weight)]
        Random(lane).shuffle(deck)
        chance = Random(f"{seed} {minutes} {lane}")
        count = max(1, round((minutes * 60 - FIRST_AT) / _mean_seconds(deck)))
        drawn = [deck[(seed * count + number) % len(deck)] for number in range(count)]
        chance.shuffle(drawn)
        at = FIRST_AT + chance.uniform(*PAUSE_SECONDS)
        for kind in drawn:
            seconds = chance.uniform(*kind.seconds)
            plan.append(Injection(kind, 0, round(at, 2), round(seconds, 2), Random(chance.random())))
            at += seconds + kind.takes_seconds + chance.uniform(*PAUSE_SECONDS)
    plan.sort(key=lambda injection: injection.at)
    for number, injection in enumerate(plan, 1):
        injection.number = number
    return plan


def repeat_kind(kind: Kind, count: int, seed: int) -> list[Injection]:
    """Return a plan of one kind of fault, for measurements."""
    chance, plan, at = Random(f"{seed} {kind.name}"), list[Injection](), FIRST_AT
    for number in range(1, count + 1):
        seconds = chance.uniform(*kind.seconds)
        plan.append(Injection(kind, number, round(at, 2), round(seconds, 2), Random(chance.random())))
        at += seconds + kind.takes_seconds + 3
    return plan


def _mean_seconds(deck: Sequence[Kind]) -> float:
    return (
        sum(sum(kind.seconds) / 2 + kind.takes_seconds for kind in deck) / len(deck) + sum(PAUSE_SECONDS) / 2
    )
