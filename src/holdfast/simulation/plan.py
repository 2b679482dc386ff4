"""What each buyer is going to do, decided before anybody moves. Pure: the same seed, the same plan."""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import NamedTuple

from holdfast.simulation.people import Person, make_people
from holdfast.simulation.taste import Taste

SECONDS_BETWEEN_ARRIVALS = 2.5
_TOGETHER_EVERY = 4
_BEDROOMS = (0, 1, 2, 2, 3, 3, 4)
_BUDGETS = (0.15, 0.35, 0.6)


class BuyerCourse(StrEnum):
    BUYS = "buys"
    PAYS_TWICE = "pays-twice"
    PAYS_LATE = "pays-late"
    """Signs and cancels, while the money is on its way."""
    WITHDRAWS = "withdraws"
    """Has paid, and gets the money back."""
    LETS_GO = "lets-go"
    WALKS_AWAY = "walks-away"
    """Says nothing; the hold lapses, if that does not take too long to wait for."""


# Of twenty buyers, so many of each; a few buyers are some of these cards.
DECK = (
    *[BuyerCourse.BUYS] * 10,
    *[BuyerCourse.PAYS_TWICE] * 2,
    *[BuyerCourse.PAYS_LATE] * 2,
    BuyerCourse.WITHDRAWS,
    *[BuyerCourse.LETS_GO] * 3,
    *[BuyerCourse.WALKS_AWAY] * 2,
)


class BuyerPlan(NamedTuple):
    """Seconds are those of pace 1, each counted from the end of the step before."""

    number: int
    person: Person
    course: BuyerCourse
    taste: Taste
    arrives_after: float
    looks_for: float
    signs_after: float
    pays_after: float
    closes_after: float

    @property
    def seconds(self) -> float:
        steps = self.looks_for, self.signs_after, self.pays_after, self.closes_after
        return self.arrives_after + sum(steps)


def plan_buyers(count: int, seed: int) -> list[BuyerPlan]:
    random = Random(seed)  # noqa: S311
    people = make_people(random, count)
    plans: list[BuyerPlan] = []
    for number, course in enumerate(_courses(count, random), start=1):
        plan = _plan(number, people[number - 1], course, count, random)
        comes_along = plans and number % _TOGETHER_EVERY == 0
        plans.append(_together(plan, plans[-1]) if comes_along else plan)
    return plans


def longest_seconds(plans: list[BuyerPlan]) -> float:
    return max(plan.seconds for plan in plans)


def _courses(count: int, random: Random) -> list[BuyerCourse]:
    courses: list[BuyerCourse] = []
    while len(courses) < count:
        courses += random.sample(DECK, len(DECK))
    return courses[:count]


def _plan(number: int, person: Person, course: BuyerCourse, count: int, random: Random) -> BuyerPlan:
    return BuyerPlan(
        number,
        person,
        course,
        Taste(random.choice(_BEDROOMS), random.choice(_BUDGETS)),
        arrives_after=random.uniform(0, SECONDS_BETWEEN_ARRIVALS * count),
        looks_for=random.uniform(2, 6),
        signs_after=random.uniform(3, 9),
        pays_after=random.uniform(3, 8),
        closes_after=random.uniform(3, 8),
    )


def _together(plan: BuyerPlan, other: BuyerPlan) -> BuyerPlan:
    """At the same moment for the same unit: one of the two will be too late."""
    return plan._replace(taste=other.taste, arrives_after=other.arrives_after, looks_for=other.looks_for)
