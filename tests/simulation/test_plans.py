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
def test_twenty_buyers_show_every_behavior_within_two_minutes(seed: int) -> None:
    plans = plan_buyers(20, seed)
    assert Counter(plan.behavior for plan in plans) == Counter(BEHAVIORS)
    assert 45 < max(plan.seconds for plan in plans) < 120


def test_every_behavior_is_there_and_most_buyers_sign() -> None:
    assert set(BEHAVIORS) == set(Behavior)
    leaving = {Behavior.CANCELS, Behavior.WALKS_AWAY}
    assert sum(behavior not in leaving for behavior in BEHAVIORS) > len(BEHAVIORS) / 2


def test_every_fourth_buyer_comes_together_with_another_for_the_same_unit() -> None:
    for first, second in pairwise(plan_buyers(20, 1)):
        wishes = [(one.arrives_after, one.searches_for, one.bedrooms, one.budget) for one in (first, second)]
        assert (wishes[0] == wishes[1]) == (second.number % 4 == 0)


def test_buyers_do_not_exist_differ_and_have_names_in_both_scripts_that_are_shown_in_one() -> None:
    people = [plan.person for plan in plan_buyers(300, 2)]
    for person in people:
        assert person.email.endswith("@example.com")
        assert FOR_FILMS_AND_BOOKS.fullmatch(person.phone)
        assert person.latin_name.isascii()
        assert person.email.isascii()
    assert len({person.latin_name for person in people}) == len({person.email for person in people}) == 300
    assert {bool(ARABIC.search(person.name)) for person in people} == {True, False}


UNITS = [
    {"code": "A-1", "priceSar": 400_000, "bedrooms": 1},
    {"code": "A-2", "priceSar": 500_000, "bedrooms": 2},
    {"code": "A-3", "priceSar": 600_000, "bedrooms": None},
    {"code": "A-4", "priceSar": 900_000, "bedrooms": 3},
]


def test_a_unit_is_chosen_by_bedrooms_before_the_price() -> None:
    for bedrooms, budget, code in ((2, 0.0, "A-2"), (2, 1.0, "A-3"), (0, 0.5, "A-1"), (9, 0.0, "A-4")):
        assert choose_unit(UNITS, bedrooms, budget, set()) == code
    assert choose_unit(UNITS, 2, 0.0, {"A-2", "A-3"}) == "A-1"
    assert choose_unit(UNITS, 2, 0.0, {"A-1", "A-2", "A-3", "A-4"}) is None
