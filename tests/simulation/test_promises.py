"""A promise that is broken is seen, and so is a server that goes away."""

import asyncio

import httpx

from holdfast.simulation.calling import Caller
from holdfast.simulation.ground import Ground
from holdfast.simulation.play import Play, SimulationOptions
from holdfast.simulation.totals import Totals
from tests.simulation.lying import LyingSide

CODES = ["A-1", *(f"B-{number}" for number in range(9))]


def played(side: LyingSide, buyers: int = 6) -> Totals:
    async def run() -> Totals:
        async with httpx.AsyncClient(base_url="http://lying.example", transport=side) as http:
            ground = Ground("tower", "The Tower", CODES, len(CODES))
            return await Play(Caller(http, "key"), ground, SimulationOptions(buyers, 1, 100.0)).run()

    return asyncio.run(run())


def test_a_unit_given_to_two_buyers_is_a_broken_promise() -> None:
    totals = played(LyingSide())
    assert not totals.is_sound
    assert any("was given to two buyers at once" in sentence for sentence in totals.broken)


def test_a_hold_that_is_not_in_the_history_is_a_broken_promise() -> None:
    totals = played(LyingSide(), buyers=1)
    assert totals.broken == ["The hold R-1 of A-1 is not in its history."]


def test_a_server_that_goes_away_ends_the_play() -> None:
    totals = played(LyingSide(answers=3))
    assert totals.ended == "failed"
    assert totals.failure == "The Holdfast at http://lying.example does not answer any more."
