"""GET …/units/{code} and GET …/projects."""

from collections.abc import Callable

import httpx

from tests.support.client import Project, Unit
from tests.support.problems import invalid, problem

PROJECTS = "/v1/integration/projects"


def all_projects(http: httpx.Client, **query: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        response = http.get(PROJECTS, params={**query, **more})
        assert response.status_code == 200, response.text
        found += response.json()["projects"]
        assert cursor is None or cursor != response.json()["nextCursor"], "the pages do not go on"
        cursor = response.json()["nextCursor"]
        if cursor is None:
            return found


def test_an_unknown_unit_is_404(unit: Unit) -> None:
    problem(unit.get(), 404)


def test_an_unknown_project_is_404(http: httpx.Client) -> None:
    nowhere = Unit(http, Project("", "no-such-tower", ""), "A-101")
    problem(nowhere.get(), 404)
    problem(nowhere.put('{"type": "x", "areaSqm": 1, "priceSar": 1}'), 404)
    problem(nowhere.patch({}), 404)


def test_a_read_changes_nothing(stored: Unit) -> None:
    first = stored.get()
    second = stored.get()
    assert (first.text, first.headers["etag"]) == (second.text, second.headers["etag"])


def test_the_projects_are_listed(http: httpx.Client, project: Project) -> None:
    (found,) = [item for item in all_projects(http) if item["slug"] == project.slug]
    assert (found["id"], found["name"]) == (project.id, project.name)


def test_the_projects_come_in_pages(http: httpx.Client, new_project: Callable[[], Project]) -> None:
    mine = {new_project().slug for _ in range(3)}
    found = [item["slug"] for item in all_projects(http, limit="2")]
    assert mine <= set(found)
    assert len(found) == len(set(found))


def test_the_list_of_projects_checks_its_query(http: httpx.Client) -> None:
    invalid(http.get(PROJECTS, params={"limit": "-1", "cursor": "!"}), "/query/limit", "/query/cursor")
