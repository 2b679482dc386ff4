"""A violation is reported, and so is a server that goes away."""

import asyncio
from typing import Any

import httpx

from holdfast.simulation.client import ApiClient
from holdfast.simulation.runner import Simulation, SimulationOptions
from holdfast.simulation.state import Project
from tests.simulation.faulty_server import FaultyServer

CODES = ["A-1", *(f"B-{number}" for number in range(9))]


def simulate(server: FaultyServer, buyers: int = 6) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with httpx.AsyncClient(base_url="http://faulty.example", transport=server) as http:
            project = Project("tower", "The Tower", CODES, len(CODES))
            return await Simulation(
                ApiClient(http, "key"), project, SimulationOptions(buyers, 1, 100.0)
            ).run()

    return asyncio.run(run())


def test_a_unit_given_to_two_buyers_is_a_violation() -> None:
    totals = simulate(FaultyServer())
    assert any("was given to two buyers at once" in sentence for sentence in totals["brokenPromises"])


def test_a_hold_that_is_not_in_the_history_is_a_violation() -> None:
    totals = simulate(FaultyServer(), buyers=1)
    assert totals["brokenPromises"] == ["The hold R-1 of A-1 is not in its history."]


def test_a_server_that_goes_away_ends_the_simulation() -> None:
    totals = simulate(FaultyServer(max_responses=3))
    assert totals["ended"] == "failed"
    assert totals["failure"] == "The Holdfast at http://faulty.example does not answer any more."
