"""What was acknowledged by one process is seen at once by every other."""

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import concerning, read_on


@pytest.fixture
def connections(addresses: list[str], api_key: str) -> Iterator[list[httpx.Client]]:
    """Connections of their own, to all the processes that there are."""
    with ExitStack() as stack:
        yield [stack.enter_context(integration_client(address, api_key)) for address in addresses * 6]


def test_a_write_is_read_back_through_every_connection(
    connections: list[httpx.Client], project: Project
) -> None:
    for price, writer in enumerate(connections):
        answer = Unit(writer, project, "A-101").put(minimal(priceSar=price))
        seen = [Unit(reader, project, "A-101").get() for reader in connections]
        assert {reading.text for reading in seen} == {answer.text}
        assert {reading.headers["etag"] for reading in seen} == {answer.headers["etag"]}


def test_an_event_is_in_the_feed_of_every_connection(
    connections: list[httpx.Client], project: Project
) -> None:
    _, cursor = read_on(connections[0], None)
    unit = Unit(connections[0], project, "A-101")
    unit.create(minimal())
    unit.patch({"status": "unavailable"})
    feeds = [concerning(unit, read_on(reader, cursor)[0]) for reader in connections]
    assert all(feed == feeds[0] and len(feed) == 1 for feed in feeds)


def test_a_new_project_is_known_to_every_process(
    connections: list[httpx.Client], http: httpx.Client, project: Project
) -> None:
    assert {reader.get(project.units_url).status_code for reader in connections} == {200}
