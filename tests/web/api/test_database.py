"""The database goes away and comes back: 503 with a time to wait, never a 500, nothing half done.

And one that its operators have set up in their own way, where everything is as elsewhere.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.app import running_app
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, integration_client, put_array
from tests.support.clusters import Cluster
from tests.support.installation import installed
from tests.support.keys import Keys
from tests.support.problems import check_shape, problem
from tests.support.projects import add_project
from tests.support.server import PATIENCE_SECONDS, wait_until
from tests.support.sql import Sql

PROJECTS, EVENTS = "/v1/integration/projects", "/v1/integration/events"
STORED = "select code from unit where project_id = $1"
STAND_STILL = """
    create function stand_still() returns trigger language plpgsql as $$
    begin perform pg_sleep(600); return new; end $$;
    create trigger stand_still before insert on unit for each row when (new.code = 'U-02999')
    execute function stand_still()
"""
STANDS_STILL = "select exists (select from pg_stat_activity where wait_event = 'PgSleep')"
CALLS: list[Callable[[Unit], httpx.Response]] = [
    lambda unit: unit.put(minimal(priceSar=7)),
    lambda unit: unit.patch({"priceSar": 7}),
    lambda unit: unit.get(),
    lambda unit: unit.http.get(unit.project.units_url),
    lambda unit: unit.http.get(PROJECTS),
    lambda unit: unit.http.get(EVENTS),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of our own, to be stopped and crashed as we like."""
    with Cluster(tmp_path_factory.mktemp("away")) as own:
        yield own


@pytest.fixture(scope="module")
def url(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.fixture(scope="module")
def key(url: str) -> str:
    with Sql(url) as sql:
        return Keys(sql, url).issue().text


@pytest.fixture(scope="module")
def address(url: str) -> Iterator[str]:
    with running_app({"HOLDFAST_DATABASE_URL": url}) as app:
        yield app.address


@pytest.fixture
def client(cluster: Cluster, address: str, key: str) -> Iterator[httpx.Client]:
    """A client whose server had its database at the start of the test, and has it again at the end."""
    with integration_client(address, key, may_fail=True) as http:
        wait_until_ready(http)
        yield http
        cluster.start()
        wait_until_ready(http)


@pytest.fixture
def tower(client: httpx.Client, url: str) -> Project:
    with Sql(url) as sql:
        return add_project(sql)


def wait_until_ready(http: httpx.Client) -> None:
    def is_ready() -> bool:
        answer = http.get("/readyz")
        assert answer.status_code in (200, 503), answer.text
        return answer.is_success

    wait_until(is_ready)


def unavailable(response: httpx.Response) -> None:
    problem(response, 503)
    assert int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("outage", ["stop", pytest.param("crash", marks=pytest.mark.slow)])
def test_every_call_is_answered_with_503_and_served_again_later(
    cluster: Cluster, client: httpx.Client, tower: Project, outage: str
) -> None:
    unit, other = Unit(client, tower, "A-101"), Unit(client, tower, "A-102")
    unit.create(minimal())
    before = unit.get()
    getattr(cluster, outage)()
    for call in CALLS:
        unavailable(call(unit))
    unavailable(other.put(minimal()))
    bulk = put_array(client, tower, [minimal(code="A-102")])
    if bulk.status_code == 200:
        (result,) = bulk.json()["results"]
        assert (result["outcome"], result["problem"]["status"]) == ("refused", 503)
    else:
        unavailable(bulk)
    assert_alive_but_not_ready(client)
    assert unit.put("{").status_code in (400, 503)
    assert client.get(EVENTS, params={"limit": "0"}).status_code in (422, 503)
    with integration_client(str(client.base_url), "nonsense", may_fail=True) as stranger:
        assert stranger.get(PROJECTS).status_code in (401, 503)
    cluster.start()
    wait_until_ready(client)
    assert (unit.get().text, unit.etag) == (before.text, before.headers["etag"])
    assert not other.exists
    assert [call(unit).status_code for call in CALLS] == [200] * len(CALLS)


def assert_alive_but_not_ready(client: httpx.Client) -> None:
    assert client.get("/healthz").status_code == client.get("/metrics").status_code == 200
    assert client.get("/readyz").status_code == 503
    headers = {"cookie": f"__Host-holdfast_session={'x' * 43}", "accept": "text/html"}
    page = client.get("/backoffice/projects", headers=headers)
    assert (page.status_code, page.headers["content-type"].split(";")[0]) == (503, "text/html")
    assert int(page.headers["retry-after"]) >= 1
    assert "The database is temporarily unavailable" in page.text


@pytest.mark.slow
def test_under_load_the_answers_are_2xx_or_503_and_what_was_acknowledged_is_there(
    cluster: Cluster, client: httpx.Client, tower: Project, key: str
) -> None:
    over = threading.Event()
    answers: dict[str, list[tuple[int, int]]] = {f"A-{number}": [] for number in range(8)}
    enough = threading.Semaphore(0)

    def write(code: str) -> None:
        with integration_client(str(client.base_url), key, may_fail=True) as http:
            price = 0
            while not over.is_set():
                price += 1
                answer = Unit(http, tower, code).put(minimal(priceSar=price))
                answers[code].append((answer.status_code, price))
                if answer.status_code < 300:
                    enough.release()

    def wait_for_writes() -> None:
        for _ in range(50):
            assert enough.acquire(timeout=PATIENCE_SECONDS), "the writers came to a halt"

    with ThreadPoolExecutor(len(answers)) as pool:
        try:
            writing = [pool.submit(write, code) for code in answers]
            for outage in (cluster.crash, cluster.stop):
                wait_for_writes()
                outage()
                cluster.start()
            wait_for_writes()
        finally:
            over.set()
        for writer in writing:
            writer.result()
    for code, got in answers.items():
        assert {status for status, _ in got} <= {200, 201, 503}
        last = max(price for status, price in got if status < 300)
        assert Unit(client, tower, code).read()["priceSar"] >= last


def test_a_bulk_call_that_loses_its_database_midway_tells_what_was_stored(
    cluster: Cluster, client: httpx.Client, tower: Project, url: str
) -> None:
    items = [minimal(code=f"U-{number:05}") for number in range(3000)]
    with ThreadPoolExecutor(1) as pool:
        with Sql(url) as sql:
            sql.execute(STAND_STILL)
            calling = pool.submit(put_array, client, tower, items)
            while not (sql.rows(STORED, tower.id) and sql.value(STANDS_STILL)):
                assert not calling.done()
        cluster.crash()
        answer = calling.result().json()
    cluster.start()
    wait_until_ready(client)
    results = answer["results"]
    assert [result["code"] for result in results] == [item["code"] for item in items]
    assert {result["outcome"] for result in results} == {"created", "refused"}
    for result in results:
        if result["outcome"] == "refused":
            check_shape(result["problem"], 503)
    acknowledged = [result["code"] for result in results if result["outcome"] == "created"]
    assert answer["counts"]["created"] == len(acknowledged)
    with Sql(url) as sql:
        assert set(acknowledged) <= {row["code"] for row in sql.rows(STORED, tower.id)}


HABITS = {
    "timezone": "'Asia/Riyadh'",
    "datestyle": "'German, DMY'",
    "intervalstyle": "'sql_standard'",
    "default_transaction_isolation": "'repeatable read'",
    "extra_float_digits": "-15",
    "bytea_output": "'escape'",
    "statement_timeout": "'60s'",
}


def test_a_unit_is_the_same_in_a_database_of_other_habits(module_postgres_url: str, unit: Unit) -> None:
    name = module_postgres_url.split("?")[0].rsplit("/", 1)[1]
    with Sql(module_postgres_url) as sql:
        for setting, value in HABITS.items():
            sql.execute(f"alter database {name} set {setting} = {value}")
    with installed(module_postgres_url, {}) as foreign:
        there = Unit(foreign.http, add_project(foreign.sql), "A-101")
        here, made, later = unit.create(full()), there.create(full()), unit.patch({"bedrooms": 9}).json()
        assert {name: made[name] for name in full()} == full()
        # A time zone taken for UTC would show.
        assert here["createdAt"] <= made["createdAt"] <= later["updatedAt"]
        assert foreign.http.get(there.project.units_url).json()["units"] == [there.get().json()]
        lapsed = foreign.desk.held(there).end_now(foreign.sql)
        assert there.read()["updatedAt"] == lapsed.expires_at
        assert there.patch({"status": "unavailable"}).status_code == 200

        def write(number: int) -> set[int]:
            return {there.patch({"priceSar": 100 * number + turn}).status_code for turn in range(10)}

        with ThreadPoolExecutor(8) as pool:
            assert set().union(*pool.map(write, range(8))) == {200}
