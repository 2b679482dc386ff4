"""A key of the back office that is limited to projects sees and makes endpoints of these alone."""

from collections.abc import Callable

import httpx
import pytest

from tests.support.backoffice import with_body
from tests.support.bodies import minimal
from tests.support.client import Project, Unit
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.support.webhooks import DELIVERIES, ENDPOINTS, NOBODY_LISTENS, Registrar

SINCE = {"since": "2026-01-01T00:00:00Z"}
FAIL = """
    with gone as (delete from pending_delivery where endpoint_id = $1 and event <> 'ping' returning *)
    insert into ended_delivery (
        id, endpoint_id, event, project_id, unit_code, created_at, body, attempts, status, ended_at
    )
    select id, endpoint_id, event, project_id, unit_code, created_at, body, 8, 'failed', now() from gone
"""


@pytest.fixture
def other(new_project: Callable[[], Project]) -> Project:
    return new_project()


def listed(registrar: Registrar) -> list[str]:
    return [one["id"] for one in registrar.http.get(ENDPOINTS, params={"limit": 1000}).json()["endpoints"]]


def test_what_it_registers_is_limited_to_its_projects(limited_registrar: Registrar, project: Project) -> None:
    assert limited_registrar.add()["projects"] == [project.slug]
    assert limited_registrar.add(projects=None)["projects"] == [project.slug]
    assert limited_registrar.add(projects=[project.slug])["projects"] == [project.slug]


def test_an_endpoint_never_gets_beyond_the_projects_of_the_key(
    limited_registrar: Registrar, project: Project, other: Project
) -> None:
    made = limited_registrar.add()
    assert limited_registrar.change(made["id"], projects=None)["projects"] == [project.slug]
    refused = limited_registrar.ask_to_change(made["id"], {"projects": [project.slug, other.slug]})
    assert problem(refused, 404)["type"] == "/problems/unknown-project"
    assert limited_registrar.read(made["id"])["projects"] == [project.slug]


def test_a_project_of_others_is_as_unknown_as_one_that_is_not_there(
    limited_registrar: Registrar, other: Project
) -> None:
    answers = [
        problem(limited_registrar.ask_to_add({"url": NOBODY_LISTENS, "projects": [slug]}), 404)
        for slug in (other.slug, "no-such-project")
    ]
    assert {answer["type"] for answer in answers} == {"/problems/unknown-project"}


def test_the_url_is_told_before_the_project_of_others(limited_registrar: Registrar, other: Project) -> None:
    config = {"url": "https://10.0.0.1/", "projects": [other.slug]}
    invalid(limited_registrar.ask_to_add(config), "/url")


def test_it_sees_only_endpoints_within_its_projects(
    registrar: Registrar, limited_registrar: Registrar, project: Project, other: Project
) -> None:
    own = registrar.add(projects=[project.slug])["id"]
    beyond = (None, [other.slug], [project.slug, other.slug])
    hidden = [registrar.add(projects=slugs)["id"] for slugs in beyond]
    assert listed(limited_registrar) == [own]
    assert set(listed(registrar)) >= {own, *hidden}
    for endpoint_id in hidden:
        problem(limited_registrar.http.get(f"{ENDPOINTS}/{endpoint_id}"), 404)


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("PATCH", "", {"paused": True}),
        ("DELETE", "", None),
        ("POST", "/rotate-secret", None),
        ("POST", "/ping", None),
        ("POST", "/recover", SINCE),
        ("POST", "/recover", SINCE | {"dryRun": True}),
        ("GET", "/reconciliation", None),
    ],
)
def test_it_does_nothing_to_endpoints_of_others(
    registrar: Registrar, limited_registrar: Registrar, method: str, rest: str, body: object
) -> None:
    made = registrar.add()
    url = f"{ENDPOINTS}/{made['id']}{rest}"
    refused = limited_registrar.http.request(method, url, **with_body(body))
    assert problem(refused, 404)["type"] == "/problems/unknown-endpoint"
    shown = registrar.read(made["id"])
    assert (shown["updatedAt"], shown["secretId"]) == (made["updatedAt"], made["secretId"])


def test_it_sees_only_deliveries_of_its_endpoints(
    registrar: Registrar, limited_registrar: Registrar, project: Project
) -> None:
    own, others = registrar.add(projects=[project.slug], paused=True), registrar.add(paused=True)
    seen, hidden = registrar.ping(own["id"]), registrar.ping(others["id"])
    assert [one["id"] for one in limited_registrar.deliveries()["deliveries"]] == [seen["id"]]
    assert limited_registrar.delivery(seen["id"])["endpointId"] == own["id"]
    problem(limited_registrar.http.get(f"{DELIVERIES}/{hidden['id']}"), 404)
    problem(limited_registrar.ask_to_resend(hidden["id"]), 404)
    problem(limited_registrar.http.get(DELIVERIES, params={"endpoint": others["id"]}), 404)


def test_of_an_endpoint_that_was_for_more_it_sees_and_sends_what_is_of_its_projects(
    registrar: Registrar,
    limited_registrar: Registrar,
    http: httpx.Client,
    sql: Sql,
    project: Project,
    other: Project,
) -> None:
    made = registrar.add(projects=[project.slug, other.slug], paused=True)["id"]
    for where, code in ((project, "own"), (other, "foreign")):
        unit = Unit(http, where, code)
        unit.create(minimal(status="unavailable"))
        assert unit.patch({"status": "available"}).status_code == 200
    registrar.ping(made)
    sql.execute(FAIL, made)
    registrar.change(made, projects=[project.slug])
    ids = {one["unitCode"]: one["id"] for one in registrar.deliveries(endpoint=made)["deliveries"]}
    assert set(ids) == {None, "own", "foreign"}
    seen = limited_registrar.deliveries(endpoint=made)["deliveries"]
    assert {one["unitCode"] for one in seen} == {None, "own"}
    refused = problem(limited_registrar.http.get(f"{DELIVERIES}/{ids['foreign']}"), 404)
    assert refused["type"] == "/problems/unknown-delivery"
    problem(limited_registrar.ask_to_resend(ids["foreign"]), 404)
    assert limited_registrar.delivery(ids["own"])["status"] == "failed"
    found = limited_registrar.reconciliation(made)
    assert (found["events"], found["failed"], found["agrees"]) == (1, 1, True)
    assert registrar.reconciliation(made)["events"] == 2
    counted = limited_registrar.post(made, "recover", SINCE | {"dryRun": True}).json()
    assert (counted["count"], limited_registrar.post(made, "recover", SINCE).json()["count"]) == (1, 1)
    assert registrar.delivery(ids["foreign"])["status"] == "failed"
