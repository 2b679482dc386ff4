"""What buyers are going to do, before anybody asks a server."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from holdfast.simulation.plan import DECK, BuyerCourse, longest_seconds, plan_buyers
from holdfast.simulation.taste import Offer, Taste, favourite

FOR_FILMS_AND_BOOKS = re.compile(r"\+44 7700 900\d{3}|\+1 202-555-01\d{2}")
ARABIC = re.compile(r"[\u0600-\u06FF]")


def test_the_same_seed_makes_the_same_plan() -> None:
    assert plan_buyers(30, 7) == plan_buyers(30, 7)
    assert plan_buyers(30, 7) != plan_buyers(30, 8)


@pytest.mark.parametrize("seed", range(5))
def test_twenty_buyers_play_every_course(seed: int) -> None:
    assert Counter(plan.course for plan in plan_buyers(20, seed)) == Counter(DECK)
    assert set(DECK) == set(BuyerCourse)


def test_most_buyers_sign() -> None:
    leaving = {BuyerCourse.LETS_GO, BuyerCourse.WALKS_AWAY}
    assert sum(course not in leaving for course in DECK) > len(DECK) / 2


def test_some_come_together_for_the_same_unit() -> None:
    plans = plan_buyers(20, 1)
    for first, second in pairwise(plans):
        together = (first.arrives_after, first.looks_for, first.taste)
        assert ((second.arrives_after, second.looks_for, second.taste) == together) == (
            second.number % 4 == 0
        )


@pytest.mark.parametrize("seed", range(5))
def test_twenty_buyers_take_one_to_two_minutes(seed: int) -> None:
    assert 45 < longest_seconds(plan_buyers(20, seed)) < 120


def test_nobody_exists() -> None:
    people = [plan.person for plan in plan_buyers(300, 2)]
    assert all(person.email.endswith("@example.com") for person in people)
    assert all(FOR_FILMS_AND_BOOKS.fullmatch(person.phone) for person in people)


def test_no_two_buyers_are_shown_alike() -> None:
    people = [plan.person for plan in plan_buyers(300, 2)]
    assert len({person.shown for person in people}) == len({person.email for person in people}) == 300


def test_names_are_signed_in_both_scripts_and_shown_in_one() -> None:
    people = [plan.person for plan in plan_buyers(100, 2)]
    assert {bool(ARABIC.search(person.name)) for person in people} == {True, False}
    assert all(person.shown.isascii() and person.email.isascii() for person in people)


OFFERS = [
    Offer("A-1", 400_000, 1),
    Offer("A-2", 500_000, 2),
    Offer("A-3", 600_000, 2),
    Offer("A-4", 900_000, 3),
]


@pytest.mark.parametrize(
    ("taste", "code"),
    [
        (Taste(2, 0.0), "A-2"),
        (Taste(2, 1.0), "A-3"),
        (Taste(0, 0.5), "A-1"),
        (Taste(9, 0.0), "A-4"),
    ],
)
def test_bedrooms_come_before_the_price(taste: Taste, code: str) -> None:
    found = favourite(OFFERS, taste)
    assert found is not None
    assert found.code == code


def test_what_one_was_too_late_for_is_passed_over() -> None:
    taste = Taste(2, 0.0)
    found = favourite(OFFERS, taste, {"A-2", "A-3"})
    assert found is not None
    assert found.code == "A-1"
    assert favourite(OFFERS, taste, {offer.code for offer in OFFERS}) is None


def test_a_unit_without_bedrooms_is_read_too() -> None:
    assert Offer.read({"code": "Shop 1", "priceSar": 12.5, "bedrooms": None}) == Offer("Shop 1", 12.5, 2)
