"""A fresh project for every test, on one server for all of them."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.bodies import full, minimal
from tests.support.client import Project, Send, Unit, integration_client, put_array, put_lines
from tests.support.feed import Feed
from tests.support.installation import Installation, installed
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.sql import Sql
from tests.support.webhooks import IMPATIENT, Inbox, Registrar, an_inbox


@pytest.fixture(scope="session")
def http(server: InProcessApp, api_key: str) -> Iterator[httpx.Client]:
    with integration_client(server.address, api_key) as client:
        yield client


@pytest.fixture
def anonymous(server: InProcessApp) -> Iterator[httpx.Client]:
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


@pytest.fixture(scope="session")
def staff_http(server: InProcessApp, keys: Keys) -> Iterator[httpx.Client]:
    with integration_client(server.address, keys.issue(scopes=["backoffice"]).text) as client:
        yield client


@pytest.fixture
def registrar(staff_http: httpx.Client) -> Iterator[Registrar]:
    own = Registrar(staff_http)
    yield own
    own.remove_all()


@pytest.fixture
def limited_registrar(server: InProcessApp, keys: Keys, project: Project) -> Iterator[Registrar]:
    """With a key of the back office that is limited to `project`."""
    key = keys.issue(scopes=["backoffice"], projects=[project.slug])
    with integration_client(server.address, key.text) as client:
        own = Registrar(client)
        yield own
        own.remove_all()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with an_inbox() as opened:
        yield opened


@pytest.fixture(scope="module")
def impatient(module_postgres_url: str) -> Iterator[Installation]:
    """An application of its own, which gives a delivery up soon."""
    with installed(module_postgres_url, IMPATIENT) as running:
        yield running


@pytest.fixture
def impatient_registrar(impatient: Installation, module_postgres_url: str) -> Iterator[Registrar]:
    key = Keys(impatient.sql, module_postgres_url).issue(scopes=["backoffice"])
    with integration_client(impatient.address, key.text) as client:
        own = Registrar(client)
        yield own
        own.remove_all()
