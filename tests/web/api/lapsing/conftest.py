"""An application of its own, whose background work stands still while a test runs.

Fixtures have the names of those that they stand in for, so tests read as all the others do.
"""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conftest import UNLIMITED
from tests.support.app import InProcessApp, running_app
from tests.support.client import Project, Unit
from tests.support.clusters import NEWEST, Cluster
from tests.support.feed import Feed
from tests.support.installation import Installation, opened
from tests.support.sql import Sql

LOOKS = 1000
PAUSE = "select pg_sleep(0.01)"


@pytest.fixture(scope="package")
def own_database_url(cluster_of: Callable[[int], Cluster]) -> str:
    return cluster_of(NEWEST).new_database()


@pytest.fixture(scope="package")
def server(own_database_url: str) -> Iterator[InProcessApp]:
    """Nobody but the readers and writers of the test itself notices that a hold is over."""
    settings = {"HOLDFAST_DATABASE_URL": own_database_url, **UNLIMITED}
    with running_app(settings, background_work=False) as app:
        yield app


@pytest.fixture(scope="package")
def installation(server: InProcessApp, own_database_url: str) -> Iterator[Installation]:
    with opened(server.address, own_database_url) as installation:
        yield installation


@pytest.fixture(scope="package")
def sql(installation: Installation) -> Sql:
    return installation.sql


@pytest.fixture(scope="package")
def http(installation: Installation) -> httpx.Client:
    return installation.http


@pytest.fixture
def work_until(server: InProcessApp, sql: Sql) -> Callable[[Callable[[], bool]], None]:
    """Let the background work run until something is so."""

    def work(done: Callable[[], bool]) -> None:
        server.start_background_work()
        try:
            for _ in range(LOOKS):
                if done():
                    return
                sql.value(PAUSE)
            raise AssertionError("the background work has not done what was waited for")
        finally:
            server.stop_background_work()

    return work


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
