"""What was acknowledged by one process is seen at once by every other."""

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import concerning, read_on
from tests.support.keys import Keys
from tests.support.server import wait_until
from tests.support.sql import Sql
from tests.support.webhooks import ENDPOINTS, Registrar


@pytest.fixture(scope="module")
def connections(addresses: list[str], api_key: str) -> Iterator[list[httpx.Client]]:
    """Connections of their own, to all the processes that there are."""
    with ExitStack() as stack:
        yield [stack.enter_context(integration_client(address, api_key)) for address in addresses * 6]


def statuses(connections: list[httpx.Client], path: str, key: str) -> set[int]:
    headers = {"Authorization": f"Bearer {key}"}
    return {connection.get(path, headers=headers).status_code for connection in connections}


def test_a_write_is_read_back_through_every_connection(
    connections: list[httpx.Client], project: Project
) -> None:
    for price, writer in enumerate(connections):
        answer = Unit(writer, project, "A-101").put(minimal(priceSar=price))
        seen = [Unit(reader, project, "A-101").get() for reader in connections]
        assert {reading.text for reading in seen} == {answer.text}
        assert {reading.headers["etag"] for reading in seen} == {answer.headers["etag"]}


def test_events_projects_endpoints_and_keys_are_known_to_every_process(
    connections: list[httpx.Client], project: Project, registrar: Registrar, keys: Keys
) -> None:
    assert statuses(connections, project.units_url, keys.issue().text) == {200}
    _, cursor = read_on(connections[0], None)
    unit = Unit(connections[0], project, "A-101")
    unit.create(minimal())
    unit.patch({"status": "unavailable"})
    feeds = [concerning(unit, read_on(reader, cursor)[0]) for reader in connections]
    assert all(feed == feeds[0] and len(feed) == 1 for feed in feeds)
    made = registrar.add(projects=[project.slug])["id"]
    key = registrar.http.headers["Authorization"].removeprefix("Bearer ")
    assert statuses(connections, f"{ENDPOINTS}/{made}", key) == {200}


@pytest.mark.parametrize("notified", [True, False], ids=["by the command", "with the notification lost"])
def test_a_revoked_key_is_refused_by_every_process(
    connections: list[httpx.Client], keys: Keys, sql: Sql, notified: bool
) -> None:
    key, path = keys.issue(), "/v1/integration/projects"
    assert statuses(connections, path, key.text) == {200}
    if notified:
        keys.revoke(key)
    else:
        sql.execute("update api_key set revoked_at = clock_timestamp() where id = $1", key.id)
    wait_until(lambda: statuses(connections, path, key.text) == {401})
