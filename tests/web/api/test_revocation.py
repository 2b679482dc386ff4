"""A revoked key bites within a second, on every process."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support.client import integration_client
from tests.support.keys import Keys
from tests.support.sql import Sql

PROJECTS = "/v1/integration/projects"
PROMISE_SECONDS = 1.0


@pytest.fixture
def many_connections(addresses: list[str]) -> Iterator[list[httpx.Client]]:
    """Connections of their own, to all the processes that there are."""
    with ExitStack() as stack:
        yield [stack.enter_context(integration_client(address, None)) for address in addresses * 12]


def statuses(connections: list[httpx.Client], text: str) -> list[int]:
    headers = {"Authorization": f"Bearer {text}"}
    return [connection.get(PROJECTS, headers=headers).status_code for connection in connections]


@pytest.mark.parametrize("notified", [True, False], ids=["by the command", "with the notification lost"])
def test_a_revoked_key_is_refused_by_every_process(
    many_connections: list[httpx.Client], keys: Keys, sql: Sql, notified: bool
) -> None:
    key = keys.issue()
    assert set(statuses(many_connections, key.text)) == {200}
    if notified:
        keys.revoke(key)
    else:
        sql.execute("update api_key set revoked_at = clock_timestamp() where id = $1", key.id)
    over = time.monotonic() + PROMISE_SECONDS
    while time.monotonic() < over:
        statuses(many_connections, key.text)
    assert set(statuses(many_connections, key.text)) == {401}


def test_a_new_key_works_at_once_on_every_process(many_connections: list[httpx.Client], keys: Keys) -> None:
    assert set(statuses(many_connections, keys.issue().text)) == {200}
