"""The optional rate limit, per key."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.app import InProcessApp, running_app
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.problems import problem

PROJECTS = "/v1/integration/projects"


@pytest.fixture(scope="module")
def limited_server(database_url: str) -> Iterator[InProcessApp]:
    settings = {"HOLDFAST_DATABASE_URL": database_url, "HOLDFAST_RATE_LIMIT": "5"}
    with running_app(settings, background_work=False) as app:
        yield app


@pytest.fixture
def hasty(limited_server: InProcessApp, keys: Keys) -> Iterator[httpx.Client]:
    with integration_client(limited_server.address, keys.issue().text) as http:
        yield http


def call_until_refused(http: httpx.Client) -> httpx.Response:
    answers = (http.get(PROJECTS) for _ in range(200))
    return next(answer for answer in answers if answer.status_code != 200)


def test_too_many_calls_are_refused_with_the_time_to_wait(hasty: httpx.Client) -> None:
    response = call_until_refused(hasty)
    problem(response, 429)
    assert 1 <= int(response.headers["retry-after"]) <= 60


def test_the_first_calls_are_served(hasty: httpx.Client) -> None:
    assert hasty.get(PROJECTS).status_code == 200


def test_another_key_has_its_own_limit(hasty: httpx.Client, limited_server: InProcessApp, keys: Keys) -> None:
    call_until_refused(hasty)
    with integration_client(limited_server.address, keys.issue().text) as other:
        assert other.get(PROJECTS).status_code == 200


def test_a_refused_write_stores_nothing(hasty: httpx.Client, http: httpx.Client, project: Project) -> None:
    body = '{"type": "apartment", "areaSqm": 1, "priceSar": 1}'
    answers = {f"A-{n}": Unit(hasty, project, f"A-{n}").put(body).status_code for n in range(40)}
    assert set(answers.values()) == {201, 429}
    stored = {unit["code"] for unit in http.get(project.units_url).json()["units"]}
    assert stored == {code for code, status in answers.items() if status == 201}


def test_an_unknown_key_is_refused_as_such(limited_server: InProcessApp) -> None:
    with integration_client(limited_server.address, "nonsense") as http:
        assert {http.get(PROJECTS).status_code for _ in range(20)} <= {401, 429}


def test_probes_are_not_limited(hasty: httpx.Client) -> None:
    assert {hasty.get("/healthz").status_code for _ in range(40)} == {200}


def test_without_the_setting_there_is_no_limit(http: httpx.Client) -> None:
    assert {http.get(PROJECTS).status_code for _ in range(60)} == {200}
