"""GET …/projects, and keys that are limited to projects: for them there are no others."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, integration_client, put_array
from tests.support.keys import Keys
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


@pytest.fixture
def other(new_project: Callable[[], Project]) -> Project:
    return new_project()


@pytest.fixture
def limited(server: InProcessApp, keys: Keys, project: Project) -> Iterator[httpx.Client]:
    """A client whose key is for `project` only."""
    with integration_client(server.address, keys.issue(projects=[project.slug]).text) as http:
        yield http


def test_the_projects_are_listed_page_by_page(http: httpx.Client, new_project: Callable[[], Project]) -> None:
    mine = {made.slug: made for made in (new_project() for _ in range(3))}
    found = all_projects(http, limit="2")
    assert len(found) == len({item["slug"] for item in found})
    listed = {item["slug"]: (item["id"], item["name"]) for item in found if item["slug"] in mine}
    assert listed == {slug: (made.id, made.name) for slug, made in mine.items()}
    invalid(http.get(PROJECTS, params={"limit": "-1", "cursor": "!"}), "/query/limit", "/query/cursor")


def test_a_limited_key_lists_and_writes_its_own_projects(
    server: InProcessApp, keys: Keys, limited: httpx.Client, project: Project, other: Project
) -> None:
    unit = Unit(limited, project, "A-1")
    assert unit.put(minimal()).status_code == 201
    assert unit.patch({"bedrooms": 1}).status_code == 200
    assert unit.exists
    answer = limited.get(PROJECTS).json()
    assert ([item["slug"] for item in answer["projects"]], answer["nextCursor"]) == ([project.slug], None)
    both = keys.issue(projects=[project.slug, other.slug])
    with integration_client(server.address, both.text) as http:
        assert {item["slug"] for item in all_projects(http)} == {project.slug, other.slug}


def test_another_project_is_not_there(limited: httpx.Client, http: httpx.Client, other: Project) -> None:
    there = Unit(http, other, "A-1")
    there.create(full())
    etag = there.etag
    unit = Unit(limited, other, "A-1")
    for response in (unit.get(), unit.put(full(type="villa")), unit.patch({"type": "villa"})):
        problem(response, 404)
    problem(limited.get(other.units_url), 404)
    problem(put_array(limited, other, [minimal(code="A-1")]), 404)
    assert there.etag == etag


def test_another_project_looks_like_an_unknown_one(limited: httpx.Client, other: Project) -> None:
    unknown = Project("", other.slug[:-1] + ("x" if other.slug[-1] != "x" else "y"), "")
    answers = [problem(Unit(limited, where, "A-1").get(), 404) for where in (other, unknown)]
    for answer, where in zip(answers, (other, unknown), strict=True):
        answer.pop("requestId")
        answer["detail"] = answer["detail"].replace(where.slug, "SLUG")
    assert answers[0] == answers[1]
