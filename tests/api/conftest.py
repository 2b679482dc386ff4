"""A fresh project for every test, on one server for all of them."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.bodies import full, minimal
from tests.support.client import Project, Send, Unit, integration_client, put_array, put_lines
from tests.support.feed import Feed
from tests.support.projects import add_project
from tests.support.server import RunningServer
from tests.support.sql import Sql


@pytest.fixture(scope="session")
def http(server: RunningServer, api_key: str) -> Iterator[httpx.Client]:
    with integration_client(server.address, api_key) as client:
        yield client


@pytest.fixture
def anonymous(server: RunningServer) -> Iterator[httpx.Client]:
    with integration_client(server.address, None) as client:
        yield client


@pytest.fixture(scope="session")
def new_project(sql: Sql) -> Callable[[], Project]:
    return lambda: add_project(sql)


@pytest.fixture
def project(new_project: Callable[[], Project]) -> Project:
    return new_project()


@pytest.fixture
def unit(http: httpx.Client, project: Project) -> Unit:
    """An address at which there is no unit yet."""
    return Unit(http, project, "A-101")


@pytest.fixture
def stored(unit: Unit) -> Unit:
    """A unit with every field set, on sale."""
    unit.create(full())
    return unit


@pytest.fixture
def off_sale(unit: Unit) -> Unit:
    unit.create(minimal(status="unavailable"))
    return unit


@pytest.fixture(scope="session")
def session_feed(http: httpx.Client) -> Feed:
    return Feed(http)


@pytest.fixture
def feed(session_feed: Feed) -> Feed:
    """The feed, read to its end: what a test finds in it for its own project is its own doing."""
    session_feed.end()
    return session_feed


@pytest.fixture(params=[put_array, put_lines], ids=["array", "ndjson"])
def send(request: pytest.FixtureRequest) -> Send:
    sender: Send = request.param
    return sender
