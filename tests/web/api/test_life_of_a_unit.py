"""Whatever is done to units, in whatever order, by whomever: the API as a whole against a model of it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support import model
from tests.support.app import InProcessApp
from tests.support.feed import Feed
from tests.support.sql import Sql
from tests.support.unit_rules import CODES, NORA, OMAR, TERMS, WAYS, LifeOfUnits, World, world_of

EXAMPLES, STEPS = 8, 20
AMONG_THE_FAST = ("held", "signed", "reserved")


@pytest.fixture(scope="module")
def world(server: InProcessApp, sql: Sql, session_feed: Feed) -> Iterator[World]:
    with world_of(server.address, sql, session_feed) as made:
        yield made


def everything(life: LifeOfUnits, code: str) -> Iterator[Callable[[], None]]:
    """All that anybody can ask for, one after the other."""
    for status in (None, "available", "unavailable", "reserved"):
        yield partial(life.put, code, life.units[code].fields, status)
    yield partial(life.put, code, {**TERMS[3], "description": "Sea view"}, None)
    yield partial(life.patch, code, {"depositPercent": 20}, {"depositPercent"}, None)
    yield partial(life.hold, code, None)
    yield partial(life.close_sale, code, None)
    yield partial(life.close_sale, code, OMAR)
    for action in ("open", "extend", "confirm-deposit", *model.STAFF_MOVES):
        yield partial(life.act_on_unit, code, action)
    if life.bookings:
        yield from everything_with_a_booking(life, code)


def everything_with_a_booking(life: LifeOfUnits, code: str) -> Iterator[Callable[[], None]]:
    yield partial(life.hold, code, 0)
    yield partial(life.sign, 0, NORA)
    yield partial(life.sign, 0, OMAR)
    yield partial(life.cancel_as_buyer, 0)
    yield partial(life.reissue_the_link, 0)
    for action in ("cancel", "close-sale", "extend", "mark-refunded", "confirm-deposit"):
        yield partial(life.act_on_booking, 0, action, by_payments=False)


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[] if way in AMONG_THE_FAST else pytest.mark.slow) for way in WAYS]
)
def test_every_call_in_every_state_is_answered_as_the_contract_says(world: World, way: str) -> None:
    life, code = LifeOfUnits(world), CODES[0]
    life.put(code, {**TERMS[1], "description": None}, None)
    unit = life.units[code]
    life.go(code, way)
    for call in everything(life, code):
        before = len(unit.history)
        call()
        if len(unit.history) != before:
            life.go(code, way)
    life.teardown()


@pytest.mark.slow
def test_every_life_of_a_unit_goes_as_the_contract_says(world: World) -> None:
    few = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    make: Any = lambda: LifeOfUnits(world)  # noqa: E731 - it wants a class, and calls it without arguments
    run_state_machine_as_test(make, settings=few)


@pytest.mark.slow
def test_a_reservation_that_is_over_is_over_for_everybody(world: World) -> None:
    life, code = LifeOfUnits(world), CODES[0]
    life.put(code, {**TERMS[1], "description": None}, None)
    life.go(code, "signed")
    life.let_a_reservation_lapse()
    for call in list(everything_with_a_booking(life, code))[1:]:
        call()
    life.teardown()
