"""A fresh project for every test, on one server for all of them."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conftest import UNLIMITED
from tests.support.app import InProcessApp, running_app
from tests.support.backoffice import Desk
from tests.support.bodies import full, minimal
from tests.support.buying import Buyer, Hold
from tests.support.client import Project, Unit, integration_client
from tests.support.clusters import NEWEST, Cluster
from tests.support.feed import Feed
from tests.support.installation import Installation, installed, opened
from tests.support.keys import Key, Keys
from tests.support.projects import add_project
from tests.support.server import wait_until
from tests.support.sql import Sql
from tests.support.webhooks import IMPATIENT, Inbox, Registrar, an_inbox

WorkUntil = Callable[[Callable[[], bool]], None]


@pytest.fixture(scope="session")
def http(server: InProcessApp, api_key: str) -> Iterator[httpx.Client]:
    with integration_client(server.address, api_key) as client:
        yield client


@pytest.fixture(scope="session")
def public(server: InProcessApp) -> Iterator[httpx.Client]:
    """Without a key."""
    with integration_client(server.address, None) as client:
        yield client


@pytest.fixture(scope="session")
def backoffice_key(keys: Keys) -> Key:
    return keys.issue(scopes=["backoffice"])


@pytest.fixture(scope="session")
def desk(server: InProcessApp, backoffice_key: Key) -> Iterator[Desk]:
    """Staff, who are no admin."""
    with integration_client(server.address, backoffice_key.text) as client:
        yield Desk(client)


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


@pytest.fixture
def new_unit(http: httpx.Client, project: Project) -> Callable[..., Unit]:
    """Another unit of the test's project, on sale."""

    def make(code: str, **fields: object) -> Unit:
        made = Unit(http, project, code)
        made.create(full(**fields))
        return made

    return make


@pytest.fixture
def elsewhere(http: httpx.Client, new_project: Callable[[], Project]) -> Unit:
    """A unit of another project, on sale."""
    unit = Unit(http, new_project(), "A-101")
    unit.create(full())
    return unit


@pytest.fixture
def limited(server: InProcessApp, keys: Keys, project: Project) -> Iterator[httpx.Client]:
    """With a key of the integration API that is limited to `project`."""
    with integration_client(server.address, keys.issue(projects=[project.slug]).text) as client:
        yield client


@pytest.fixture
def buyer(public: httpx.Client) -> Buyer:
    return Buyer(public)


@pytest.fixture
def held(buyer: Buyer, stored: Unit) -> Hold:
    """A hold of the unit `stored`."""
    return buyer.hold(stored)


@pytest.fixture
def signed(held: Hold) -> Hold:
    held.sign()
    return held


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
        try:
            wait_until(done)
        finally:
            app.stop_background_work()

    return work


@pytest.fixture
def registrar(desk: Desk) -> Iterator[Registrar]:
    own = Registrar(desk.http)
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
def impatient_registrar(impatient: Installation) -> Iterator[Registrar]:
    own = Registrar(impatient.http)
    yield own
    own.remove_all()
