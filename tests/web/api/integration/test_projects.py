"""GET …/projects, and keys that are limited to projects: for them there are no others."""

from collections.abc import Callable

import httpx

from tests.support.app import InProcessApp
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, integration_client, pages_of, put_array
from tests.support.keys import Keys
from tests.support.problems import invalid, problem

PROJECTS = "/v1/integration/projects"


def all_projects(http: httpx.Client, **query: str) -> list[dict[str, str]]:
    return [item for page in pages_of(http, PROJECTS, "projects", **query) for item in page]


def test_the_projects_are_listed_page_by_page(http: httpx.Client, new_project: Callable[[], Project]) -> None:
    mine = {made.slug: made for made in (new_project() for _ in range(3))}
    found = all_projects(http, limit="2")
    assert len(found) == len({item["slug"] for item in found})
    listed = {item["slug"]: (item["id"], item["name"]) for item in found if item["slug"] in mine}
    assert listed == {slug: (made.id, made.name) for slug, made in mine.items()}
    invalid(http.get(PROJECTS, params={"limit": "-1", "cursor": "!"}), "/query/limit", "/query/cursor")


def test_a_limited_key_lists_and_writes_its_own_projects(
    server: InProcessApp, keys: Keys, limited: httpx.Client, project: Project, elsewhere: Unit
) -> None:
    unit = Unit(limited, project, "A-1")
    assert unit.put(minimal()).status_code == 201
    assert unit.patch({"bedrooms": 1}).status_code == 200
    assert unit.exists
    answer = limited.get(PROJECTS).json()
    assert ([item["slug"] for item in answer["projects"]], answer["nextCursor"]) == ([project.slug], None)
    both = keys.issue(projects=[project.slug, elsewhere.project.slug])
    with integration_client(server.address, both.text) as http:
        assert {item["slug"] for item in all_projects(http)} == {project.slug, elsewhere.project.slug}


def test_another_project_is_not_there(limited: httpx.Client, elsewhere: Unit) -> None:
    etag, other = elsewhere.etag, elsewhere.project
    unit = Unit(limited, other, elsewhere.code)
    for response in (unit.get(), unit.put(full(type="villa")), unit.patch({"type": "villa"})):
        problem(response, 404)
    problem(limited.get(other.units_url), 404)
    problem(put_array(limited, other, [minimal(code=elsewhere.code)]), 404)
    assert elsewhere.etag == etag


def test_another_project_looks_like_an_unknown_one(limited: httpx.Client, elsewhere: Unit) -> None:
    other = elsewhere.project
    unknown = Project("", other.slug[:-1] + ("x" if other.slug[-1] != "x" else "y"), "")
    answers = [problem(Unit(limited, where, "A-1").get(), 404) for where in (other, unknown)]
    for answer, where in zip(answers, (other, unknown), strict=True):
        answer.pop("requestId")
        answer["detail"] = answer["detail"].replace(where.slug, "SLUG")
    assert answers[0] == answers[1]
