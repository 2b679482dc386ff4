"""The plan follows from the seed and the minutes, and every kind of fault gets its turn."""

import json
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from tests.chaos.__main__ import KINDS
from tests.chaos.faults import Injection
from tests.chaos.plan import make_plan
from tests.chaos.summary import RESULTS

SEEDS = range(1, 31)
RARE_TIMES, TIMES = 10, 20
"""Rare are the losses of power, the promotions, and the faults of disks and clocks."""


def described(plan: list[Injection]) -> list[tuple[str, float, float, float]]:
    return [(one.kind.name, one.at, one.seconds, one.chance.random()) for one in plan]


def test_a_seed_gives_the_same_plan_each_time_and_another_seed_another_one() -> None:
    assert described(make_plan(7, 1.5, KINDS)) == described(make_plan(7, 1.5, KINDS))
    assert described(make_plan(7, 1.5, KINDS)) != described(make_plan(8, 1.5, KINDS))


def test_there_are_forty_kinds_of_faults_with_names_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 40


@pytest.mark.parametrize("seed", [-1, 0, 2**70])
def test_any_seed_gives_a_plan(seed: int) -> None:
    assert make_plan(seed, 0.2, KINDS)


def test_faults_of_a_lane_follow_each_other_and_lanes_overlap() -> None:
    plan = make_plan(7, 1.5, KINDS)
    lanes = defaultdict(list)
    for one in plan:
        lanes[one.kind.lane].append(one)
    for own in lanes.values():
        assert all(later.at > earlier.at + earlier.seconds for earlier, later in pairwise(own))
    assert any(later.at < earlier.at + earlier.seconds for earlier, later in pairwise(plan))


def test_thirty_seeds_meet_every_kind_often_enough() -> None:
    met = Counter(one.kind for seed in SEEDS for one in make_plan(seed, 1.5, KINDS))
    for kind in KINDS:
        assert met[kind] >= (RARE_TIMES if kind.weight == 1 else TIMES), kind.name


def test_the_published_runs_are_those_seeds_held_and_saw_every_kind_often_enough() -> None:
    runs = json.loads((RESULTS / "runs.json").read_text())
    assert (runs["seeds"], runs["not held"]) == (list(SEEDS), [])
    seen = {name: with_effect for name, _, _, with_effect, *_ in runs["rows"]}
    for kind in KINDS:
        assert seen.get(kind.name, 0) >= (RARE_TIMES if kind.weight == 1 else TIMES), kind.name
