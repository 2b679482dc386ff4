"""Ground for all the tests: PostgreSQL from the wheel, the application in this process, real servers."""

import os
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from holdfast.storage.database import Database
from tests.support import commands
from tests.support.app import InProcessApp, running_app
from tests.support.clusters import NEWEST, Cluster
from tests.support.delivery_engine import Engine, an_engine
from tests.support.keys import Keys
from tests.support.payment_system import SETTINGS as PAYMENTS
from tests.support.progress import Progress
from tests.support.scheduling import Durations, Scheduling, file_of, group_of
from tests.support.server import RunningServer, serving
from tests.support.sql import MAY_IDLE, Sql

# All tests come from one address, and hold more units than one visitor may.
UNLIMITED = {
    "HOLDFAST_HOLDS_PER_ADDRESS": "0",
    "HOLDFAST_HOLDS_SHARE_PER_NETWORK": "0",
    "HOLDFAST_REHOLD_SECONDS": "0",
    "HOLDFAST_WRONG_KEYS_PER_MINUTE": "0",
}
AT_MOST_PROCESSES = 6
SERVER = pytest.StashKey[InProcessApp]()

# How fast examples are made says something of the machine, and nothing of what they are for.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What has to do with SQL runs on every PostgreSQL that the wheel has."""
    folder = metafunc.definition.path.parent.name
    if folder in ("storage", "webhooks") and "postgres_version" in metafunc.fixturenames:
        older = pytest.param(16, marks=pytest.mark.slow, id="postgres16")
        metafunc.parametrize(
            "postgres_version", [older, pytest.param(NEWEST, id="postgres18")], scope="session"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help="write tests/durations.json anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.numprocesses:
        config.pluginmanager.register(Progress(config))
        # Whoever stops the run stops its servers and databases as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest groups of files come first: whichever of them came last would run alone."""
    durations, groups = Durations(config), defaultdict[str, float](float)
    files = {file_of(item.nodeid) for item in items}
    for file in files:
        groups[group_of(file)] += durations.of(file)
    order = {file: (-groups[group_of(file)], group_of(file), -durations.of(file)) for file in files}
    items.sort(key=lambda item: order[file_of(item.nodeid)])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The background work of `server` rests while other tests run: they may replace what it uses."""
    if isinstance(item, pytest.Function) and (server := item.config.stash.get(SERVER, None)):
        if "server" in item.fixturenames:
            server.start_background_work()
        else:
            server.stop_background_work()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return Scheduling(config, log) if config.option.dist == "loadfile" else None


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, since tests wait; each has PostgreSQL and servers of its own."""
    return min((os.cpu_count() or 1) + 1, AT_MOST_PROCESSES)


@pytest.fixture(scope="session")
def cluster_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Cluster]]:
    """The cluster of a PostgreSQL version, started when it is first asked for."""
    running: dict[int, Cluster] = {}

    def find(version: int) -> Cluster:
        if version not in running:
            cluster = Cluster(tmp_path_factory.mktemp(f"postgres-{version}"), version)
            cluster.start()
            running[version] = cluster
        return running[version]

    yield find
    for cluster in running.values():
        cluster.stop()


@pytest.fixture(scope="session")
def postgres_version() -> int:
    return NEWEST


@pytest.fixture
def postgres_url(cluster_of: Callable[[int], Cluster], postgres_version: int) -> str:
    """A migrated database with nothing in it. The test may do what it likes with it."""
    return cluster_of(postgres_version).empty_database()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    async with Database(postgres_url, settings=MAY_IDLE) as opened:
        yield opened


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    """Deliveries of webhooks in this process."""
    async with an_engine(database) as running:
        yield running


@pytest.fixture(scope="module")
def module_postgres_url(cluster_of: Callable[[int], Cluster], postgres_version: int) -> Iterator[str]:
    """A fresh, migrated database for all the tests of a module."""
    cluster = cluster_of(postgres_version)
    url = cluster.new_database()
    yield url
    cluster.drop_database(url)


@pytest.fixture(scope="session")
def database_url(cluster_of: Callable[[int], Cluster]) -> str:
    """The database of the servers that all API tests share."""
    return cluster_of(NEWEST).new_database()


@pytest.fixture(scope="session")
def sql(database_url: str) -> Iterator[Sql]:
    with Sql(database_url) as connection:
        yield connection


@pytest.fixture(scope="session")
def keys(sql: Sql, database_url: str) -> Keys:
    return Keys(sql, database_url)


@pytest.fixture(scope="session")
def api_key(database_url: str) -> str:
    """A key for every project, made as an operator makes it."""
    settings = {"HOLDFAST_DATABASE_URL": database_url}
    return str(commands.run_for_json(settings, "key", "add", "--name", "tests")["key"])


@pytest.fixture(scope="session")
def settings_of_servers(database_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": database_url, **UNLIMITED, **PAYMENTS}


@pytest.fixture(scope="session")
def server(settings_of_servers: dict[str, str], pytestconfig: pytest.Config) -> Iterator[InProcessApp]:
    """The application in this process, with its background work. It has no socket."""
    with running_app(settings_of_servers) as running:
        pytestconfig.stash[SERVER] = running
        yield running


@pytest.fixture(scope="session")
def real_server(
    tmp_path_factory: pytest.TempPathFactory, settings_of_servers: dict[str, str]
) -> Iterator[RunningServer]:
    """For what needs sockets or processes, on the same database as `server`."""
    with serving(tmp_path_factory.mktemp("server"), settings_of_servers) as running:
        yield running


@pytest.fixture(scope="session")
def addresses(real_server: RunningServer, two_processes: RunningServer) -> list[str]:
    """Two servers on one database: whoever uses both has reached two processes for certain."""
    return [real_server.address, two_processes.address]


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory: pytest.TempPathFactory, database_url: str) -> Iterator[RunningServer]:
    settings = {"HOLDFAST_DATABASE_URL": database_url, **UNLIMITED}
    with serving(tmp_path_factory.mktemp("two-processes"), settings, "--processes", "2") as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its servers logged."""
    report = yield
    for name in ("server", "real_server"):
        running = getattr(item, "funcargs", {}).get(name)
        if report.failed and isinstance(running, InProcessApp | RunningServer):
            report.sections.append((f"the end of the log of {name}", running.log.read_text()[-4000:]))
    return report
