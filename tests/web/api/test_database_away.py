"""The database goes away and comes back: 503 with a time to wait, never a 500, nothing half done."""

import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support import commands
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client, put_array
from tests.support.clusters import Cluster
from tests.support.problems import check_shape, problem
from tests.support.projects import add_project
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql

RECOVERY_SECONDS = 30
BULK = 12_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of our own, to be stopped and crashed as we like."""
    with Cluster(tmp_path_factory.mktemp("away")) as own:
        yield own


@pytest.fixture(scope="module")
def settings(cluster: Cluster) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": cluster.new_database()}


@pytest.fixture(scope="module")
def lone_server(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("away-server"), settings) as server:
        yield server


@pytest.fixture(scope="module")
def lone_key(settings: dict[str, str]) -> str:
    return str(commands.run_for_json(settings, "key", "add", "--name", "away")["key"])


@pytest.fixture
def client(cluster: Cluster, lone_server: RunningServer, lone_key: str) -> Iterator[httpx.Client]:
    """A client whose server had its database at the start of the test, and has it again at the end."""
    with integration_client(lone_server.address, lone_key, may_fail=True) as http:
        wait_until_ready(http)
        yield http
        cluster.start()
        wait_until_ready(http)


@pytest.fixture
def tower(client: httpx.Client, settings: dict[str, str]) -> Project:
    with Sql(settings["HOLDFAST_DATABASE_URL"]) as sql:
        return add_project(sql)


def wait_until_ready(http: httpx.Client) -> None:
    over = time.monotonic() + RECOVERY_SECONDS
    while (answer := http.get("/readyz")).status_code != 200:
        assert answer.status_code == 503, answer.text
        assert time.monotonic() < over, "the server did not find its database again"
        time.sleep(0.05)


def unavailable(response: httpx.Response) -> None:
    problem(response, 503)
    assert int(response.headers["retry-after"]) >= 1


CALLS: dict[str, Callable[[Unit], httpx.Response]] = {
    "PUT": lambda unit: unit.put(minimal(priceSar=7)),
    "PATCH": lambda unit: unit.patch({"priceSar": 7}),
    "GET": lambda unit: unit.get(),
    "list": lambda unit: unit.http.get(unit.project.units_url),
    "projects": lambda unit: unit.http.get("/v1/integration/projects"),
    "events": lambda unit: unit.http.get("/v1/integration/events"),
}


@pytest.mark.parametrize("stop", ["stop", "crash"])
def test_every_call_is_answered_with_503_and_served_again_later(
    cluster: Cluster, client: httpx.Client, tower: Project, stop: str
) -> None:
    unit, other = Unit(client, tower, "A-101"), Unit(client, tower, "A-102")
    unit.create(minimal())
    before = unit.get()
    getattr(cluster, stop)()
    for call in CALLS.values():
        unavailable(call(unit))
    unavailable(other.put(minimal()))
    cluster.start()
    wait_until_ready(client)
    assert (unit.get().text, unit.etag) == (before.text, before.headers["etag"])
    assert not other.exists
    assert [call(unit).status_code for call in CALLS.values()] == [200] * len(CALLS)


def test_a_bulk_call_says_that_the_database_is_away(
    cluster: Cluster, client: httpx.Client, tower: Project
) -> None:
    cluster.stop()
    response = put_array(client, tower, [minimal(code="A-101")])
    if response.status_code == 200:
        (result,) = response.json()["results"]
        assert (result["outcome"], result["problem"]["status"]) == ("refused", 503)
    else:
        unavailable(response)


def test_a_server_without_its_database_is_alive_but_not_ready(cluster: Cluster, client: httpx.Client) -> None:
    cluster.stop()
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 503
    assert client.get("/metrics").status_code == 200


def test_a_page_says_that_the_database_is_away(cluster: Cluster, client: httpx.Client) -> None:
    cluster.stop()
    headers = {"cookie": f"__Host-holdfast_session={'x' * 43}", "accept": "text/html"}
    answer = client.get("/backoffice/projects", headers=headers)
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("text/html")
    assert int(answer.headers["retry-after"]) >= 1
    assert "The database is away for a moment" in answer.text


def test_an_invalid_request_is_never_a_500(cluster: Cluster, client: httpx.Client, tower: Project) -> None:
    cluster.stop()
    unit = Unit(client, tower, "A-101")
    assert unit.put("{").status_code in (400, 503)
    assert client.get("/v1/integration/events", params={"limit": "0"}).status_code in (422, 503)
    with integration_client(str(client.base_url), "nonsense", may_fail=True) as stranger:
        assert stranger.get("/v1/integration/projects").status_code in (401, 503)


def test_under_load_the_answers_are_2xx_or_503_and_what_was_acknowledged_is_there(
    cluster: Cluster, client: httpx.Client, tower: Project, lone_key: str
) -> None:
    over = threading.Event()
    answers: dict[str, list[tuple[int, int]]] = {f"A-{number}": [] for number in range(8)}
    enough = threading.Semaphore(0)

    def write(code: str) -> None:
        with integration_client(str(client.base_url), lone_key, may_fail=True) as http:
            price = 0
            while not over.is_set():
                price += 1
                answer = Unit(http, tower, code).put(minimal(priceSar=price))
                answers[code].append((answer.status_code, price))
                if answer.status_code < 300:
                    enough.release()

    writers = [threading.Thread(target=write, args=(code,)) for code in answers]
    for writer in writers:
        writer.start()
    for outage in (cluster.crash, cluster.stop):
        wait_for(enough, 100)
        outage()
        cluster.start()
    wait_for(enough, 100)
    over.set()
    for writer in writers:
        writer.join()
    for code, got in answers.items():
        assert {status for status, _ in got} <= {200, 201, 503}
        last = max(price for status, price in got if status < 300)
        assert Unit(client, tower, code).read()["priceSar"] >= last


def wait_for(enough: threading.Semaphore, count: int) -> None:
    for _ in range(count):
        assert enough.acquire(timeout=RECOVERY_SECONDS), "the writers came to a halt"


def test_a_bulk_call_that_loses_its_database_midway_tells_what_was_stored(
    cluster: Cluster, client: httpx.Client, tower: Project, settings: dict[str, str]
) -> None:
    items = [minimal(code=f"U-{number:05}", description="x" * 500) for number in range(BULK)]
    answer: list[httpx.Response] = []
    caller = threading.Thread(target=lambda: answer.append(put_array(client, tower, items)))
    with Sql(settings["HOLDFAST_DATABASE_URL"]) as sql:
        caller.start()
        while sql.value("select count(*) from unit where project_id = $1", tower.id) == 0:
            assert caller.is_alive()
    cluster.crash()
    caller.join()
    cluster.start()
    wait_until_ready(client)
    results = answer[0].json()["results"]
    assert [result["code"] for result in results] == [item["code"] for item in items]
    assert {result["outcome"] for result in results} == {"created", "refused"}
    for result in results:
        if result["outcome"] == "refused":
            check_shape(result["problem"], 503)
    acknowledged = [result["code"] for result in results if result["outcome"] == "created"]
    assert answer[0].json()["counts"]["created"] == len(acknowledged)
    with Sql(settings["HOLDFAST_DATABASE_URL"]) as sql:
        stored = {row["code"] for row in sql.rows("select code from unit where project_id = $1", tower.id)}
    assert set(acknowledged) <= stored
