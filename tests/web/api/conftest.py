"""A fresh project for every test, on one server for all of them."""

import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conftest import UNLIMITED
from tests.support.app import InProcessApp, running_app
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.clusters import NEWEST, Cluster
from tests.support.feed import Feed
from tests.support.installation import Installation, installed, opened
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.sql import Sql
from tests.support.webhooks import IMPATIENT, Inbox, Registrar, an_inbox

WorkUntil = Callable[[Callable[[], bool]], None]


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


@pytest.fixture(scope="session")
def idle_app(cluster_of: Callable[[int], Cluster]) -> Iterator[tuple[InProcessApp, str]]:
    """An application without background work, and its own database."""
    url = cluster_of(NEWEST).new_database()
    with running_app({"HOLDFAST_DATABASE_URL": url, **UNLIMITED}, background_work=False) as app:
        yield app, url


@pytest.fixture(scope="session")
def idle(idle_app: tuple[InProcessApp, str]) -> Iterator[Installation]:
    """Where nobody but the readers and writers of the test itself notices that a hold is over."""
    app, url = idle_app
    with opened(app.address, url) as installation:
        yield installation


@pytest.fixture
def idle_feed(idle: Installation) -> Feed:
    return Feed(idle.http)


@pytest.fixture
def work_until(idle_app: tuple[InProcessApp, str]) -> WorkUntil:
    """Let the background work of `idle` run until something is so."""

    def work(done: Callable[[], bool]) -> None:
        app, _ = idle_app
        app.start_background_work()
        over = time.monotonic() + 60
        try:
            while not done():
                assert time.monotonic() < over, "the background work has not done what was waited for"
                time.sleep(0.01)
        finally:
            app.stop_background_work()

    return work


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
