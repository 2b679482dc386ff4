"""Plans of buyers."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from holdfast.simulation.plans import BEHAVIORS, Behavior, choose_unit, plan_buyers

FOR_FILMS_AND_BOOKS = re.compile(r"\+44 7700 900\d{3}|\+1 202-555-01\d{2}")
ARABIC = re.compile(r"[\u0600-\u06FF]")


def test_the_same_seed_makes_the_same_plan() -> None:
    assert plan_buyers(30, 7) == plan_buyers(30, 7)
    assert plan_buyers(30, 7) != plan_buyers(30, 8)


@pytest.mark.parametrize("seed", range(5))
def test_twenty_buyers_show_every_behavior(seed: int) -> None:
    assert Counter(plan.behavior for plan in plan_buyers(20, seed)) == Counter(BEHAVIORS)
    assert set(BEHAVIORS) == set(Behavior)


def test_most_buyers_sign() -> None:
    leaving = {Behavior.CANCELS, Behavior.WALKS_AWAY}
    assert sum(behavior not in leaving for behavior in BEHAVIORS) > len(BEHAVIORS) / 2


def test_some_come_together_for_the_same_unit() -> None:
    plans = plan_buyers(20, 1)
    for first, second in pairwise(plans):
        together = (first.arrives_after, first.searches_for, first.bedrooms, first.budget)
        assert ((second.arrives_after, second.searches_for, second.bedrooms, second.budget) == together) == (
            second.number % 4 == 0
        )


@pytest.mark.parametrize("seed", range(5))
def test_twenty_buyers_take_one_to_two_minutes(seed: int) -> None:
    assert 45 < max(plan.seconds for plan in plan_buyers(20, seed)) < 120


def test_nobody_exists() -> None:
    people = [plan.person for plan in plan_buyers(300, 2)]
    assert all(person.email.endswith("@example.com") for person in people)
    assert all(FOR_FILMS_AND_BOOKS.fullmatch(person.phone) for person in people)


def test_no_two_buyers_are_shown_alike() -> None:
    people = [plan.person for plan in plan_buyers(300, 2)]
    assert len({person.latin_name for person in people}) == len({person.email for person in people}) == 300


def test_names_are_signed_in_both_scripts_and_shown_in_one() -> None:
    people = [plan.person for plan in plan_buyers(100, 2)]
    assert {bool(ARABIC.search(person.name)) for person in people} == {True, False}
    assert all(person.latin_name.isascii() and person.email.isascii() for person in people)


UNITS = [
    {"code": "A-1", "priceSar": 400_000, "bedrooms": 1},
    {"code": "A-2", "priceSar": 500_000, "bedrooms": 2},
    {"code": "A-3", "priceSar": 600_000, "bedrooms": None},
    {"code": "A-4", "priceSar": 900_000, "bedrooms": 3},
]


@pytest.mark.parametrize(
    ("bedrooms", "budget", "code"), [(2, 0.0, "A-2"), (2, 1.0, "A-3"), (0, 0.5, "A-1"), (9, 0.0, "A-4")]
)
def test_bedrooms_come_before_the_price(bedrooms: int, budget: float, code: str) -> None:
    assert choose_unit(UNITS, bedrooms, budget) == code


def test_excluded_units_are_not_chosen() -> None:
    assert choose_unit(UNITS, 2, 0.0, {"A-2", "A-3"}) == "A-1"
    assert choose_unit(UNITS, 2, 0.0, {"A-1", "A-2", "A-3", "A-4"}) is None
