"""A server of its own, whose clockwork stands still while a test runs.

Fixtures have the names of those that they stand in for, so tests read as all the others do.
"""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conftest import UNLIMITED
from tests.support.client import Project, Unit
from tests.support.clusters import NEWEST, Cluster
from tests.support.feed import Feed
from tests.support.installation import Installation, installed
from tests.support.server import RunningServer
from tests.support.sql import Sql
from tests.support.sweeping import Clockwork


@pytest.fixture(scope="package")
def installation(
    tmp_path_factory: pytest.TempPathFactory, cluster_of: Callable[[int], Cluster]
) -> Iterator[Installation]:
    url = cluster_of(NEWEST).new_database()
    with installed(tmp_path_factory.mktemp("lapsing"), url, UNLIMITED) as running:
        yield running


@pytest.fixture(scope="package")
def server(installation: Installation) -> RunningServer:
    return installation.server


@pytest.fixture(scope="package")
def sql(installation: Installation) -> Sql:
    return installation.sql


@pytest.fixture(scope="package")
def http(installation: Installation) -> httpx.Client:
    return installation.http


@pytest.fixture(autouse=True)
def clockwork(server: RunningServer, sql: Sql) -> Iterator[Clockwork]:
    """Stopped: nobody but the readers and writers of the test itself notices that a hold is over."""
    worker = Clockwork(server, sql)
    try:
        worker.stop()
        yield worker
    finally:
        worker.go_on()


@pytest.fixture
def project(installation: Installation) -> Project:
    return installation.new_project()


@pytest.fixture
def feed(http: httpx.Client) -> Feed:
    return Feed(http)


@pytest.fixture
def is_stored_as(sql: Sql) -> Callable[[Unit, str], bool]:
    """Whether the unit's row has this status, whatever readers see."""

    def look(unit: Unit, status: str) -> bool:
        statement = "select status from unit where project_id = $1 and code = $2"
        return bool(sql.value(statement, unit.project.id, unit.code) == status)

    return look
